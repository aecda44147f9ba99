"""What a nested template may read of the resource that it stands for, in the stack above it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.hot.expression import Call, Expression, is_static
from engine.hot.function import Wrong
from engine.words import Json

if TYPE_CHECKING:
    from engine.hot.partial import Evaluator


@dataclass(frozen=True, slots=True)
class Facade:
    """The resource in the stack above; what is not known yet holds a `Call`."""

    metadata: Expression
    deletion_policy: Expression
    update_policy: Expression


_LATER = Call("resource_facade", "", None)
#: Of a template that is looked at by itself: nothing is known of who will use it.
PRESUMED: Final = Facade(_LATER, _LATER, _LATER)

HOT_PARTS: Mapping[str, str] = {
    "metadata": "metadata", "deletion_policy": "deletion_policy", "update_policy": "update_policy",
}  # fmt: skip
CFN_PARTS: Mapping[str, str] = {
    "Metadata": "metadata", "DeletionPolicy": "deletion_policy", "UpdatePolicy": "update_policy",
}  # fmt: skip


def resource_facade(evaluator: "Evaluator", args: Json, place: str) -> Expression:
    return _read(evaluator, "resource_facade", HOT_PARTS, args, place)


def cfn_resource_facade(evaluator: "Evaluator", args: Json, place: str) -> Expression:
    return _read(evaluator, "Fn::ResourceFacade", CFN_PARTS, args, place)


def _read(
    evaluator: "Evaluator", name: str, parts: Mapping[str, str], args: Json, place: str
) -> Expression:
    part = evaluator.evaluate(args, place)
    if not isinstance(part, str) or part not in parts:
        raise Wrong(f'Incorrect arguments to "{name}" should be one of: {", ".join(parts)}')
    facade = evaluator.scope.facade
    if facade is None:
        raise Wrong(
            f'"{name}" reads the resource that this template stands for in another stack, '
            "and this stack is in none",
            "Give the value as a parameter, or use the template as a resource type.",
        )
    value: Expression = getattr(facade, parts[part])
    return value if is_static(value) else evaluator.keep("resource_facade", part)
