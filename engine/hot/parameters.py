"""Parameters: their schemas in the template, and the values they take. Values are converted once,
when a stack is defined; functions see converted values only."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite

from engine.errors import Findings, one_of
from engine.hot.constraints import as_json, broken_rule
from engine.hot.effort import Effort
from engine.hot.integers import can_be_kept
from engine.hot.json_text import read_json
from engine.hot.schema import Constraint
from engine.words import Json

#: ``OS::region`` has no value in Heat either, so it is no parameter here.
PSEUDO = ("OS::stack_name", "OS::stack_id", "OS::project_id")


class ParameterKind(StrEnum):
    STRING = "string"
    NUMBER = "number"
    LIST = "comma_delimited_list"
    JSON = "json"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class ParameterSchema:
    """One entry of the template's ``parameters``. default is None when there is none."""

    name: str
    kind: ParameterKind
    default: Json = None
    label: str = ""
    description: str = ""
    hidden: bool = False
    immutable: bool = False
    constraints: tuple[Constraint, ...] = ()
    tags: tuple[str, ...] = ()


class BadValue(Exception):
    """A value that its parameter cannot take; the text says why, and may show the value.

    safe: what may be said when the value is hidden.
    """

    def __init__(self, reason: str, safe: str = "its hidden value cannot be taken") -> None:
        super().__init__(reason)
        self.safe = safe


def convert(kind: ParameterKind, value: Json) -> Json:
    """Return the value that functions see, or raise BadValue."""
    return CONVERSIONS[kind](value)


def check_value(schema: ParameterSchema, value: Json, effort: Effort | None = None) -> Json:
    """Return the converted value, or raise BadValue when it breaks a rule."""
    converted = convert(schema.kind, value)
    for rule in schema.constraints:
        if said := broken_rule(rule, converted, effort):
            hidden = f"its hidden value breaks a constraint of {rule.kind}"
            raise BadValue(said, rule.description or hidden)
    return converted


def parameter_values(
    schemas: Mapping[str, ParameterSchema],
    given: Mapping[str, Json],
    defaults: Mapping[str, Json],
    findings: Findings,
    effort: Effort | None = None,
) -> dict[str, Json]:
    """Return the converted value of every parameter that has a good one; null counts as none.

    given: from the request and the environment; defaults: the environment's parameter_defaults.
    """
    for name in given:
        if name not in schemas:
            findings.add(
                "",
                f"The Parameter ({name}) was not defined in template.",
                one_of(name, list(schemas), "Parameters"),
                "UnknownUserParameter",
            )
    values: dict[str, Json] = {}
    for name, schema in schemas.items():
        value = next(
            (
                one
                for one in (given.get(name), defaults.get(name), schema.default)
                if one is not None
            ),
            None,
        )
        if value is None:
            reason = f"The Parameter ({name}) was not provided."
            remedy = "Give it a value, or a default in the template."
            findings.add("", reason, remedy, "UserParameterMissing")
            continue
        try:
            values[name] = check_value(schema, value, effort)
        except BadValue as bad:
            said = bad.safe if schema.hidden else str(bad)
            findings.add("", f"Parameter '{name}' is invalid: {said}")
    return values


def shown_value(kind: ParameterKind, value: Json) -> str:
    """Return a converted value as the Orchestration API shows it: always text."""
    match kind:
        case ParameterKind.LIST:
            return ",".join(value)
        case ParameterKind.JSON:
            return json.dumps(value)
        case _:
            return str(value)


def _string(value: Json) -> Json:
    if isinstance(value, dict | list):
        raise BadValue("Value must be a string")
    return str(value)


def _number(value: Json) -> Json:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise BadValue(f"{as_json(value)} is not a number")
    return read_number(value)


def read_number(text: str) -> int | float:
    """int if it parses, else float; raises BadValue. Whatever JSON cannot say is refused."""
    try:
        number = _int_or_float(text)
    except ValueError:
        raise BadValue(f"could not convert string to float: {text[:200]!r}") from None
    if isinstance(number, float) and isfinite(number):
        return number
    if isinstance(number, int) and can_be_kept(number):
        return number
    raise BadValue(f"{text[:200]} is too large")


def _int_or_float(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _list(value: Json) -> Json:
    if isinstance(value, list):
        return [item_text(item) for item in value]
    if not isinstance(value, str):
        raise BadValue("Value must be a comma-delimited list string")
    return value.split(",") if value else []


def item_text(item: Json) -> str:
    """An item of a list as text: maps and lists as JSON."""
    return as_json(item) if isinstance(item, dict | list) else str(item)


def _json(value: Json) -> Json:
    if isinstance(value, dict | list) or value == "":
        return value
    if not isinstance(value, str):
        return value
    try:
        return read_json(value)
    except ValueError as error:
        raise BadValue(f"Value must be valid JSON: {error}") from None


TRUE = frozenset({"t", "true", "on", "y", "yes", "1"})
FALSE = frozenset({"f", "false", "off", "n", "no", "0"})


def _boolean(value: Json) -> Json:
    text = str(value).strip().lower()
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    known = ", ".join(f"'{word}'" for word in sorted(TRUE | FALSE))
    raise BadValue(f"Unrecognized value {as_json(value)}, acceptable values are: {known}")


CONVERSIONS: Mapping[ParameterKind, Callable[[Json], Json]] = {
    ParameterKind.STRING: _string,
    ParameterKind.NUMBER: _number,
    ParameterKind.LIST: _list,
    ParameterKind.JSON: _json,
    ParameterKind.BOOLEAN: _boolean,
}
