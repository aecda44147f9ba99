"""The points of each operation: one table for the machine and for planning."""

from collections.abc import Iterable, Mapping

from engine.hooks.rule import Rule
from engine.words import Action, Operation, Phase, Point, post_stack, pre_stack

#: The points of an operation by phase, in the order in which their hooks open.
POINTS: Mapping[tuple[Operation, Phase], tuple[str, ...]] = {
    (Operation.CREATE, Phase.PRE): (Point.PRE_CREATE,),
    (Operation.CREATE, Phase.POST): (Point.POST_CREATE,),
    (Operation.UPDATE, Phase.PRE): (Point.PRE_UPDATE,),
    (Operation.UPDATE, Phase.POST): (Point.POST_UPDATE,),
    (Operation.REPLACE, Phase.PRE): (
        Point.PRE_UPDATE, Point.PRE_REPLACE, Point.PRE_CREATE,
    ),
    (Operation.REPLACE, Phase.POST): (
        Point.POST_CREATE, Point.POST_REPLACE, Point.POST_UPDATE,
    ),
    (Operation.DELETE, Phase.PRE): (Point.PRE_DELETE,),
    (Operation.DELETE, Phase.POST): (Point.POST_DELETE,),
    (Operation.CHECK, Phase.PRE): (Point.PRE_CHECK,),
    (Operation.CHECK, Phase.POST): (Point.POST_CHECK,),
    (Operation.SUSPEND, Phase.PRE): (Point.PRE_SUSPEND,),
    (Operation.SUSPEND, Phase.POST): (Point.POST_SUSPEND,),
    (Operation.RESUME, Phase.PRE): (Point.PRE_RESUME,),
    (Operation.RESUME, Phase.POST): (Point.POST_RESUME,),
    # As in Heat, adopt and snapshot have no points; but see `OF_OPERATOR`.
    (Operation.ADOPT, Phase.PRE): (),
    (Operation.ADOPT, Phase.POST): (),
    (Operation.SNAPSHOT, Phase.PRE): (),
    (Operation.SNAPSHOT, Phase.POST): (),
    # Gates. Their node has only the rules of its own action.
    (Operation.BEGIN, Phase.PRE): tuple(pre_stack(action) for action in Action),
    (Operation.BEGIN, Phase.POST): (),
    (Operation.FINISH, Phase.PRE): tuple(post_stack(action) for action in Action),
    (Operation.FINISH, Phase.POST): (),
}  # fmt: skip

#: Further points, for rules of the operator only: an adoption passes those of a create.
OF_OPERATOR: Mapping[tuple[Operation, Phase], tuple[str, ...]] = {
    (Operation.ADOPT, Phase.PRE): (Point.PRE_CREATE,),
    (Operation.ADOPT, Phase.POST): (Point.POST_CREATE,),
}


def rules_at(rules: Iterable[Rule], operation: Operation, phase: Phase) -> list[Rule]:
    """Return the rules that apply to a phase of an operation, in the order of their points."""
    by_point = {rule.point: rule for rule in rules}
    at = (operation, phase)
    found = [by_point[point] for point in POINTS[at] if point in by_point]
    others = [by_point[point] for point in OF_OPERATOR.get(at, ()) if point in by_point]
    return [*found, *(rule for rule in others if rule.by_operator)]
