"""What must hold of every move. Each rule gives a sentence, or nothing."""

from collections.abc import Callable

from engine.node.node import ENDED
from engine.node.points import POINTS
from engine.words import GATES, VISITS, Direction, Operation, Phase, Point, State, pre_stack
from tests.model.accept import IN_PLACE
from tests.model.protocol import Move
from tests.model.world import Fixed, Node, Row, World
from tests.model.world_rules import LIVE, UNDER_WAY, is_done, nodes_of


def a_stale_settle_changes_nothing(before: World, move: Move, after: World) -> str | None:
    if move.kind not in ("settle", "again") or move.hand is None:
        return None
    node = before.node(move.traversal, move.node)
    if node is not None and node.claim == move.hand.claim:
        return None
    same = _without_wakes(before) == _without_wakes(after)
    return None if same else "a settle with an old claim changed something"


def _without_wakes(world: World) -> World:
    """Looking at a stack tidies the wake-up times of its traversals."""
    still = tuple(traversal._replace(wake=False) for traversal in world.traversals)
    return world._replace(traversals=still, hands=(), luck=world.luck._replace(twice=0))


def no_operation_without_its_answer(before: World, move: Move, after: World) -> str | None:
    node = _called(before, move)
    if node is None:
        return None
    fixed = before.traversal(move.traversal).graph.nodes[move.node]
    asked = POINTS[node.operation, Phase.PRE]
    for rule in fixed.rules:
        if rule.point in asked and _said(before, move, rule.point) != "continue":
            return f"{node.operation} of {fixed.name} is called, and {rule.point} let nobody pass"
    return None


def _called(before: World, move: Move) -> Node | None:
    """The node whose operation is called now, by whoever has it."""
    if move.kind != "call" or move.hand is None:
        return None
    node = before.node(move.traversal, move.node)
    return node if node is not None and node.claim == move.hand.claim else None


def _said(world: World, move: Move, point: str) -> str | None:
    asked = (move.traversal, move.node, point)
    return next((hook.said for hook in world.hooks if hook[:3] == asked), None)


def operations_keep_the_order(before: World, move: Move, after: World) -> str | None:
    if _called(before, move) is None:
        return None
    traversal = before.traversal(move.traversal)
    fixed = traversal.graph.nodes[move.node]
    there = [one for one in fixed.after if traversal.nodes[one] is not None]
    early = [one for one in there if not is_done(traversal, one)]
    if early:
        return f"{fixed.name} is called before {traversal.graph.nodes[early[0]].name} is done"
    if before.traversal(move.traversal).action in IN_PLACE or not fixed.name:
        return None  # of one resource, it says nothing of another
    if move.traversal == before.current and fixed.direction is Direction.FORWARD:
        return _not_there(before, fixed)
    return _still_used(before, move, fixed)


def _not_there(world: World, fixed: Fixed) -> str | None:
    wants = {want.name: want for want in world.template}
    for name in wants[fixed.name].requires:
        rows = [row for row in world.rows if row.name == name and row.replaced_by is None]
        if [(row.digest, row.status) for row in rows] != [(wants[name].value, "COMPLETE")]:
            return f"{fixed.name} is called, and {name}, which it requires, is not there"
    return None


def _still_used(world: World, move: Move, fixed: Fixed) -> str | None:
    """But whoever merely came after what was replaced does not mind."""
    node, gone = world.node(move.traversal, move.node), world.row(fixed.resource)
    if node is None or node.operation is not Operation.DELETE or gone is None or gone.replaced_by:
        return None
    for row, _, uses in world.things:
        if fixed.resource in uses and row not in world.left and not _is_freed(world, row, fixed):
            return f"{fixed.name} is deleted, and something there still uses it"
    return None


def _is_freed(world: World, user: int, fixed: Fixed) -> bool:
    """What came after it once, and is as wanted by a template in which it no longer does, does not
    use it: its row is only told so when it changes next."""
    row = world.row(user)
    return row is not None and any(
        want.name == row.name and want.value == row.digest and fixed.name not in want.requires
        for want in world.template
    )


def what_is_to_stay_is_not_deleted(before: World, move: Move, after: World) -> str | None:
    node = _called(before, move)
    if node is None or node.operation is not Operation.DELETE:
        return None
    row = before.row(node.resource)
    stays = row is not None and row.policy == "Retain"
    return f"{row.name} is to be retained, and is deleted" if row and stays else None


