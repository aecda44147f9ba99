"""From expressions to values, when the resources they read are there. Called before an operation
on a resource, and for outputs."""

from collections.abc import Mapping
from typing import Protocol

from engine.hot.cfn_functions import find_in_map
from engine.hot.expression import Call, Expression
from engine.hot.function import Function, Wrong
from engine.hot.versions import VERSIONS
from engine.words import Json

MASK = "******"


class View(Protocol):
    """What expressions may read of a stack."""

    def reference(self, resource: str) -> str:
        """What get_resource gives."""

    def attribute(self, resource: str, attribute: str) -> Json:
        """The whole value of an attribute, or None; the path is followed here."""

    def attributes(self, resource: str) -> Mapping[str, Json]:
        """All attributes but ``show``."""


def resolve(expression: Expression, view: View, *, masked: bool = False) -> Json:
    """Return the value of an expression.

    masked: for display; a function that cannot work on masked values gives ``******``.
    Raises Wrong when a function cannot take what the resources gave.
    """
    kind = type(expression)
    if kind is dict:
        return {
            key: resolve(item, view, masked=masked) if type(item) in NESTING else item
            for key, item in expression.items()
        }
    if kind is list:
        return [
            resolve(item, view, masked=masked) if type(item) in NESTING else item
            for item in expression
        ]
    if kind is Call:
        args = resolve(expression.args, view, masked=masked)
        if not masked:
            return _called(expression, args, view)
        try:
            return _called(expression, args, view)
        except Wrong:
            return MASK
    return expression


NESTING = frozenset({dict, list, Call})


def evaluate_output(expression: Expression, view: View) -> tuple[Json, str | None]:
    """Return (value, None), or (None, what went wrong): an output never fails a stack."""
    try:
        return resolve(expression, view), None
    except Wrong as wrong:
        return None, str(wrong)


def select(value: Json, path: list[Json], nothing: Json, *, text_index: bool = True) -> Json:
    """Follow a path of keys and indices; ``nothing`` when it leads nowhere.

    text_index: whether "0" is an index too (it is for get_param, and is not for get_attr). A text
    is a list of letters.
    """
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list | str) and (text_index or isinstance(step, int)):
            value = _item(value, step)
        else:
            return nothing
        if value is None:
            return nothing
    return value


def _item(items: list[Json] | str, step: Json) -> Json:
    try:
        return items[int(step)]
    except (IndexError, TypeError, ValueError):
        return None


def _called(call: Call, args: Json, view: View) -> Json:
    if call.name == "get_resource":
        return view.reference(args)
    if call.name == "get_attr":
        return _attribute(args, view)
    if call.name == "select":
        return select(args[0], args[1:], "")
    if call.name == "find_in_map":
        return find_in_map(args[0], args[1:], hidden=True)
    function = VERSIONS[call.version].functions[call.name]
    if not isinstance(function, Function):
        raise Wrong(f"The function {call.name} cannot be called here.")
    function.shape(args)
    return function.apply(args)


def _attribute(args: list[Json], view: View) -> Json:
    resource, *rest = args
    if not rest:
        return dict(view.attributes(resource))
    attribute, *path = rest
    return select(view.attribute(resource, attribute), path, None, text_index=False)
