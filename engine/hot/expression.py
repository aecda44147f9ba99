"""Expressions: JSON values in which calls that must wait for a resource stand as `Call`.

Only what reads a resource remains a call after definition; everything else is plain JSON. Stored
form: a call is ``{"$call": [name, args]}``; a map of data that looks like one gets a dollar more.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from engine.words import Json

#: The key of a stored call, and of data that looks like one: one more dollar for each encoding.
CALL = "$call"
LOOKS_LIKE_CALL = re.compile(r"\$+call")


@dataclass(frozen=True, slots=True)
class Call:
    """A function that can be called only when the resources it reads are there.

    args: an expression. Names: those of the language, and ``select`` ([value, path item, ...],
    "" when the path leads nowhere), which get_param with a path of calls becomes. What CFN calls
    otherwise has HOT's name, or is ``find_in_map`` ([mappings, mapping, key, value]).
    """

    name: str
    version: str
    args: Json


Expression = Json


def is_static(expression: Expression) -> bool:
    """Whether the expression is a plain value already."""
    if isinstance(expression, dict):
        return all(is_static(item) for item in expression.values())
    if isinstance(expression, list):
        return all(is_static(item) for item in expression)
    return not isinstance(expression, Call)


def encode(expression: Expression) -> Json:
    """Return the JSON to store; `decode` gives the expression back."""
    kind = type(expression)
    if kind is dict:
        if len(expression) == 1:
            ((key, item),) = expression.items()
            if key.startswith("$") and LOOKS_LIKE_CALL.fullmatch(key):
                return {"$" + key: encode(item)}
        return {
            key: encode(item) if type(item) in NESTING else item for key, item in expression.items()
        }
    if kind is list:
        return [encode(item) if type(item) in NESTING else item for item in expression]
    if kind is Call:
        return {CALL: [expression.name, encode(expression.args)]}
    return expression


NESTING = frozenset({dict, list, Call})


def decode(stored: Json, version: str) -> Expression:
    """Return the expression that `encode` stored; ``version`` is the template's."""
    kind = type(stored)
    if kind is dict:
        if len(stored) == 1:
            ((key, item),) = stored.items()
            if key == CALL:
                return Call(item[0], version, decode(item[1], version))
            if key.startswith("$$") and LOOKS_LIKE_CALL.fullmatch(key):
                return {key[1:]: decode(item, version)}
        return {
            key: decode(item, version) if type(item) in NESTING else item
            for key, item in stored.items()
        }
    if kind is list:
        return [decode(item, version) if type(item) in NESTING else item for item in stored]
    return stored


def calls(expression: Expression) -> Iterator[Call]:
    """Every call in an expression, the outer ones first."""
    if isinstance(expression, Call):
        yield expression
        yield from calls(expression.args)
    elif isinstance(expression, dict):
        for item in expression.values():
            yield from calls(item)
    elif isinstance(expression, list):
        for item in expression:
            yield from calls(item)


def references(expression: Expression) -> frozenset[str]:
    """Names of the resources whose reference or attributes the expression reads."""
    return frozenset(
        call.args if call.name == "get_resource" else call.args[0]
        for call in calls(expression)
        if call.name in ("get_resource", "get_attr")
    )
