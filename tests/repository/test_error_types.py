"""hub/error_types lists each error type that the product can raise, and no other. Its examples have
the texts of the product, and docs/reference/errors.md a section for each type."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import errors
from hub.api.error_middleware import STATUS, STATUS_OF_CODE, status_of
from hub.error_types.catalog import ERROR_TYPES, GROUPS

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
NAMES_TYPE = re.compile(r"\b(?:code|findings?|Finding|Invalid)\b|^[A-Z_]+ = \"[A-Z]\w+\"$", re.M)
#: The syntax of the modules that name an error type.
NODES = [
    node
    for folder in ("engine", "hub", "channels")
    for file in sorted((ROOT / folder).rglob("*.py"))
    if file.parent.name != "error_types" and NAMES_TYPE.search(text := file.read_text())
    for node in ast.walk(ast.parse(text))
]
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


#: Types whose status the call does not show: it is in a subclass, or in the handler that responds.
GIVEN = {
    "DigestChanged": {409},
    "InternalError": {500},
    "MethodNotAllowed": {405},
    "Undecryptable": {409},
}
RAISED = {**raised_types(), **OTHERS, **GIVEN}
AT_START = {one.name for group in GROUPS if group.at_start for one in group.types}


def test_each_error_type_is_listed_once_and_no_other_is() -> None:
    names = [one.name for group in GROUPS for one in group.types]
    assert sorted(names) == sorted(set(RAISED) - warnings())


def test_each_error_type_has_a_section_in_the_reference() -> None:
    text = (REFERENCE / "errors.md").read_text()
    assert set(re.findall(r"^### (\w+)$", text, re.M)) == set(ERROR_TYPES)


@pytest.mark.parametrize("name", sorted(set(ERROR_TYPES) - AT_START))
def test_an_example_has_a_status_of_its_type(name: str) -> None:
    assert status_of(ERROR_TYPES[name].example) in RAISED[name]


def literal_parts(node: ast.AST) -> tuple[str, ...]:
    """A text of the source: its parts between the values that are inserted."""
    if isinstance(node, ast.Constant):
        return (node.value,) if isinstance(node.value, str) else ()
    if not isinstance(node, ast.JoinedStr):
        return ()
    text = "".join(str(getattr(one, "value", "")) if isinstance(one, ast.Constant) else "\0"
                   for one in node.values)  # fmt: skip
    return tuple(text.split("\0"))


#: The texts of the modules that raise errors, A text that consists of inserted values would fit
#: everything.
TEXTS = {parts for node in NODES if len("".join(parts := literal_parts(node))) > 6}


#: Types whose reason a library writes, or that is put together from several texts.
COMPOSED = {"DataRefused", "PlanRefused"}


def fits(text: str, parts: tuple[str, ...]) -> bool:
    if not (text.startswith(parts[0]) and text.endswith(parts[-1])):
        return False
    return re.fullmatch(".*".join(map(re.escape, parts)), text, re.S) is not None


def of_source(text: str) -> bool:
    return any(fits(text, parts) for parts in TEXTS)


@pytest.mark.parametrize("name", sorted(ERROR_TYPES))
def test_an_example_has_the_texts_of_the_product(name: str) -> None:
    kind = ERROR_TYPES[name]
    assert name in COMPOSED or of_source(kind.reason)
    assert name in COMPOSED or not kind.fix or of_source(kind.fix)
