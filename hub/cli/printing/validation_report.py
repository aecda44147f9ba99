"""Reports of `headgate template validate` for editors and CI: JSON, SARIF and workflow commands of
GitHub Actions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote as quote_path

from engine.errors import Finding
from hub.cli.printing.formats import format_json
from hub.cli.printing.tables import plain

Json = Any
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class OutputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


class Level(StrEnum):
    """Names in SARIF and in workflow commands."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class ReportedFinding:
    """An error or a warning. file: as the user names it. line, column: from 1, in Unicode
    characters; None if the position is unknown. place: the path in the document. quote: the line,
    and a caret below the column; None if the line is unknown or has a secret.
    """

    level: Level
    code: str
    message: str
    remedy: str
    place: str
    file: str
    line: int | None = None
    column: int | None = None
    quote: str | None = None

    @property
    def text(self) -> str:
        """Place, reason and remedy."""
        reason = ": ".join(part for part in (self.place, self.message) if part)
        return plain(f"{reason.rstrip('.')}. {self.remedy}" if self.remedy else reason)


def from_error(
    document: Mapping[str, Json], names: Mapping[str, str], file: str
) -> ReportedFinding:
    """An error of a response. names: of files, where the server has other ones. file: the name of
    the template, for an error without a file.
    """
    known = document.get("file")
    return ReportedFinding(
        Level.ERROR,
        document["type"],
        document["reason"],
        document["remedy"],
        document["place"],
        names.get(known, known) if known else file,
        document.get("line"),
        document.get("column"),
        document.get("quote"),
    )


def from_warning(
    document: Mapping[str, Json], names: Mapping[str, str], file: str
) -> ReportedFinding:
    """A warning of a response; its message contains the remedy. names, file: as `from_error`."""
    known = document["file"]
    return ReportedFinding(
        Level.WARNING,
        document["code"],
        document["message"],
        "",
        document["path"],
        names.get(known, known) if known else file,
        document["line"],
        document["column"],
        document.get("quote"),
    )


def from_local(finding: Finding) -> ReportedFinding:
    """An error that the command line found itself, with its file."""
    line, column = finding.line or None, finding.column or None
    return ReportedFinding(
        Level.ERROR, finding.code, finding.reason, finding.remedy, finding.place, finding.file,
        line, column, finding.quote or None,
    )  # fmt: skip


def report(found: Sequence[ReportedFinding], output: OutputFormat) -> str:
    """The report in one of the formats for programs."""
    match output:
        case OutputFormat.SARIF:
            return format_json(sarif_log(found))
        case OutputFormat.GITHUB:
            return "\n".join(workflow_commands(found))
        case _:
            return format_json(json_report(found))


def json_report(found: Sequence[ReportedFinding]) -> dict[str, Json]:
    valid = all(one.level != Level.ERROR for one in found)
    return {"valid": valid, "findings": [asdict(one) for one in found]}


def sarif_log(found: Sequence[ReportedFinding]) -> dict[str, Json]:
    """A log of SARIF 2.1.0 with one run. Its rules are the codes of the findings."""
    codes = list(dict.fromkeys(one.code for one in found))
    driver = {
        "name": "Headgate",
        "version": version("headgate"),
        "rules": [{"id": code} for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(one, codes.index(one.code)) for one in found],
    }
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _sarif_result(one: ReportedFinding, rule: int) -> dict[str, Json]:
    # Code scanning requires a line of every result.
    region: dict[str, Json] = {"startLine": one.line or 1}
    if one.column:
        region["startColumn"] = one.column
    if one.quote:
        shown = "\n".join(map(plain, one.quote.splitlines()))
        region["snippet"] = {"text": shown.partition("\n")[0], "rendered": {"text": shown}}
    location: dict[str, Json] = {
        "physicalLocation": {"artifactLocation": {"uri": _uri(one.file)}, "region": region}
    }
    if one.place:
        location["logicalLocations"] = [{"fullyQualifiedName": plain(one.place)}]
    return {
        "ruleId": one.code,
        "ruleIndex": rule,
        "level": one.level,
        "message": {"text": one.text},
        "locations": [location],
    }


def _uri(file: str) -> str:
    """A relative reference, or the URI of an absolute path."""
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote_path(path.as_posix())


def workflow_commands(found: Sequence[ReportedFinding]) -> Iterator[str]:
    """A workflow command of GitHub Actions for each finding: an annotation of its line."""
    for one in found:
        properties = {"file": one.file, "line": one.line, "col": one.column, "title": one.code}
        written = ",".join(
            f"{name}={_escape_property(str(value))}"
            for name, value in properties.items()
            if value is not None
        )
        text = "\n".join([one.text, *map(plain, (one.quote or "").splitlines())])
        yield f"::{one.level} {written}::{_escape_data(text)}"


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")
