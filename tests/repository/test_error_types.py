"""docs/reference/errors.md has a section for each error type, with its status."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

from engine import errors
from hub.api.error_middleware import STATUS, STATUS_OF_CODE

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
NAMES_TYPE = re.compile(r"\b(?:code|findings?|Finding|Invalid)\b|^[A-Z_]+ = \"[A-Z]\w+\"$", re.M)
#: The syntax of the modules that name an error type.
NODES = [
    node
    for folder in ("engine", "hub", "channels")
    for file in sorted((ROOT / folder).rglob("*.py"))
    if NAMES_TYPE.search(text := file.read_text())
    for node in ast.walk(ast.parse(text))
]
#: Types of errors that no request gets, because they end a process when it starts, or a
#: command.
AT_START = {
    "ApiWithoutCells",
    "CellMissing",
    "ClocksApart",
    "DatabaseIsCell",
    "DatabaseNewer",
    "DatabaseOlder",
    "DatabaseUnreleased",
    "DifferentClusters",
    "InvalidSettings",
    "MigrationMissing",
    "MoveArrived",
    "MoveDiffers",
    "MoveUnderWay",
    "NoMove",
    "NotItsReplica",
    "OlderProcesses",
    "OtherCell",
    "OtherKey",
    "OtherPlacement",
    "OtherVersion",
    "ProjectsOfOtherCells",
    "ReplicaNotPrimary",
    "SameCell",
    "TransactionPooling",
    "TwoPrimaries",
    "UnknownCell",
    "UnknownProject",
}
#: Types whose call is too indirect to be found: the class's own name, or a table of refusals.
OTHERS = {
    "HookAlreadyAnswered": {409},
    "HookExpired": {409},
    "HookSuperseded": {409},
    "StackStopped": {409},
    "LimitReached": {400},
    "Unavailable": {503},
}
FunctionDef = (ast.FunctionDef, ast.AsyncFunctionDef)


def called_name(call: ast.Call) -> str:
    return getattr(call.func, "id", "") or getattr(call.func, "attr", "")


def code_positions() -> dict[str, set[int]]:
    """For each function and class with an argument `code`: its possible positions in a call."""
    found: dict[str, set[int]] = defaultdict(set)
    found["Finding"].add(list(errors.Finding.__dataclass_fields__).index("code"))
    found["HeadgateError"].add(1)
    for node in NODES:
        if isinstance(node, FunctionDef):
            names = [one.arg for one in node.args.args if one.arg not in ("self", "cls")]
            if "code" in names:
                found[node.name].add(names.index("code"))
    return found


def constants() -> dict[str, str]:
    return {
        target.id: node.value.value
        for node in NODES
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def arguments(call: ast.Call, positions: dict[str, set[int]]) -> Iterator[ast.expr]:
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "code")
    for position in positions.get(called_name(call), ()):
        yield from call.args[position : position + 1]


def raised_types() -> dict[str, set[int]]:
    """Each type in the source, with the statuses of the classes that are raised with it."""
    positions, values = code_positions(), constants()
    of_class = {of.__name__: status for of, status in STATUS}
    found: dict[str, set[int]] = defaultdict(set)
    for call in (node for node in NODES if isinstance(node, ast.Call)):
        for argument in arguments(call, positions):
            for part in ast.walk(argument):
                value = (
                    values.get(part.id)
                    if isinstance(part, ast.Name)
                    else getattr(part, "value", None)
                )
                if isinstance(value, str) and re.fullmatch(r"[A-Z][A-Za-z]+", value):
                    found[value].add(of_class.get(called_name(call), 400))
    return {
        name: {STATUS_OF_CODE[name]} if name in STATUS_OF_CODE else statuses
        for name, statuses in found.items()
    }


def warnings() -> set[str]:
    """The codes in the table of warnings."""
    text = (REFERENCE / "http-api.md").read_text()
    table = text.partition("\n## Warnings\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([A-Z]\w+)`", table, re.M))


SECTIONS = dict(re.findall(r"^### (\w+)\n(.+?)$", (REFERENCE / "errors.md").read_text(), re.M))
#: Types whose status the call does not show: it is in a subclass, or in the handler that responds.
GIVEN = {
    "DigestChanged": {409},
    "InternalError": {500},
    "MethodNotAllowed": {405},
    "Undecryptable": {409},
}
RAISED = {**raised_types(), **OTHERS, **GIVEN}


def test_each_error_type_has_a_section_and_no_other_has() -> None:
    assert set(SECTIONS) == set(RAISED) - warnings()


@pytest.mark.parametrize("name", sorted(set(SECTIONS) - AT_START))
def test_a_section_begins_with_the_status_of_the_type(name: str) -> None:
    number = SECTIONS[name].partition(".")[0]
    assert HTTPStatus(int(number))
    assert int(number) in RAISED[name]
