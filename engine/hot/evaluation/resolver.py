"""Resolves expressions to values when the resources they read exist: before an operation on a
resource, and for outputs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from engine.errors import Quoting, public
from engine.hot.expressions.expression import Expression, FunctionCall
from engine.hot.expressions.masking import MASK, contains_mask, propagate_mask
from engine.hot.expressions.member_attributes import (
    MemberNotFound,
    read_members,
    reads_members,
    visible_attributes,
)
from engine.hot.expressions.path_lookup import look_up_path
from engine.hot.functions.cfn import find_in_map
from engine.hot.functions.cost_budget import BudgetExceeded, CostBudget, resolution_budget
from engine.hot.functions.function import Function, FunctionError
from engine.hot.functions.logic import LOGIC
from engine.hot.functions.text import join_parts
from engine.hot.language.versions import VERSIONS
from engine.hot.yaql.evaluation import evaluate_yaql, stored_limits
from engine.words import Json

#: Calls whose arguments after the first are a path.
PATH_FUNCTIONS = frozenset({"get_attr", "select", "find_in_map"})


class ReadableStack(Protocol):
    """What expressions can read of a stack."""

    def reference(self, resource: str) -> str:
        """Return the result of get_resource."""

    def attribute(self, resource: str, attribute: str) -> Json:
        """Return the whole value of an attribute, or None; the caller looks up the path."""

    def attributes(self, resource: str) -> Mapping[str, Json]:
        """Return all attributes except `show`."""


def resolve(
    expression: Expression,
    view: ReadableStack,
    *,
    masked: bool = False,
    budget: CostBudget | None = None,
) -> Json:
    """Return the value of an expression.

    masked: for display; a function that cannot process masked values gives the mask. budget: cost
    budget shared with other expressions; None: a new one. Raises FunctionError when a function
    refuses its arguments or the budget is exceeded.
    """
    return _Resolver(view, masked, budget or resolution_budget()).value_of(expression)


@dataclass(frozen=True, slots=True)
class _Resolver:
    view: ReadableStack
    masked: bool
    budget: CostBudget

    def value_of(self, expression: Expression) -> Json:
        kind = type(expression)
        if kind is dict:
            return {
                key: self.value_of(item) if type(item) in CONTAINERS else item
                for key, item in expression.items()
            }
        if kind is list:
            return [
                self.value_of(item) if type(item) in CONTAINERS else item for item in expression
            ]
        return self._resolve_call(expression) if kind is FunctionCall else expression

    def _resolve_call(self, call: FunctionCall) -> Json:
        args = self.value_of(call.args)
        try:
            found = self._apply_call(call, args)
        except BudgetExceeded:
            raise
        except FunctionError:
            if self.masked:
                return MASK
            raise
        return _apply_mask(call, args, found) if self.masked else found

    def _apply_call(self, call: FunctionCall, args: Json) -> Json:
        match call.name:
            case "refused":
                raise FunctionError(
                    args or "The value is not known.",
                    "Correct the expression in the template, and update the stack.",
                )
            case "get_resource":
                return self.budget.count_value(self.view.reference(args))
            case "get_attr":
                return self.budget.count_value(_attribute(args, self.view))
            case "select":
                return self.budget.count_value(look_up_path(args[0], args[1:], ""))
            case "find_in_map":
                return self.budget.count_value(find_in_map(args[0], args[1:], hidden=True))
            case "interpolate":
                return self.budget.count_value(join_parts(args))
            case "checked":
                return _check_output(args)
            case "yaql":
                limits = stored_limits(args)
                found = evaluate_yaql(args["expression"], args.get("data", {}), limits, self.budget)
                return self.budget.count_value(found)
        function = LOGIC.get(call.name) or VERSIONS[call.version].functions[call.name]
        if not isinstance(function, Function):
            raise FunctionError(
                f"The function {call.name} cannot be called here.", "Remove the call."
            )
        function.shape(args)
        return self.budget.call(function, args)


CONTAINERS = frozenset({dict, list, FunctionCall})


def _apply_mask(call: FunctionCall, args: Json, found: Json) -> Json:
    """Mask the result of a call. The result of a path lookup is masked already, unless the path
    itself is secret.
    """
    if call.name in PATH_FUNCTIONS:
        return MASK if contains_mask(args[1:]) else found
    return found if call.name == "get_resource" else propagate_mask(args, found)


def _check_output(args: Json) -> Json:
    """Return the value of an output whose conditions hold. args: {"checks": [{assert, message,
    kind}], "value": ...}; without a kind: a precondition."""
    for one in args["checks"]:
        if one["assert"] is not True:
            kind = one.get("kind", "precondition")
            raise FunctionError(
                public(f"{kind} failed: {one['message']}"), f"Change what the {kind} checks."
            )
    return args["value"]


def evaluate_output(
    expression: Expression, view: ReadableStack, budget: CostBudget | None = None
) -> tuple[Json, str | None]:
    """Return (value, None), or (None, reason): a failing output never fails a stack. The reason may
    quote secret values.
    """
    try:
        return resolve(expression, view, budget=budget), None
    except FunctionError as wrong:
        return None, wrong.reason


def _attribute(args: list[Json], view: ReadableStack) -> Json:
    resource, *rest = args
    if not rest:
        return visible_attributes(view.attributes(resource))
    attribute, *path = rest
    attributes = view.attributes(resource)
    if reads_members(attributes, attribute):
        try:
            return read_members(attributes, attribute, path)
        except MemberNotFound as missing:
            where = f"get_attr of {resource}"
            raise FunctionError(
                Quoting(f"{where}: {missing.reason}", f"{where}: {missing.reason.safe}"),
                public("Read a member that the group has."),
            ) from None
    return look_up_path(view.attribute(resource, attribute), path, None, text_index=False)