def what_goes_asks_as_it_was_told_to(before: World, move: Move, after: World) -> str | None:
    """Breakpoints stay with a resource that leaves the template."""
    node = _called(before, move)
    if node is None or node.operation is not Operation.DELETE:
        return None
    graph = before.traversal(move.traversal).graph
    fixed = graph.nodes[move.node]
    row = before.row(fixed.resource)
    if row is None or row.replaced_by or any(want.name == fixed.name for want in graph.template):
        return None
    rules = next((want.rules for want in graph.before if want.name == fixed.name), ())
    asks = any(rule.point == Point.PRE_DELETE for rule in rules)
    if asks and _said(before, move, Point.PRE_DELETE) != "continue":
        return f"{fixed.name} is deleted, and was not asked for"
    return None


def what_is_restricted_is_not_done(before: World, move: Move, after: World) -> str | None:
    node = _called(before, move)
    if node is None:
        return None
    fixed = before.traversal(move.traversal).graph.nodes[move.node]
    wrong = node.operation in fixed.restricted
    return f"{node.operation} of {fixed.name} is restricted" if wrong else None


def what_was_given_up_begins_nothing(before: World, move: Move, after: World) -> str | None:
    for number, at, fixed, node in nodes_of(after):
        if number > len(before.traversals) or after.traversal(number).state in UNDER_WAY:
            continue
        was = before.node(number, at)
        begins = was is not None and was.phase is Phase.PRE and node.phase is Phase.ACT
        if begins:
            return f"{fixed.name} of traversal {number}, which was given up, begins"
        if was is not None and len(node.passed) > len(was.passed) and node.state is State.PARKED:
            return f"{fixed.name} of traversal {number}, which was given up, asks"
    return None


def what_was_ended_stays_so(before: World, move: Move, after: World) -> str | None:
    for number, at, fixed, node in nodes_of(before):
        now = after.node(number, at)
        if node.state in ENDED and now is not None and now.state is not node.state:
            return f"{fixed.name} was {node.state} and is {now.state}"
    return None


def a_check_changes_no_definition(before: World, move: Move, after: World) -> str | None:
    if move.kind not in ("settle", "again") or not move.traversal:
        return None
    if before.traversal(move.traversal).action not in IN_PLACE:
        return None
    was = {row.id: _definition(row) for row in before.rows}
    now = {row.id: _definition(row) for row in after.rows}
    return None if was == now else f"a check changes {was} to {now}"


def _definition(row: Row) -> tuple[str, str | None, bool, str]:
    return row.digest, row.value, row.made, row.policy


def a_check_waits_for_what_is_under_way(before: World, move: Move, after: World) -> str | None:
    """What an older traversal still does to a resource ends before its check is called."""
    node = _called(before, move)
    if node is None or node.operation not in VISITS:
        return None
    busy = any(
        other.resource == node.resource and other.state in LIVE and other.phase is Phase.ACT
        for number, _, _, other in nodes_of(before)
        if number < move.traversal
    )
    return "a resource is checked while an older operation is under way on it" if busy else None


def in_place_actions_keep_the_order(before: World, move: Move, after: World) -> str | None:
    """Resources are suspended before those they use, and resumed after them."""
    node = _called(before, move)
    row = None if node is None else before.row(node.resource)
    if node is None or row is None:
        return None
    if node.operation is Operation.SUSPEND:
        users = [one for one in before.rows if row.id in one.requires and one.made]
        if any((one.action, one.status) != ("SUSPEND", "COMPLETE") for one in users):
            return f"{row.name} is suspended before a resource that uses it"
    if node.operation is Operation.RESUME:
        used = [one for one in before.rows if one.id in row.requires]
        if any(one.action == "SUSPEND" for one in used):
            return f"{row.name} is resumed before a resource that it uses"
    return None


def a_stack_hook_holds_every_node(before: World, move: Move, after: World) -> str | None:
    node = _called(before, move)
    if node is None or node.operation in GATES or move.traversal != before.current:
        return None
    point = pre_stack(before.traversal(move.traversal).action)
    asks = any(rule.point == point for rule in before.stack)
    answered = any(
        hook.traversal == move.traversal and hook.point == point and hook.said == "continue"
        for hook in before.hooks
    )
    return (
        f"{node.operation} is called before {point} was answered" if asks and not answered else None
    )


MOVE_RULES: tuple[Callable[[World, Move, World], str | None], ...] = (
    a_stale_settle_changes_nothing,
    no_operation_without_its_answer,
    operations_keep_the_order,
    what_is_to_stay_is_not_deleted,
    what_goes_asks_as_it_was_told_to,
    what_is_restricted_is_not_done,
    what_was_given_up_begins_nothing,
    what_was_ended_stays_so,
    a_check_changes_no_definition,
    a_check_waits_for_what_is_under_way,
    in_place_actions_keep_the_order,
    a_stack_hook_holds_every_node,
)
