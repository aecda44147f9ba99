"""What must hold in every world. Each rule gives a sentence, or nothing.

None of them asks the model's own bookkeeping: `waits` and `active` are counted anew from the graph.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from engine.words import GATES, Action, Phase, State, post_stack
from tests.model.accept import IN_PLACE
from tests.model.store import is_working
from tests.model.world import Fixed, Node, Traversal, World

LIVE = frozenset({State.READY, State.RUNNING, State.PARKED})
UNDER_WAY = ("running", "ending")

Where = tuple[int, int, Fixed, Node]


def nodes_of(world: World) -> Iterator[Where]:
    for number, traversal in enumerate(world.traversals, 1):
        for at, node in enumerate(traversal.nodes):
            if node is not None:
                yield number, at, traversal.graph.nodes[at], node


def awaited(world: World) -> set[int]:
    """Nodes of the current traversal that an older operation, still under way, is to let go."""
    return {
        node.successor
        for number, _, _, node in nodes_of(world)
        if number < world.current and node.successor is not None and node.state in LIVE
    }


def waits_are_what_is_waited_for(world: World) -> str | None:
    if not world.current:
        return None
    traversal = world.traversal(world.current)
    older = awaited(world)
    for at, node in enumerate(traversal.nodes):
        if traversal.state not in UNDER_WAY or node is None:
            continue
        undone = [one for one in traversal.graph.nodes[at].after if not is_done(traversal, one)]
        expected = len(undone) + (at in older)
        if node.waits != expected:
            return f"a node waits for {expected} others and says {node.waits}"
        if (node.state is State.WAITING) != (expected > 0):
            return f"a node {node.state} waits for {expected}"
    return None


def is_done(traversal: Traversal, at: int) -> bool:
    node = traversal.nodes[at]
    return node is not None and node.state is State.DONE


def active_is_what_is_active(world: World) -> str | None:
    older = awaited(world)
    for number, traversal in enumerate(world.traversals, 1):
        if traversal.state not in UNDER_WAY:
            continue
        active = sum(
            node.state in LIVE or (node.state is State.WAITING and at in older)
            for at, node in enumerate(traversal.nodes)
            if node is not None
        )
        if active != traversal.active:
            return f"traversal {number} has {active} active nodes and counts {traversal.active}"
        if (active == 0) != (traversal.state == "ending"):
            return f"traversal {number} is {traversal.state} with {active} active nodes"
    return None


def what_is_live_will_be_woken(world: World) -> str | None:
    """No lease is held for ever, no timer is lost; a parked node has its hook."""
    waiting = {(hook.traversal, hook.node) for hook in world.hooks if hook.said == "waiting"}
    for number, at, fixed, node in nodes_of(world):
        timed = node.state in LIVE and not (
            node.state is State.PARKED and node.phase is not Phase.ACT
        )
        if node.wake != timed:
            return f"{fixed.name} is {node.state} in {node.phase}, and its wake-up is {node.wake}"
        if node.wake and not world.traversal(number).wake:
            return f"traversal {number} does not lead to its node {fixed.name}"
        if node.state in LIVE and not timed and (number, at) not in waiting:
            return f"{fixed.name} is parked, and no hook of it waits"
    return None


def what_ends_is_led_to(world: World) -> str | None:
    for number, traversal in enumerate(world.traversals, 1):
        if world.timed and is_working(traversal) and not traversal.wake:
            return f"nobody will see that the time of traversal {number} is over"
        if traversal.state == "ending" and not traversal.wake:
            return f"traversal {number} is ending and nobody will end it"
    return None


def a_waiting_hook_holds_a_node(world: World) -> str | None:
    for hook in world.hooks:
        if hook.said != "waiting":
            continue
        if hook.traversal != world.current:
            return "a hook of a superseded traversal waits"
        if world.traversal(hook.traversal).state != "running":
            return "a hook of an ended traversal waits"
        node = world.node(hook.traversal, hook.node)
        if node is None or node.state is not State.PARKED or node.passed[-1:] != (hook.point,):
            return "a hook waits that holds no node"
    return None


def a_point_is_asked_once(world: World) -> str | None:
    asked = Counter(hook[:3] for hook in world.hooks)
    return "a point was asked twice" if any(many > 1 for many in asked.values()) else None


def what_was_given_up_only_acts(world: World) -> str | None:
    for number, _, fixed, node in nodes_of(world):
        under_way = world.traversal(number).state in UNDER_WAY
        if not under_way and node.state in LIVE and node.phase is not Phase.ACT:
            return f"{fixed.name} of ended traversal {number} is {node.state} in {node.phase}"
        if not under_way and node.state is State.READY:
            return f"{fixed.name} of ended traversal {number} is ready"
    return None


def an_operation_is_carried_out_once(world: World) -> str | None:
    for _, _, fixed, node in nodes_of(world):
        called = {(key, operation) for key, operation, _ in node.acted}
        keys, operations = {key for key, _ in called}, {operation for _, operation in called}
        if len(keys) != len(called) or len(operations) != len(called) or -1 in keys:
            return f"{fixed.name} took effect as {sorted(called)}"
        if node.outcomes > 1:
            return f"{node.outcomes} outcomes of one operation on {fixed.name} were written"
    return None


def a_claim_is_held_once(world: World) -> str | None:
    held = Counter(hand[:3] for hand in world.hands)
    return "one claim is held twice" if any(many > 1 for many in held.values()) else None


def one_operation_at_a_time_on_a_resource(world: World) -> str | None:
    acting = Counter(
        node.resource
        for _, _, _, node in nodes_of(world)
        if node.state in LIVE and node.phase is Phase.ACT and node.operation not in GATES
    )
    return "two operations on one row" if any(many > 1 for many in acting.values()) else None


def a_name_has_one_row(world: World) -> str | None:
    names = Counter(row.name for row in world.rows if row.replaced_by is None)
    twice = [name for name, many in names.items() if many > 1]
    return f"two rows stand for the name {twice[0]}" if twice else None


def a_complete_stack_is_what_was_wanted(world: World) -> str | None:
    if not _is_reached(world):
        return None
    wanted = {want.name: (want.value, want.value, "COMPLETE") for want in world.template}
    there = {row.name: (row.digest, row.value, row.status) for row in world.rows}
    if len(there) != len(world.rows):
        return "a stack is complete, and a row that was replaced is left"
    if there != wanted:
        return f"a stack is complete with {there}, and {wanted} was wanted"
    return None


def a_complete_stack_is_really_so(world: World) -> str | None:
    """Also what is there outside is what was wanted, and of what was deleted nothing is left but
    what was to stay."""
    if not _is_reached(world):
        return None
    said = tuple((row.id, row.value) for row in world.rows)
    there = tuple(thing[:2] for thing in world.things if thing[0] not in world.left)
    if said != there:
        return f"a stack is complete with {said}, and what there really is is {world.things}"
    return None


def _is_reached(world: World) -> bool:
    """An in-place action that succeeds does not apply the template."""
    current = world.traversal(world.current) if world.current else None
    return current is not None and current.state == "complete" and current.action not in IN_PLACE


def a_way_back_leads_to_what_was_reached(world: World) -> str | None:
    if not world.current or world.traversal(world.current).action is not Action.ROLLBACK:
        return None
    reached = () if world.reached is None else world.reached.template
    return None if world.template == reached else f"the way back does not lead to {reached}"


def what_was_to_stay_is_there(world: World) -> str | None:
    gone = world.left - {thing[0] for thing in world.things}
    return f"the rows {sorted(gone)} went, and what was to stay did so, too" if gone else None


def an_in_place_action_reaches_every_resource(world: World) -> str | None:
    current = world.traversal(world.current) if world.current else None
    if current is None or current.state != "complete":
        return None
    suspended = {row.name for row in world.rows if row.made and row.action == "SUSPEND"}
    made = {row.name for row in world.rows if row.made}
    if current.action is Action.SUSPEND and suspended != made:
        return f"the suspend completed without {sorted(made - suspended)}"
    if current.action is Action.RESUME and suspended:
        return f"the resume completed without {sorted(suspended)}"
    return None


def a_stack_completes_behind_its_hook(world: World) -> str | None:
    current = world.traversal(world.current) if world.current else None
    if current is None or current.state != "complete":
        return None
    point = post_stack(current.action)
    asks = any(rule.point == point for rule in world.stack)
    answered = any(
        hook.traversal == world.current and hook.point == point and hook.said == "continue"
        for hook in world.hooks
    )
    return f"the stack completed before {point} was answered" if asks and not answered else None


def a_hook_continues_with_all_its_approvals(world: World) -> str | None:
    for hook in world.hooks:
        node = world.traversal(hook.traversal).graph.nodes[hook.node]
        needed = next((rule.approvals for rule in node.rules if rule.point == hook.point), 1)
        given = len(set(hook.approved))
        if needed > 1 and hook.said == "continue" and given < needed:
            return f"{hook.point} continued with {given} of {needed} approvals"
        if hook.said == "waiting" and given >= needed > 1:
            return f"{hook.point} waits although it has {given} of {needed} approvals"
    return None


WORLD_RULES: tuple[Callable[[World], str | None], ...] = (
    waits_are_what_is_waited_for,
    active_is_what_is_active,
    what_is_live_will_be_woken,
    what_ends_is_led_to,
    a_waiting_hook_holds_a_node,
    a_point_is_asked_once,
    what_was_given_up_only_acts,
    an_operation_is_carried_out_once,
    a_claim_is_held_once,
    one_operation_at_a_time_on_a_resource,
    a_name_has_one_row,
    a_complete_stack_is_what_was_wanted,
    a_complete_stack_is_really_so,
    a_way_back_leads_to_what_was_reached,
    what_was_to_stay_is_there,
    an_in_place_action_reaches_every_resource,
    a_stack_completes_behind_its_hook,
    a_hook_continues_with_all_its_approvals,
)
