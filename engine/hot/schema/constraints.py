"""Checks of values against constraints of parameters and properties.

Custom constraints that an external service validates are collected by definition/validators.py.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Final

import orjson

from engine.errors import Quoting, nearest, public
from engine.hot.functions.cost_budget import CostBudget, resolution_budget
from engine.hot.functions.data import to_hashable
from engine.hot.functions.function import FunctionError
from engine.hot.patterns.pattern import InvalidPattern, read_pattern
from engine.hot.schema.custom_constraints import CUSTOM_CHECKS, EMPTY_ALLOWED, REASONS, REMEDIES
from engine.hot.schema.type_schema import Constraint
from engine.hot.schema.value_schema import find_schema_violation
from engine.words import Json

#: Maximum number of allowed values in a remedy.
MAX_ALLOWED: Final = 8
#: Maximum number of characters of a pattern in a remedy.
MAX_SHOWN_PATTERN: Final = 200


def find_violation(
    constraint: Constraint, value: Json, budget: CostBudget | None = None
) -> str | None:
    """Return why the value violates the constraint, or None. The constraint's description replaces
    the message.

    budget: cost budget shared with other checks; None: a new one.
    """
    violation = CHECKS[constraint.kind](constraint, value, budget or resolution_budget())
    if not violation:
        return None
    return public(constraint.description) if constraint.description else violation


def remedy_of(rule: Constraint) -> str:
    """Return what to do about a violation, without the value."""
    what = "a value" if rule.kind == "range" else "a length"
    match rule.kind:
        case "range" | "length" if rule.min is not None and rule.max is not None:
            return f"Use {what} between {rule.min} and {rule.max}."
        case "range" | "length" if rule.min is None:
            return f"Use {what} of at most {rule.max}."
        case "range" | "length":
            return f"Use {what} of at least {rule.min}."
        case "modulo":
            return f"Use a multiple of {rule.step} plus {rule.offset or 0}."
        case "allowed_values":
            shown = ", ".join(as_json(one) for one in rule.allowed[:MAX_ALLOWED])
            return f"Use one of {shown}{', ...' if len(rule.allowed) > MAX_ALLOWED else ''}."
        case "allowed_pattern":
            shown = rule.pattern[:MAX_SHOWN_PATTERN]
            return f'Use a value that matches "{shown}" as a whole.'
        case "custom_constraint":
            return REMEDIES.get(rule.name, f"Use a valid {rule.name}.")
    return "Use a value that matches the schema."


def remedy_for(rule: Constraint, value: Json) -> Quoting:
    """Return what to do about this value: `remedy_of`, after the nearest allowed value."""
    usual = remedy_of(rule)
    if rule.kind != "allowed_values" or not isinstance(value, str):
        return public(usual)
    near = nearest(value, [one for one in rule.allowed if isinstance(one, str)])
    return Quoting(f"{near} {usual}".strip(), usual)


def as_json(value: Json) -> str:
    """Return JSON text as in Heat's messages; integers of any size are allowed."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return str(value)


def _about(value: Json, reason: str) -> Quoting:
    return Quoting(f"{value} {reason}", f"the value {reason}")


def _bounds(rule: Constraint) -> str:
    return f"(min: {rule.min}, max: {rule.max})"


def _is_outside(rule: Constraint, value: int | float) -> bool:
    return (rule.min is not None and value < rule.min) or (
        rule.max is not None and value > rule.max
    )


def _length(rule: Constraint, value: Json, budget: CostBudget) -> str | None:
    if not isinstance(value, str | list | dict):
        return None
    outside = _is_outside(rule, len(value))
    if not outside:
        return None
    reason = f"is out of range {_bounds(rule)}"
    return Quoting(f"length ({len(value)}) {reason}", f"length {reason}")


def _range(rule: Constraint, value: Json, budget: CostBudget) -> str | None:
    if not isinstance(value, int | float):
        return None
    return _about(value, f"is out of range {_bounds(rule)}") if _is_outside(rule, value) else None


def _modulo(rule: Constraint, value: Json, budget: CostBudget) -> str | None:
    step, offset = rule.step or 1, rule.offset or 0
    if not isinstance(value, int | float) or value % step == offset % step:
        return None
    return _about(value, f"is not a multiple of {step} with an offset of {offset}")


def _allowed_values(rule: Constraint, value: Json, budget: CostBudget) -> str | None:
    allowed = {_exact_key(one) for one in rule.allowed}
    items = value if isinstance(value, list) else [value]
    bad = [item for item in items if _exact_key(item) not in allowed]
    if not bad:
        return None
    shown = ", ".join(as_json(one) for one in rule.allowed)
    given = f"[{', '.join(map(as_json, value))}]" if isinstance(value, list) else as_json(value)
    return _about(given, f"is not an allowed value [{shown}]")


def _exact_key(value: Json) -> Hashable:
    """Return a hashable key that is equal only for equal values of equal type: true is not 1."""
    return isinstance(value, bool), to_hashable(value)


def _allowed_pattern(rule: Constraint, value: Json, budget: CostBudget) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        with budget.sub_budget() as share:
            if read_pattern(rule.pattern, share).fullmatch(value, share):
                return None
    except (InvalidPattern, FunctionError) as error:
        return str(error)
    return _about(f'"{value}"', f'does not match pattern "{rule.pattern}"')


def _custom(rule: Constraint, value: Json, budget: CostBudget) -> str | None:
    check = CUSTOM_CHECKS.get(rule.name)
    if check is None or value is None or (value == "" and rule.name in EMPTY_ALLOWED):
        return None
    bad = [item for item in (value if isinstance(value, list) else [value]) if not check(item)]
    if not bad:
        return None
    safe = f"it is not a valid {rule.name}"
    reason = REASONS[rule.name](bad[0]) if rule.name in REASONS else safe
    shown = f"Error validating value '{bad[0]}'"
    return Quoting(f"{shown}: {reason}" if reason else shown, safe)


def _schema(rule: Constraint, value: Json, budget: CostBudget) -> str | None:
    return find_schema_violation(rule.schema or {}, value, budget)


CHECKS: Mapping[str, Callable[[Constraint, Json, CostBudget], str | None]] = {
    "length": _length,
    "range": _range,
    "modulo": _modulo,
    "allowed_values": _allowed_values,
    "allowed_pattern": _allowed_pattern,
    "custom_constraint": _custom,
    "schema": _schema,
}
