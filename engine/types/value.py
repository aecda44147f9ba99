"""OS::Heat::Value: returns its property as an attribute, optionally converted."""

from collections.abc import Callable, Mapping

import orjson

from engine.errors import Findings, Quoting, public
from engine.hot.schema.parameters import InvalidValue, parse_number
from engine.hot.schema.type_schema import Attribute, Constraint, Kind, TypeSchema, updatable
from engine.types.contract import Call, Done, Failed, InternalType, Outcome
from engine.types.text_cleaning import as_text
from engine.words import Json

_TRUE = frozenset({"t", "true", "on", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "off", "n", "no", "0"})


class Value(InternalType):
    computes_only = True
    schema = TypeSchema(
        "OS::Heat::Value",
        description="Returns its property as an attribute.",
        properties={
            "value": updatable(Kind.ANY, "The value.", required=True),
            "type": updatable(
                Kind.STRING,
                "The type to convert the value to.",
                constraints=(
                    Constraint(
                        "allowed_values",
                        allowed=("string", "number", "comma_delimited_list", "json", "boolean"),
                    ),
                ),
            ),
        },
        attributes={"value": Attribute(Kind.ANY, "The value, converted.")},
    )

    def create(self, call: Call) -> Outcome:
        return _convert(str(call.operation_key), call.properties)

    def update(self, call: Call) -> Outcome:
        return _convert(call.physical_id, call.properties)

    def check(self, call: Call) -> Outcome:
        return _convert(call.physical_id, call.properties)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        kind = properties.get("type")
        if isinstance(kind, str) and kind in CONVERT and "value" in properties:
            try:
                CONVERT[kind](properties["value"])
            except ValueError as error:
                reason = Quoting(str(error), f"Value cannot be converted to {kind}")
                findings.add(
                    f"{place}.value",
                    reason,
                    public(f"Write a value of type {kind}, or remove the type."),
                )


def _convert(physical_id: str | None, properties: Mapping[str, Json]) -> Outcome:
    value, kind = properties.get("value"), properties.get("type")
    try:
        return Done(physical_id, {"value": CONVERT[kind](value) if kind else value})
    except ValueError as error:
        return Failed(str(error), public_reason=str(error))


# A value that cannot be converted may be a secret, so no message contains it.


def _number(value: Json) -> Json:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    try:
        return parse_number(value if isinstance(value, str) else "")
    except InvalidValue:
        raise ValueError("the value is not a number") from None


def _list(value: Json) -> Json:
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        raise ValueError("the value is neither a list nor a comma-separated string")
    return value.split(",") if value else []


def _json(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"the value is not valid JSON: {error}") from None
    if b"\\u0000" in orjson.dumps(parsed) and _contains_nul(parsed):
        raise ValueError("the value contains a NUL character, which cannot be stored")
    return parsed


def _contains_nul(value: Json) -> bool:
    if isinstance(value, dict):
        return any(_contains_nul(one) for pair in value.items() for one in pair)
    if isinstance(value, list):
        return any(_contains_nul(item) for item in value)
    return isinstance(value, str) and "\0" in value


def _boolean(value: Json) -> Json:
    text = str(value).lower()
    if text not in _TRUE | _FALSE:
        raise ValueError("the value is not a boolean")
    return text in _TRUE


CONVERT: Mapping[str, Callable[[Json], Json]] = {
    "string": as_text,
    "number": _number,
    "comma_delimited_list": _list,
    "json": _json,
    "boolean": _boolean,
}
