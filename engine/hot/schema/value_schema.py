"""JSON schemas of parameters: checks of the schema itself, and of values, in bounded time."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Final

import jsonschema_rs
import orjson

from engine.errors import Quoting, one_of, public
from engine.hot.functions.cost_budget import CostBudget
from engine.hot.functions.function import FunctionError, quote_value
from engine.hot.schema.schema_cost import (
    PATTERN_OPTIONS,
    Extent,
    SchemaRefused,
    count_patterns,
    schema_cost,
)
from engine.words import Json

#: Maximum characters of a schema as JSON, and characters of the message about one violation.
MAX_SCHEMA_LENGTH: Final = 16_384
MAX_MESSAGE_LENGTH: Final = 300
#: Violations that one message lists.
MAX_VIOLATIONS: Final = 5
#: Steps of a cost budget for one regular expression of a schema, which is compiled, and units of
#: validation in one step.
PATTERN_STEPS: Final = 1_000
UNITS_PER_STEP: Final = 1_000
#: The types that a JSON schema may name.
TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
#: Keywords of maps of schemas: a key "type" in them is the name of a schema.
NAMED_SCHEMAS: Final = (["properties"], ["patternProperties"], ["$defs"], ["definitions"])
VIOLATED: Final = "it does not match the schema of the parameter"
HIDDEN_VIOLATION: Final = "its hidden value does not match the schema of the parameter"


class InvalidSchema(Exception):
    """A schema that cannot be used. The text is the reason. path: to the fault in the schema, such
    as `.properties.a.type`. remedy: "" for the usual one."""

    def __init__(self, reason: str, path: str = "", remedy: str = "") -> None:
        super().__init__(reason)
        self.path, self.remedy = path, remedy


def check_schema(schema: Json, budget: CostBudget) -> None:
    """Check the schema of a parameter. Raises InvalidSchema, BudgetExceeded."""
    if not isinstance(schema, dict):
        raise InvalidSchema("The schema must be a map.")
    try:
        text = orjson.dumps(schema)
    except TypeError as error:
        raise InvalidSchema(f"The schema is not JSON: {error}") from None
    if len(text) > MAX_SCHEMA_LENGTH:
        raise InvalidSchema(f"The schema is longer than {MAX_SCHEMA_LENGTH} characters.")
    budget.spend_steps(PATTERN_STEPS * count_patterns(schema))
    try:
        schema_cost(schema)
        _validator(text)
    except SchemaRefused as refused:
        raise InvalidSchema(f"The schema {refused}.") from None
    except jsonschema_rs.ValidationError as error:
        raise _explain_fault(error) from None
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        shown = str(error).splitlines()[0]
        raise InvalidSchema(f"This is not a valid JSON schema: {shown}") from None


def _explain_fault(error: jsonschema_rs.ValidationError) -> InvalidSchema:
    path, given = [*error.instance_path], error.instance
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    at = path[:-1] if path and isinstance(path[-1], int) else path
    names = given if isinstance(given, list) else [given]
    wrong = [one for one in names if one not in TYPES]
    if wrong and at[-1:] == ["type"] and at[-2:-1] not in NAMED_SCHEMAS:
        shown = quote_value(wrong[0])[:MAX_MESSAGE_LENGTH]
        reason = f"{shown} is not a type of JSON schemas."
        return InvalidSchema(reason, where, one_of(str(wrong[0]), TYPES, "Types"))
    shown = error.message.splitlines()[0][:MAX_MESSAGE_LENGTH]
    return InvalidSchema(f"This is not a valid JSON schema: {shown}", where)


def find_schema_violation(
    schema: Mapping[str, Json], value: Json, budget: CostBudget
) -> Quoting | None:
    """Return why a value does not match a checked schema, or None."""
    try:
        cost = schema_cost(schema).estimate(extent_of(value))
        with budget.sub_budget() as share:
            share.spend_steps(1 + cost // UNITS_PER_STEP)
    except FunctionError as much:
        return public(str(much))
    validator = _validator(orjson.dumps(schema))
    errors = [*islice(validator.iter_errors(value), MAX_VIOLATIONS)]
    if not errors:
        return None
    return Quoting("; ".join(map(_describe, errors)), VIOLATED)


def _describe(error: jsonschema_rs.ValidationError) -> str:
    path = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path
    )
    message = error.message
    if len(message) > MAX_MESSAGE_LENGTH:
        message = f"{message[:MAX_MESSAGE_LENGTH]}..."
    return f"{path.removeprefix('.')}: {message}" if path else message


@lru_cache(maxsize=64)
def _validator(text: bytes) -> jsonschema_rs.Validator:
    # offline: references to other documents are not resolved, by request or by file.
    return jsonschema_rs.validator_for(
        orjson.loads(text), offline=True, pattern_options=PATTERN_OPTIONS
    )


def extent_of(value: Json) -> Extent:
    """Return the size of a value."""
    values = texts = characters = max_items = 0
    waiting = [value]
    while waiting:
        one = waiting.pop()
        values += 1
        if isinstance(one, str):
            texts, characters = texts + 1, characters + len(one)
        elif isinstance(one, list):
            max_items = max(max_items, len(one))
            waiting.extend(one)
        elif isinstance(one, dict):
            max_items = max(max_items, len(one))
            texts, characters = texts + len(one), characters + sum(map(len, one))
            waiting.extend(one.values())
    return Extent(values, texts, characters, max_items)
