"""Validates the data of an answer against the schema in the hook's `ask`, within size limits.

Validation can take long, so it runs before the hook's stack is locked. Under the lock, its result
is valid if `ask` has not changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jsonschema_rs
import orjson

from engine.errors import Finding, Invalid
from engine.hot.schema.schema_cost import (
    BUDGET,
    PATTERN_OPTIONS,
    Extent,
    SchemaRefused,
    schema_cost,
)
from engine.words import Json

#: Maximum size of an answer's data as JSON in bytes, and its maximum nesting.
MAX_DATA_BYTES = 65_536
MAX_DATA_DEPTH = 32
#: Maximum cost of a validation that reports every error; above, it reports the first one.
EVERY_ERROR = 20_000
#: Characters of one error message, in which the validator includes the whole value.
MAX_MESSAGE_LENGTH = 300
#: The remedy for a schema stored by an earlier release without these bounds.
SIMPLER = "Reject it, or update the stack with a simpler schema."


@dataclass(frozen=True, slots=True)
class DataCheck:
    """ask: the schema that the data was validated against, as text. findings: the errors."""

    ask: str
    findings: Sequence[Finding] = ()


def measure_data(data: Json) -> Extent:
    """Return the size of data. Raises Invalid if it is too large or nested too deeply."""
    try:
        size = len(orjson.dumps(data))
    except (TypeError, orjson.JSONEncodeError):
        raise _too_large("nested too deeply, or not JSON", "Send less data.") from None
    if size > MAX_DATA_BYTES:
        raise _too_large(
            f"larger than {MAX_DATA_BYTES} bytes", "Send less data, or a link to the data."
        )
    values = texts = characters = max_items = 0
    level, depth = [data], 0
    while level:
        depth += 1
        if depth > MAX_DATA_DEPTH:
            raise _too_large(
                f"nested more than {MAX_DATA_DEPTH} levels deep", "Send data with fewer levels."
            )
        inside: list[Json] = []
        for one in level:
            values += 1
            if isinstance(one, str):
                texts, characters = texts + 1, characters + len(one)
            elif isinstance(one, dict | list):
                max_items = max(max_items, len(one))
                inside.extend(one.values() if isinstance(one, dict) else one)
            if isinstance(one, dict):
                texts, characters = texts + len(one), characters + sum(map(len, one))
        level = inside
    return Extent(values, texts, characters, max_items)


def check_data(ask: str, data: Json) -> DataCheck:
    """Validate the data of an answer against a stored schema, in bounded time.

    Raises Invalid if the data is too large, absolutely or for this schema.
    """
    extent = measure_data(data)
    schema = orjson.loads(ask)
    try:
        cost = schema_cost(schema).estimate(extent)
    except SchemaRefused as refused:
        return DataCheck(ask, [_refusal("", f"the schema of the hook's `ask` {refused}", SIMPLER)])
    if cost > BUDGET:
        raise _too_large("too large for the schema of the hook's `ask`", "Send less data.")
    return DataCheck(ask, _findings(schema, data, every=cost <= EVERY_ERROR))


def _findings(schema: Json, data: Json, *, every: bool) -> Sequence[Finding]:
    try:
        validator = jsonschema_rs.validator_for(
            schema, offline=True, pattern_options=PATTERN_OPTIONS
        )
    except (ValueError, jsonschema_rs.ReferencingError):
        return [_refusal("", "the schema of the hook's `ask` cannot be evaluated", SIMPLER)]
    if every:
        return [_finding(error) for error in validator.iter_errors(data)]
    try:
        validator.validate(data)
    except jsonschema_rs.ValidationError as error:
        return [_finding(error)]
    return []


def _finding(error: jsonschema_rs.ValidationError) -> Finding:
    place = "".join(f".{part}" for part in error.instance_path)
    message = error.message
    if len(message) > MAX_MESSAGE_LENGTH:
        message = f"{message[:MAX_MESSAGE_LENGTH]}..."
    return _refusal(place, message, "See `ask` of the hook for the required data.")


def _refusal(place: str, reason: str, remedy: str) -> Finding:
    return Finding(f"data{place}", reason, remedy, "DataRefused")


def _too_large(what: str, remedy: str) -> Invalid:
    return Invalid([Finding("data", f"the answer's data is {what}", remedy, "DataRefused")])
