"""Expressions: JSON values in which a call that depends on a resource is a `FunctionCall`.

After definition only functions that read a resource remain as calls; everything else is plain JSON.
Stored form: a call is `{"$call": [name, args]}`; a map of data with such a key gets one more
dollar.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from engine.words import Json

#: The key of a stored call. Data with this key gets one more dollar for each encoding.
CALL = "$call"
#: Name of a call that replaces a refused or unknown value, so that functions around it are not
#: checked against it. In outputs its argument is the reason, and reading it fails.
REFUSED = "refused"
LOOKS_LIKE_CALL = re.compile(r"\$+call")


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function call that can be evaluated only when the resources it reads exist.

    name: a function of the language, or `select` ([value, path item, ...]; "" if the path is
    missing), which get_param with a computed path becomes. CFN functions have the name of their HOT
    equivalent, or `find_in_map` ([mappings, mapping, key, value]). args: an expression.
    """

    name: str
    version: str
    args: Json


Expression = Json


def is_static(expression: Expression) -> bool:
    """Return whether the expression contains no call."""
    if isinstance(expression, dict):
        return all(is_static(item) for item in expression.values())
    if isinstance(expression, list):
        return all(is_static(item) for item in expression)
    return not isinstance(expression, FunctionCall)


def in_heat_notation(value: Expression) -> str:
    """Return a value as Heat's messages quote it: text as it is; in lists and maps, texts have
    single quotes. A call is a map with its name."""
    return value if isinstance(value, str) else repr(_with_calls_as_maps(value))


def _with_calls_as_maps(value: Expression) -> Json:
    if isinstance(value, FunctionCall):
        return {value.name: _with_calls_as_maps(value.args)}
    if isinstance(value, dict):
        return {key: _with_calls_as_maps(item) for key, item in value.items()}
    return [_with_calls_as_maps(item) for item in value] if isinstance(value, list) else value


def encode(expression: Expression) -> Json:
    """Return the JSON form to store; `decode` reverses it."""
    kind = type(expression)
    if kind is dict:
        if len(expression) == 1:
            ((key, item),) = expression.items()
            if key.startswith("$") and LOOKS_LIKE_CALL.fullmatch(key):
                return {"$" + key: encode(item)}
        return {
            key: encode(item) if type(item) in CONTAINERS else item
            for key, item in expression.items()
        }
    if kind is list:
        return [encode(item) if type(item) in CONTAINERS else item for item in expression]
    if kind is FunctionCall:
        return {CALL: [expression.name, encode(expression.args)]}
    return expression


CONTAINERS = frozenset({dict, list, FunctionCall})


def decode(stored: Json, version: str) -> Expression:
    """Return the expression that `encode` stored. version: the template's version, a date."""
    kind = type(stored)
    if kind is dict:
        if len(stored) == 1:
            ((key, item),) = stored.items()
            if key == CALL:
                return FunctionCall(item[0], version, decode(item[1], version))
            if key.startswith("$$") and LOOKS_LIKE_CALL.fullmatch(key):
                return {key[1:]: decode(item, version)}
        return {
            key: decode(item, version) if type(item) in CONTAINERS else item
            for key, item in stored.items()
        }
    if kind is list:
        return [decode(item, version) if type(item) in CONTAINERS else item for item in stored]
    return stored


def iterate_calls(expression: Expression) -> Iterator[FunctionCall]:
    """Yield every call in an expression, outer calls first."""
    if isinstance(expression, FunctionCall):
        yield expression
        yield from iterate_calls(expression.args)
    elif isinstance(expression, dict):
        for item in expression.values():
            yield from iterate_calls(item)
    elif isinstance(expression, list):
        for item in expression:
            yield from iterate_calls(item)


def referenced_resources(expression: Expression) -> frozenset[str]:
    """Return the names of resources whose reference or attributes the expression reads."""
    return frozenset(
        call.args if call.name == "get_resource" else call.args[0]
        for call in iterate_calls(expression)
        if call.name in ("get_resource", "get_attr")
    )
