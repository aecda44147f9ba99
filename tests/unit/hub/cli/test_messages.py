"""Messages of commands with -o json: one JSON object on each line of standard error."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from typer.testing import CliRunner, Result

from engine.errors import Finding, Invalid, Unavailable
from hub.cli.context import findings_error
from hub.cli.main import app
from hub.cli.messages import asks_for_json
from tests.unit.hub.cli.stub import Handler, running_stub

Json = Any
UNREACHABLE = "http://127.0.0.1:1"
FINDING = {
    "place": "resources.a.type", "reason": "Unknown type.", "remedy": "Correct it.", "type": "X",
    "file": "template", "line": 2, "column": 5, "quote": "a: b\n    ^",
}  # fmt: skip
WARNING = {"code": "DuplicateKey", "message": "Twice.", "path": "a.b", "file": "template",
           "line": 4, "column": 3}  # fmt: skip


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def only_error(done: Result, code: int = 1) -> Json:
    """The error, which is all that the command has printed."""
    assert (done.exit_code, done.stdout) == (code, ""), done.output
    (line,) = done.stderr.splitlines()
    (error,) = json.loads(line).values()
    assert json.loads(line) == {"error": error}
    assert {"type", "title", "message"} <= set(error)
    return error


def refusal(status: int, **keys: Json) -> Handler:
    error = {"type": "Refused", "message": "No.", "place": "p", "remedy": "Do.", **keys}

    async def handler(_: web.Request) -> web.StreamResponse:
        headers = {"X-Openstack-Request-Id": "req-1"}
        return web.json_response({"error": error}, status=status, headers=headers)

    return handler


@pytest.mark.parametrize(
    ("status", "title"),
    [
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (404, "Not Found"),
        (409, "Conflict"),
        (422, "Unprocessable Entity"),
        (429, "Too Many Requests"),
        (503, "Service Unavailable"),
    ],
)
async def test_an_error_of_the_server_is_its_document(status: int, title: str) -> None:
    async with running_stub(refusal(status, decided_by="ann")) as stub:
        arguments = ("hook", "list", "-o", "json", "--url", stub.url)
        error = only_error(await asyncio.to_thread(invoke, *arguments))
    assert error.pop("title").startswith(title.split(" ")[0])
    assert error == {
        "type": "Refused", "message": "No.", "place": "p", "remedy": "Do.", "decided_by": "ann",
        "status": status, "request_id": "req-1",
    }  # fmt: skip


async def test_findings_and_warnings_name_the_files_of_the_user(tmp_path: Path) -> None:
    template = tmp_path / "web.yaml"
    template.write_text("heat_template_version: 2021-04-16")
    handler = refusal(400, findings=[FINDING], warnings=[WARNING])
    async with running_stub(handler) as stub:
        arguments = ("stack", "create", "web", "-t", str(template), "--json", "--url", stub.url)
        done = await asyncio.to_thread(invoke, *arguments)
    warning, error = (json.loads(line) for line in done.stderr.splitlines())
    assert (done.exit_code, done.stdout) == (1, "")
    assert warning == {"warning": {**WARNING, "file": str(template)}}
    assert error["error"]["findings"] == [{**FINDING, "file": str(template)}]


@pytest.mark.parametrize("form", [("-o", "yaml"), ("--output", "json"), ("-ojson",), ("--json",)])
def test_a_server_that_does_not_respond(form: tuple[str, ...]) -> None:
    error = only_error(invoke("stack", "list", *form, "--url", UNREACHABLE))
    assert error["type"] == "ServerUnreachable"
    assert error["message"] == f"no response from {UNREACHABLE}: connection refused"
    assert error["remedy"].startswith("Start a server")


@pytest.mark.parametrize("form", [("-o", "table"), ("-o", "name"), ("-o", "jsonpath=a"), ()])
def test_other_formats_have_text(form: tuple[str, ...]) -> None:
    done = invoke("stack", "list", *form, "--url", UNREACHABLE)
    assert done.exit_code == 1
    assert done.stderr.startswith("headgate: no response from")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("stack", "lst", "-o", "json"), "No such command 'lst'. Did you mean 'list'?"),
        (("stack", "list", "--output=json", "--lmit", "1"), "No such option: --lmit"),
        (("stack", "create", "web", "-ojson"), "Missing option '--template'"),
        (("stack", "list", "--limit", "x", "--json"), "Invalid value for '--limit'"),
        (("stack", "list", "--json", "-o", "yaml"), "use either --json or --output"),
        (("stack", "list", "--json", "-o", "table"), "use either --json or --output"),
        (("stack", "update", "web", "--json"), "name a template with -t"),
        (("stack", "show", "web", "-o", "json", "--url", "x"), '"x" is not a valid URL'),
        (("template", "validate", "--json"), "name one template"),
    ],
)
def test_a_usage_error(arguments: tuple[str, ...], message: str) -> None:
    error = only_error(invoke(*arguments), 2)
    assert message in error["message"]
    assert error["type"] == "InvalidUsage"


def test_a_template_that_cannot_be_read(tmp_path: Path) -> None:
    template = tmp_path / "web.yaml"
    create = ("stack", "create", "web", "-t", str(template), "-o", "json", "--url", UNREACHABLE)
    assert str(template) in only_error(invoke(*create))["message"]
    template.write_text("resources:\n  a: [\n")
    (finding,) = only_error(invoke(*create))["findings"]
    assert (finding["file"], finding["line"]) == (str(template), 2)


def test_an_error_of_the_settings_has_its_findings() -> None:
    error = findings_error(Invalid([Finding("server.listen", "No port.", "Add one.")]))
    assert (error["place"], error["message"], error["remedy"]) == (
        "server.listen", "No port.", "Add one.",
    )  # fmt: skip
    (finding,) = error["findings"]
    assert finding["reason"] == "No port." and finding["file"] is None
    unavailable = findings_error(Unavailable("No disk", place="", remedy="Add one"))
    assert (unavailable["type"], unavailable["message"]) == ("Unavailable", "No disk")


def test_a_context_that_does_not_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADGATE_CONTEXTS", str(tmp_path / "contexts.json"))
    error = only_error(invoke("stack", "list", "--json", "--context", "none"), 2)
    assert 'there is no context "none"' in error["message"]


def test_the_report_of_a_validation_is_json_with_its_errors(tmp_path: Path) -> None:
    template = tmp_path / "web.yaml"
    template.write_text("heat_template_version: 2021-04-16")
    validate = ("template", "validate", str(template), "--output", "json", "--url", UNREACHABLE)
    assert only_error(invoke(*validate))["type"] == "ServerUnreachable"


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("stack list --json", True),
        ("stack list -o yaml", True),
        ("stack list --output=yaml", True),
        ("stack list -o table", False),
        ("stack list -o", False),
        ("stack show json", False),
    ],
)
def test_words_that_ask_for_json(words: str, asked: bool) -> None:
    assert asks_for_json(words.split(" ")) is asked
