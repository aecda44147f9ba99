"""Parameter schemas and values. Values are converted once, when a stack is defined; functions
receive converted values.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import Final

from engine.errors import ENVIRONMENT, Finding, Findings, beginning_of, one_of
from engine.hot.expressions.expression import in_heat_notation
from engine.hot.functions.cost_budget import CostBudget
from engine.hot.schema.constraints import as_json, find_violation, remedy_of
from engine.hot.schema.type_schema import Constraint
from engine.hot.schema.value_schema import HIDDEN_VIOLATION
from engine.hot.syntax.json_text import is_storable_integer, parse_json, why_invalid
from engine.words import Json

#: Pseudo parameters. `OS::region` has no value in Heat either, so it is not one.
PSEUDO_PARAMETERS = ("OS::stack_name", "OS::stack_id", "OS::project_id")
SCHEMA_REMEDY = "Correct the value that you give for the parameter."


class ParameterKind(StrEnum):
    STRING = "string"
    NUMBER = "number"
    LIST = "comma_delimited_list"
    JSON = "json"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class ParameterSchema:
    """One entry of the template's `parameters`. default: None if there is none."""

    name: str
    kind: ParameterKind
    default: Json = None
    label: str = ""
    description: str = ""
    hidden: bool = False
    immutable: bool = False
    constraints: tuple[Constraint, ...] = ()
    tags: tuple[str, ...] = ()


NUMBER_REMEDY: Final = "Write a number, such as 5."


class InvalidValue(Exception):
    """A value that its parameter or property cannot have; the message may contain the value.

    safe: message without the value, for hidden ones. remedy: what to do, or "". heat_reason: Heat's
    message, if it is not the reason; "" otherwise.
    """

    def __init__(
        self,
        reason: str,
        safe: str = "its hidden value is not valid",
        remedy: str = "",
        heat_reason: str = "",
    ) -> None:
        super().__init__(reason)
        self.safe = safe
        self.remedy = remedy
        self.heat_reason = heat_reason


def convert(kind: ParameterKind, value: Json) -> Json:
    """Return the converted value. Raises InvalidValue."""
    return CONVERSIONS[kind](value)


def check_value(schema: ParameterSchema, value: Json, budget: CostBudget | None = None) -> Json:
    """Return the converted value. Raises InvalidValue, also for a violated constraint."""
    converted = convert(schema.kind, value)
    for rule in schema.constraints:
        if violation := find_violation(rule, converted, budget):
            if schema.kind is ParameterKind.BOOLEAN:  # as it was sent: no, "false", 0
                violation = find_violation(rule, value, budget) or violation
            if rule.kind == "schema":
                raise InvalidValue(violation, HIDDEN_VIOLATION, SCHEMA_REMEDY)
            hidden = f"its hidden value breaks a constraint of {rule.kind}"
            raise InvalidValue(violation, rule.description or hidden, remedy_of(rule))
    return converted


