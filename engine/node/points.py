"""Where in the life of a node breakpoints can stand: one table for the machine and for planning."""

from collections.abc import Iterable, Mapping

from engine.hooks.rule import Rule
from engine.words import Action, Operation, Phase, Point, post_stack, pre_stack

#: Which points an operation passes, in the order of asking.
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
    # As in Heat, neither an adoption nor a snapshot asks; but see `OF_OPERATOR`.
    (Operation.ADOPT, Phase.PRE): (),
    (Operation.ADOPT, Phase.POST): (),
    (Operation.SNAPSHOT, Phase.PRE): (),
    (Operation.SNAPSHOT, Phase.POST): (),
    # The stack's own gates; of a stack's points a node has the rules of its action only.
    (Operation.BEGIN, Phase.PRE): tuple(pre_stack(action) for action in Action),
    (Operation.BEGIN, Phase.POST): (),
    (Operation.FINISH, Phase.PRE): tuple(post_stack(action) for action in Action),
    (Operation.FINISH, Phase.POST): (),
}  # fmt: skip

#: Where rules of the operator hold besides: what takes over a real thing passes them as what makes
#: one does.
OF_OPERATOR: Mapping[tuple[Operation, Phase], tuple[str, ...]] = {
    (Operation.ADOPT, Phase.PRE): (Point.PRE_CREATE,),
    (Operation.ADOPT, Phase.POST): (Point.POST_CREATE,),
}


def asked_at(rules: Iterable[Rule], operation: Operation, phase: Phase) -> list[Rule]:
    """Those of a node's rules that hold around an operation, in the order of asking."""
    by_point = {rule.point: rule for rule in rules}
    at = (operation, phase)
    found = [by_point[point] for point in POINTS[at] if point in by_point]
    others = [by_point[point] for point in OF_OPERATOR.get(at, ()) if point in by_point]
    return [*found, *(rule for rule in others if rule.by_operator)]
