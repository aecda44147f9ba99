"""From expressions to values, when the resources they read are there. Called before an operation
on a resource, and for outputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from engine.hot.cfn_functions import find_in_map
from engine.hot.effort import Effort, TooMuch, at_once
from engine.hot.expression import Call, Expression
from engine.hot.following import select
from engine.hot.function import Function, Wrong
from engine.hot.inside import read, reads, shown
from engine.hot.versions import VERSIONS
from engine.hot.yaql_evaluation import evaluate, limits_of
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


def resolve(
    expression: Expression, view: View, *, masked: bool = False, effort: Effort | None = None
) -> Json:
    """Return the value of an expression.

    masked: for display; a function that cannot work on masked values gives ``******``.
    effort: what it may cost, together with others; if none is given, it is alone.
    Raises Wrong when a function cannot take what the resources gave, or it costs too much.
    """
    return _Resolving(view, masked, effort or at_once()).value_of(expression)


@dataclass(frozen=True, slots=True)
class _Resolving:
    view: View
    masked: bool
    effort: Effort

    def value_of(self, expression: Expression) -> Json:
        kind = type(expression)
        if kind is dict:
            return {
                key: self.value_of(item) if type(item) in NESTING else item
                for key, item in expression.items()
            }
        if kind is list:
            return [self.value_of(item) if type(item) in NESTING else item for item in expression]
        return self._called(expression) if kind is Call else expression

    def _called(self, call: Call) -> Json:
        args = self.value_of(call.args)
        try:
            return self._result(call, args)
        except TooMuch:
            raise
        except Wrong:
            if self.masked:
                return MASK
            raise

    def _result(self, call: Call, args: Json) -> Json:
        match call.name:
            case "get_resource":
                return self.effort.made(self.view.reference(args))
            case "get_attr":
                return self.effort.made(_attribute(args, self.view))
            case "select":
                return self.effort.made(select(args[0], args[1:], ""))
            case "find_in_map":
                return self.effort.made(find_in_map(args[0], args[1:], hidden=True))
            case "yaql":
                limits = limits_of(args)
                found = evaluate(args["expression"], args.get("data", {}), limits, self.effort)
                return self.effort.made(found)
        function = VERSIONS[call.version].functions[call.name]
        if not isinstance(function, Function):
            raise Wrong(f"The function {call.name} cannot be called here.")
        function.shape(args)
        return self.effort.call(function, args)


NESTING = frozenset({dict, list, Call})


def evaluate_output(
    expression: Expression, view: View, effort: Effort | None = None
) -> tuple[Json, str | None]:
    """Return (value, None), or (None, what went wrong): an output never fails a stack."""
    try:
        return resolve(expression, view, effort=effort), None
    except Wrong as wrong:
        return None, str(wrong)


def _attribute(args: list[Json], view: View) -> Json:
    resource, *rest = args
    if not rest:
        return shown(view.attributes(resource))
    attribute, *path = rest
    attributes = view.attributes(resource)
    if reads(attributes, attribute):
        return read(attributes, attribute, path)
    return select(view.attribute(resource, attribute), path, None, text_index=False)
