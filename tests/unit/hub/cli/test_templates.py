"""headgate template validate: what is sent, and what is made of the answer."""

from hub.cli.client import refused
from hub.cli.templates import picture
from tests.support.program import Json

ONE: Json = {"Type": "Number", "Description": "How many", "Default": 3}
FOUND: Json = {
    "Description": "A \x1bsite",
    "Parameters": {"size": ONE | {"Value": 4}},
    "NestedParameters": {
        "web": {
            "Parameters": {"count": ONE},
            "NestedParameters": {"db": {"Parameters": {"key": ONE | {"Default": "******"}}}},
        }
    },
}


def lines(found: Json) -> list[list[str]]:
    from rich.console import Console

    console = Console(width=120, highlight=False)
    with console.capture() as captured:
        console.print(picture(found), markup=False)
    return [line.split() for line in captured.get().splitlines() if line.strip()]


def test_parameters_are_shown_with_the_path_of_their_template() -> None:
    assert lines(FOUND) == [
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


def test_findings_of_a_refusal_are_kept_one_by_one() -> None:
    found = [{"place": "resources.a", "reason": "Wrong.", "remedy": "Mend it.", "type": "X"}]
    error = {"type": "HTTPBadRequest", "message": "all of it", "findings": found}
    said = refused(400, {"error": error})
    assert (str(said), said.findings) == ("resources.a: Wrong. Mend it.", found)
    assert refused(404, {"error": {"type": "X", "message": "m"}}).findings == []
