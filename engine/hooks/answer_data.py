"""The data of an answer: bounded in size, and validated against the schema in the hook's `ask`.

Validation can take long, so it runs before the hook's stack is locked. Under the lock its result is
used if `ask` is still the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jsonschema_rs
import orjson

from engine.errors import Finding, Invalid
from engine.hooks.schema_cost import (
    BUDGET,
    PATTERN_OPTIONS,
    Extent,
    SchemaRefused,
    schema_cost,
)
from engine.words import Json

#: Maximum size of an answer's data as JSON in bytes, and its maximum nesting.
LARGEST_DATA = 65_536
DEEPEST_DATA = 32
#: Maximum cost of a validation that reports every error; above, it reports the first one.
EVERY_ERROR = 20_000
#: Characters of one error message, in which the validator includes the whole value.
LONGEST_MESSAGE = 300
#: The remedy for a schema stored by an earlier release without these bounds.
SIMPLER = "Reject it, or update the stack with a simpler schema."


@dataclass(frozen=True, slots=True)
class DataCheck:
    """ask: the schema that the data was validated against, as text. findings: what is wrong."""

    ask: str
    findings: Sequence[Finding] = ()


def measure_data(data: Json) -> Extent:
    """Return the size of data. Raises Invalid if it is too large or nested too deep."""
    try:
        size = len(orjson.dumps(data))
    except (TypeError, orjson.JSONEncodeError):
        raise _too_large("nested too deep, or not JSON", "Send less.") from None
    if size > LARGEST_DATA:
        raise _too_large(
            f"larger than {LARGEST_DATA} bytes", "Send less, or a link to where the rest is."
        )
    values = texts = characters = longest = 0
    level, depth = [data], 0
    while level:
        depth += 1
        if depth > DEEPEST_DATA:
            raise _too_large(
                f"nested more than {DEEPEST_DATA} levels deep", "Send data with fewer levels."
            )
        inside: list[Json] = []
        for one in level:
            values += 1
            if isinstance(one, str):
                texts, characters = texts + 1, characters + len(one)
            elif isinstance(one, dict | list):
                longest = max(longest, len(one))
                inside.extend(one.values() if isinstance(one, dict) else one)
            if isinstance(one, dict):
                texts, characters = texts + len(one), characters + sum(map(len, one))
        level = inside
    return Extent(values, texts, characters, longest)


def check_data(ask: str, data: Json) -> DataCheck:
    """Validate the data of an answer against a stored schema, in bounded time.

    Raises Invalid if the data is too large, absolutely or for this schema.
    """
    extent = measure_data(data)
    schema = orjson.loads(ask)
    try:
        cost = schema_cost(schema).of(extent)
    except SchemaRefused as refused:
        return DataCheck(ask, [_refused("", f"the schema of the hook's `ask` {refused}", SIMPLER)])
    if cost > BUDGET:
        raise _too_large("too large for the schema of the hook's `ask`", "Send less.")
    return DataCheck(ask, _findings(schema, data, every=cost <= EVERY_ERROR))


def _findings(schema: Json, data: Json, *, every: bool) -> Sequence[Finding]:
    try:
        validator = jsonschema_rs.validator_for(
            schema, offline=True, pattern_options=PATTERN_OPTIONS
        )
    except (ValueError, jsonschema_rs.ReferencingError):
        return [_refused("", "the schema of the hook's `ask` cannot be evaluated", SIMPLER)]
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
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[:LONGEST_MESSAGE]}..."
    return _refused(place, message, "See `ask` of the hook for the required data.")


def _refused(place: str, reason: str, remedy: str) -> Finding:
    return Finding(f"data{place}", reason, remedy, "DataRefused")


def _too_large(what: str, remedy: str) -> Invalid:
    return Invalid([Finding("data", f"the answer's data is {what}", remedy, "DataRefused")])
