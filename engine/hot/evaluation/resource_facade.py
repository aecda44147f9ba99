"""resource_facade: what a nested template can read of its resource in the parent stack."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.errors import one_of
from engine.hot.expressions.expression import Expression, FunctionCall, is_static
from engine.hot.expressions.masking import MASK
from engine.hot.functions.function import FunctionError, InvalidCall
from engine.words import Json

if TYPE_CHECKING:
    from engine.hot.evaluation.evaluator import Evaluator


@dataclass(frozen=True, slots=True)
class ResourceFacade:
    """The resource in the parent stack; unknown values contain a `FunctionCall`. secret: names of
    the fields with secret values.
    """

    metadata: Expression
    deletion_policy: Expression
    update_policy: Expression
    secret: frozenset[str] = frozenset()


_UNKNOWN = FunctionCall("resource_facade", "", None)
#: Facade of a template that is validated alone: the resource is unknown.
UNKNOWN_FACADE: Final = ResourceFacade(_UNKNOWN, _UNKNOWN, _UNKNOWN)

HOT_PARTS: Mapping[str, str] = {
    "metadata": "metadata", "deletion_policy": "deletion_policy", "update_policy": "update_policy",
}  # fmt: skip
CFN_PARTS: Mapping[str, str] = {
    "Metadata": "metadata", "DeletionPolicy": "deletion_policy", "UpdatePolicy": "update_policy",
}  # fmt: skip


def resource_facade(evaluator: "Evaluator", args: Json, place: str) -> Expression:
    """HOT's resource_facade."""
    return _read(evaluator, "resource_facade", HOT_PARTS, args, place)


def cfn_resource_facade(evaluator: "Evaluator", args: Json, place: str) -> Expression:
    """CFN's Fn::ResourceFacade."""
    return _read(evaluator, "Fn::ResourceFacade", CFN_PARTS, args, place)


def _read(
    evaluator: "Evaluator", name: str, parts: Mapping[str, str], args: Json, place: str
) -> Expression:
    part = evaluator.evaluate(args, place)
    if not isinstance(part, str) or part not in parts:
        raise InvalidCall(
            f'Incorrect arguments to "{name}" should be one of: {", ".join(parts)}',
            one_of(str(part), [*parts], "Known"),
        )
    facade = evaluator.scope.facade
    if facade is None:
        raise FunctionError(
            f'"{name}" is available only in nested stacks, and this stack is not nested',
            "Give the value as a parameter, or use the template as a resource type.",
        )
    if parts[part] in facade.secret:
        evaluator.secret = True
        if evaluator.masked:
            return MASK
    value: Expression = getattr(facade, parts[part])
    return value if is_static(value) else evaluator.defer("resource_facade", part)
