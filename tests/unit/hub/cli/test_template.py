"""The output of headgate template validate and schema."""

import asyncio
import json

from typer.testing import CliRunner

from headgate.errors import response_error
from hub.cli.commands.template import render
from hub.cli.main import app
from tests.support.program import Json
from tests.unit.hub.cli.stub import respond_with, running_stub

ONE: Json = {"Type": "Number", "Description": "How many", "Default": 3}
RESPONSE: Json = {
    "Description": "A \x1bsite",
    "Parameters": {"size": ONE | {"Value": 4}},
    "NestedParameters": {
        "web": {
            "Parameters": {"count": ONE},
            "NestedParameters": {"db": {"Parameters": {"key": ONE | {"Default": "******"}}}},
        }
    },
}


async def test_the_schema_is_that_of_the_server() -> None:
    async with running_stub(respond_with({"title": "HOT"})) as stub:
        arguments = ["template", "schema", "--url", stub.url]
        done = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert (done.exit_code, json.loads(done.stdout)) == (0, {"title": "HOT"})
    assert [one.path for one in stub.seen] == ["/schemas/hot.json"]


async def test_a_server_without_the_schema_is_an_error() -> None:
    async with running_stub(respond_with({"error": {"message": "no route"}}, 404)) as stub:
        arguments = ["template", "schema", "--url", stub.url]
        done = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert (done.exit_code, done.stdout) == (1, "")


def lines(found: Json) -> list[list[str]]:
    from rich.console import Console

    console = Console(width=120, highlight=False)
    with console.capture() as captured:
        console.print(render(found), markup=False)
    return [line.split() for line in captured.get().splitlines() if line.strip()]


def test_parameters_are_shown_with_the_path_of_their_template() -> None:
    assert lines(RESPONSE) == [
        ["A", "\ufffdsite"],
        ["PARAMETER", "TYPE", "DEFAULT", "VALUE", "DESCRIPTION"],
        ["size", "Number", "3", "4", "How", "many"],
        ["web/count", "Number", "3", "How", "many"],
        ["web/db/key", "Number", "******", "How", "many"],
    ]


def test_a_template_without_parameters() -> None:
    assert lines({"Description": "d", "Parameters": {}}) == [
        ["d:", "the", "template", "is", "valid"]
    ]


def test_each_finding_of_an_error_is_a_separate_one() -> None:
    found = [{"place": "resources.a", "reason": "Wrong.", "remedy": "Mend it.", "type": "X"}]
    error = {"type": "HTTPBadRequest", "message": "all of it", "findings": found}
    raised = response_error(400, {"error": error})
    assert str(raised) == "resources.a: Wrong. Mend it."
    assert [dict(one) for one in raised.findings] == found
    assert response_error(404, {"error": {"type": "X", "message": "m"}}).findings == []
