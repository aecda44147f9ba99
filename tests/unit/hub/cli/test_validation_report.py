"""Reports of headgate template validate: JSON, SARIF 2.1.0 and workflow commands of GitHub."""

import asyncio
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from hub.cli.main import app
from hub.cli.printing.validation_report import (
    Level,
    OutputFormat,
    ReportedFinding,
    report,
    sarif_log,
    workflow_commands,
)
from tests.support.program import Json
from tests.unit.hub.cli.stub import respond_with, running_stub

ERROR = ReportedFinding(
    Level.ERROR, "StackValidationFailed", 'got 50%\r\n"big"', "Correct it.",
    "resources.a,b", "site/a:b, c.yaml", 3, 7, "  a: 50%\x1b\n      ^",
)  # fmt: skip
WARNING = ReportedFinding(Level.WARNING, "DuplicateKey", "Twice\x1b.", "", "", "env.yaml")

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
POSITIVE = {"type": "integer", "minimum": 1}


def closed(required: list[str], **properties: Json) -> Json:
    return {"type": "object", "additionalProperties": False, "required": required,
            "properties": properties}  # fmt: skip


#: The parts of the schema of SARIF 2.1.0 that reports use.
SNIPPET = closed(["text", "rendered"], text={"type": "string"}, rendered=TEXT)
REGION = closed(["startLine"], startLine=POSITIVE, startColumn=POSITIVE, snippet=SNIPPET)
ARTIFACT = closed(["uri"], uri={"type": "string", "pattern": "^[!-~]+$"})
PHYSICAL = closed(["artifactLocation"], artifactLocation=ARTIFACT, region=REGION)
LOGICAL = {
    "type": "array",
    "items": closed(["fullyQualifiedName"], fullyQualifiedName={"type": "string"}),
}
RESULT = closed(
    ["message"],
    ruleId={"type": "string"},
    ruleIndex={"type": "integer", "minimum": -1},
    level={"enum": ["none", "note", "warning", "error"]},
    message=TEXT,
    locations={
        "type": "array", "minItems": 1,
        "items": closed([], physicalLocation=PHYSICAL, logicalLocations=LOGICAL),
    },
)  # fmt: skip
DRIVER = closed(
    ["name"],
    name={"type": "string"},
    version={"type": "string"},
    rules={
        "type": "array",
        "uniqueItems": True,
        "items": closed(["id"], id={"type": "string"}),
    },
)
RUN = closed(
    ["tool", "results"],
    tool=closed(["driver"], driver=DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results={"type": "array", "items": RESULT},
)
LOG = closed(
    ["version", "runs"],
    **{"$schema": {"type": "string", "format": "uri"}},
    version={"enum": ["2.1.0"]},
    runs={"type": "array", "items": RUN},
)


def test_a_sarif_log_has_the_shape_of_the_standard() -> None:
    Draft202012Validator(LOG).validate(sarif_log([ERROR, WARNING, ERROR]))
    Draft202012Validator(LOG).validate(sarif_log([]))


def test_a_sarif_result_names_the_rule_the_file_and_the_position() -> None:
    (run,) = sarif_log([WARNING, ERROR, WARNING])["runs"]
    rules = [one["id"] for one in run["tool"]["driver"]["rules"]]
    assert rules == ["DuplicateKey", "StackValidationFailed"]
    assert [one["ruleIndex"] for one in run["results"]] == [0, 1, 0]
    warning, error, _ = run["results"]
    assert (warning["level"], error["level"]) == ("warning", "error")
    (where,) = error["locations"]
    assert where == {
        "physicalLocation": {
            "artifactLocation": {"uri": "site/a%3Ab%2C%20c.yaml"},
            "region": {
                "startLine": 3,
                "startColumn": 7,
                "snippet": {
                    "text": "  a: 50%\ufffd",
                    "rendered": {"text": "  a: 50%\ufffd\n      ^"},
                },
            },
        },
        "logicalLocations": [{"fullyQualifiedName": "resources.a,b"}],
    }
    (where,) = warning["locations"]
    assert where["physicalLocation"]["region"] == {"startLine": 1}


def test_an_absolute_path_is_a_file_uri_in_sarif() -> None:
    (run,) = sarif_log([ReportedFinding(Level.ERROR, "X", "m", "", "", "/a b/t.yaml")])["runs"]
    location = run["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"] == {"uri": "file:///a%20b/t.yaml"}


def test_workflow_commands_are_escaped() -> None:
    assert list(workflow_commands([ERROR, WARNING])) == [
        "::error file=site/a%3Ab%2C c.yaml,line=3,col=7,title=StackValidationFailed::"
        'resources.a,b: got 50%25\ufffd%0A"big". Correct it.%0A  a: 50%25\ufffd%0A      ^',
        "::warning file=env.yaml,title=DuplicateKey::Twice\ufffd.",
    ]


def test_a_json_report_has_every_field() -> None:
    found = json.loads(report([ERROR, WARNING], OutputFormat.JSON))
    assert found["valid"] is False
    assert found["findings"][0] == {
        "level": "error", "code": "StackValidationFailed", "message": 'got 50%\r\n"big"',
        "remedy": "Correct it.", "place": "resources.a,b", "file": "site/a:b, c.yaml",
        "line": 3, "column": 7, "quote": "  a: 50%\x1b\n      ^",
    }  # fmt: skip
    assert json.loads(report([WARNING], OutputFormat.JSON))["valid"] is True
    assert report([], OutputFormat.GITHUB) == ""


FINDING = {
    "place": "resources.a.type", "reason": "is unknown", "remedy": "Correct it.",
    "type": "Invalid", "file": "in.yaml", "line": 2, "column": 4, "quote": "  a: b\n  ^",
}  # fmt: skip
INVALID = {"error": {"type": "HTTPBadRequest", "message": "", "findings": [FINDING]}}
DUPLICATE = {
    "code": "DuplicateKey", "message": "Twice.", "path": "a.b", "file": "template",
    "line": 4, "column": 3, "quote": "b: 1\n^",
}  # fmt: skip
VALID = {"Description": "", "Parameters": {}, "warnings": [DUPLICATE]}
TEMPLATE = "heat_template_version: 2018-08-31\nresources: {a: {type: in.yaml}}\n"


async def validated(
    folder: Path, response: Json, status: int, *options: str, text: str = TEMPLATE
) -> tuple[int, str, Json]:
    """The exit code, standard output, and the body that the stub got."""
    (folder / "sub").mkdir()
    (folder / "sub" / "t.yaml").write_text(text)
    (folder / "sub" / "in.yaml").write_text("resources: {}\n")
    async with running_stub(respond_with(response, status)) as stub:
        arguments = ["template", "validate", "sub/t.yaml", *options, "--url", stub.url]
        done = await asyncio.to_thread(CliRunner().invoke, app, arguments)
        body = json.loads(stub.seen[0].body) if stub.seen else None
    return done.exit_code, done.stdout, body


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


async def test_an_error_in_a_nested_template_is_an_annotation_of_its_file(tmp_path: Path) -> None:
    code, out, _ = await validated(tmp_path, INVALID, 400, "--output", "github")
    assert (code, out) == (
        1,
        "::error file=sub/in.yaml,line=2,col=4,title=Invalid::"
        "resources.a.type: is unknown. Correct it.%0A  a: b%0A  ^\n",
    )


async def test_warnings_alone_are_no_failure(tmp_path: Path) -> None:
    code, out, body = await validated(tmp_path, VALID, 200, "--output", "json", "--strict")
    found = json.loads(out)
    assert (code, found["valid"], body["strict"]) == (0, True, True)
    (warning,) = found["findings"]
    assert (warning["file"], warning["line"], warning["level"]) == ("sub/t.yaml", 4, "warning")
    assert warning["quote"] == "b: 1\n^"


@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        ("a: 1\n\tb: 2\n", 2, 1, "Indent with spaces"),
        ("resources:\n  a: {type: gone.yaml}\n", 2, 7, "Correct the name, or create the file."),
        ("outputs:\n  a:\n    value: {get_file: no.txt}\n", 3, 13, "no.txt"),
    ],
)
async def test_what_cannot_be_sent_is_a_finding_too(
    tmp_path: Path, text: str, line: int, column: int, part: str
) -> None:
    code, out, body = await validated(
        tmp_path, VALID, 200, "--output", "sarif", text=text
    )  # fmt: skip
    (result,) = json.loads(out)["runs"][0]["results"]
    location = result["locations"][0]["physicalLocation"]
    assert (code, body, location["artifactLocation"]["uri"]) == (1, None, "sub/t.yaml")
    region = location["region"]
    assert (region["startLine"], region["startColumn"]) == (line, column)
    quoted, caret = region["snippet"]["rendered"]["text"].split("\n")
    assert quoted == region["snippet"]["text"] == text.splitlines()[line - 1].replace("\t", " ")
    assert caret == " " * (column - 1) + "^"
    assert part in result["message"]["text"]


async def test_an_unusable_response_is_no_report(tmp_path: Path) -> None:
    code, out, _ = await validated(tmp_path, {"error": {"message": "no"}}, 500, "--output", "json")
    assert (code, out) == (1, "")
