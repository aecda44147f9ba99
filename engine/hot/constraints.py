"""Rules for values: of parameters in templates and of properties in resource types, one table each.

Custom constraints that somebody has to be asked about are left to engine/hot/questions.py.
"""

from collections.abc import Callable, Hashable, Mapping

import orjson

from engine.hot.custom_constraints import CUSTOM, OR_NOTHING
from engine.hot.data_functions import as_key
from engine.hot.effort import Effort, at_once
from engine.hot.function import Wrong
from engine.hot.patterns import BadPattern, read_pattern
from engine.hot.schema import Constraint
from engine.words import Json


def broken_rule(constraint: Constraint, value: Json, effort: Effort | None = None) -> str | None:
    """Return what is wrong with a value, or None. A description replaces the message.

    effort: what it may cost, together with others; if none is given, it is alone.
    """
    said = CHECKS[constraint.kind](constraint, value, effort or at_once())
    return (constraint.description or said) if said else None


def as_json(value: Json) -> str:
    """JSON text the way Heat's messages show it, any size of number included."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return str(value)


def _bounds(rule: Constraint) -> str:
    return f"(min: {rule.min}, max: {rule.max})"


def _outside(rule: Constraint, value: int | float) -> bool:
    return (rule.min is not None and value < rule.min) or (
        rule.max is not None and value > rule.max
    )


def _length(rule: Constraint, value: Json, effort: Effort) -> str | None:
    if not isinstance(value, str | list | dict):
        return None
    outside = _outside(rule, len(value))
    return f"length ({len(value)}) is out of range {_bounds(rule)}" if outside else None


def _range(rule: Constraint, value: Json, effort: Effort) -> str | None:
    if not isinstance(value, int | float):
        return None
    return f"{value} is out of range {_bounds(rule)}" if _outside(rule, value) else None


def _modulo(rule: Constraint, value: Json, effort: Effort) -> str | None:
    step, offset = rule.step or 1, rule.offset or 0
    if not isinstance(value, int | float) or value % step == offset % step:
        return None
    return f"{value} is not a multiple of {step} with an offset of {offset}"


def _allowed_values(rule: Constraint, value: Json, effort: Effort) -> str | None:
    allowed = {_exactly(one) for one in rule.allowed}
    items = value if isinstance(value, list) else [value]
    bad = [item for item in items if _exactly(item) not in allowed]
    if not bad:
        return None
    shown = ", ".join(as_json(one) for one in rule.allowed)
    return f"{as_json(bad[0])} is not an allowed value [{shown}]"


def _exactly(value: Json) -> Hashable:
    """What is the same for equal values only; true is not 1."""
    return isinstance(value, bool), as_key(value)


def _allowed_pattern(rule: Constraint, value: Json, effort: Effort) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        with effort.share() as share:
            if read_pattern(rule.pattern, share).fullmatch(value, share):
                return None
    except (BadPattern, Wrong) as error:
        return str(error)
    return f'"{value}" does not match pattern "{rule.pattern}"'


def _custom(rule: Constraint, value: Json, effort: Effort) -> str | None:
    check = CUSTOM.get(rule.name)
    if check is None or value is None or (value == "" and rule.name in OR_NOTHING):
        return None
    bad = [item for item in (value if isinstance(value, list) else [value]) if not check(item)]
    if not bad:
        return None
    return f"Error validating value '{bad[0]}': it is not a valid {rule.name}"


CHECKS: Mapping[str, Callable[[Constraint, Json, Effort], str | None]] = {
    "length": _length,
    "range": _range,
    "modulo": _modulo,
    "allowed_values": _allowed_values,
    "allowed_pattern": _allowed_pattern,
    "custom_constraint": _custom,
}