def convert_parameters(
    schemas: Mapping[str, ParameterSchema],
    given: Mapping[str, Json],
    defaults: Mapping[str, Json],
    findings: Findings,
    budget: CostBudget | None = None,
    in_environment: Collection[str] = (),
    others: Collection[str] = (),
) -> dict[str, Json]:
    """Return the converted values of all parameters with a valid value; null means not given.

    given: from the request and the environment. defaults: the environment's parameter_defaults.
    in_environment: names of given parameters whose values are in the environment. others: names of
    parameters of the template that are not in `schemas`, for suggestions.
    """
    has_hidden = any(one.hidden for one in schemas.values())
    for name in given:
        if name not in schemas:
            findings.add_finding(
                Finding(
                    "",
                    f"The Parameter ({name}) was not defined in template.",
                    one_of(name, [*schemas, *others], "Parameters"),
                    "UnknownUserParameter",
                    file=ENVIRONMENT if name in in_environment else "",
                    inner_place=f"parameters.{name}",
                    secret=has_hidden,
                )
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
            findings.add("", reason, remedy, "UserParameterMissing", at=f"parameters.{name}")
            continue
        try:
            values[name] = check_value(schema, value, budget)
        except InvalidValue as bad:
            reason = bad.safe if schema.hidden else str(bad)
            # The schema is in the template: its position helps.
            begin = f"Parameter '{name}' is invalid: "
            reason = f"{begin}{reason}"
            heat_reason = "" if schema.hidden else bad.heat_reason
            sentence = f"{begin}{heat_reason}" if heat_reason else ""
            if bad.remedy == SCHEMA_REMEDY:
                findings.add(f"parameters.{name}.schema", reason, bad.remedy)
                continue
            file, at = _position_of(name, given, defaults, in_environment)
            findings.add_finding(
                Finding(
                    "", reason, bad.remedy,
                    file=file, inner_place=at, secret=schema.hidden, sentence=sentence,
                )
            )  # fmt: skip
    return values


def _position_of(
    name: str,
    given: Mapping[str, Json],
    defaults: Mapping[str, Json],
    in_environment: Collection[str],
) -> tuple[str, str]:
    """Return the file that has the value of a parameter, and the place there; for a value in the
    request, that of its declaration."""
    if given.get(name) is not None:
        return ENVIRONMENT if name in in_environment else "", f"parameters.{name}"
    if defaults.get(name) is not None:
        return ENVIRONMENT, f"parameter_defaults.{name}"
    return "", f"parameters.{name}.default"


def display_value(kind: ParameterKind, value: Json) -> str:
    """Return a converted value as text, as the Orchestration API shows it."""
    match kind:
        case ParameterKind.LIST:
            return ",".join(value)
        case ParameterKind.JSON:
            return json.dumps(value)
        case _:
            return str(value)


def _string(value: Json) -> Json:
    if isinstance(value, dict | list):
        reason = "Value must be a string"
        raise InvalidValue(reason, reason, "Write a string.")
    return str(value)


def _number(value: Json) -> Json:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        reason = f"{as_json(value)} is not a number"
        raise InvalidValue(reason, "Value is not a number", NUMBER_REMEDY)
    return parse_number(value)


def parse_number(text: str) -> int | float:
    """Parse an int, or else a float. Raises InvalidValue, also for numbers that cannot be
    stored.
    """
    try:
        number = _int_or_float(text)
    except ValueError:
        shown = beginning_of(text)
        raise InvalidValue(
            f'"{shown}" is not a number',
            "Value is not a number",
            NUMBER_REMEDY,
            f"could not convert string to float: {shown!r}",
        ) from None
    if isinstance(number, float) and isfinite(number):
        return number
    if isinstance(number, int) and is_storable_integer(number):
        return number
    raise InvalidValue(
        f"{beginning_of(text)} is too large",
        "Value is too large",
        "Write it as a string, in a parameter of type string.",
    )


def _int_or_float(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _list(value: Json) -> Json:
    if isinstance(value, list):
        return [item_to_text(item) for item in value]
    if not isinstance(value, str):
        reason = "Value must be a comma-delimited list string"
        raise InvalidValue(reason, reason, 'Write a list, or text such as "a,b".')
    return value.split(",") if value else []


def item_to_text(item: Json) -> str:
    """Return a list item as text: maps and lists as JSON."""
    return as_json(item) if isinstance(item, dict | list) else str(item)


def _json(value: Json) -> Json:
    if isinstance(value, dict | list) or value == "":
        return value
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except ValueError as error:
        reason = "Value must be valid JSON"
        raise InvalidValue(
            f"{reason}: {error}",
            reason,
            "Correct the JSON, or write a map or a list.",
            f"{reason}: {why_invalid(value) or error}",
        ) from None


TRUE = frozenset({"t", "true", "on", "y", "yes", "1"})
FALSE = frozenset({"f", "false", "off", "n", "no", "0"})


def _boolean(value: Json) -> Json:
    text = str(value).strip().lower()
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    known = ", ".join(f"'{word}'" for word in sorted(TRUE | FALSE))
    reason = f"acceptable values are: {known}"
    shown = in_heat_notation(value)
    raise InvalidValue(
        f"Unrecognized value '{shown}', {reason}",
        f"Unrecognized value, {reason}",
        "Write true or false.",
    )


CONVERSIONS: Mapping[ParameterKind, Callable[[Json], Json]] = {
    ParameterKind.STRING: _string,
    ParameterKind.NUMBER: _number,
    ParameterKind.LIST: _list,
    ParameterKind.JSON: _json,
    ParameterKind.BOOLEAN: _boolean,
}
