"""The statements that start, cancel and end a traversal (engine/store/traversal_start.py and
traversal_end.py), and the part of engine/service that decides between them."""

from collections.abc import Iterator

from engine.node.inputs import Superseded
from engine.node.node import Refused
from engine.plan.verdict import EndedNode, verdict
from engine.service.traversals.end import ROLLED_BACK
from engine.words import GATES, Action, Operation, Phase, State, TraversalState
from tests.model.planning import Busy, Known, Planned, planned, planned_visits
from tests.model.store import ENDING, FAILED, LIVE, RUNNING, is_over
from tests.model.telling import decided
from tests.model.world import Node, Row, Traversal, Want, World


def give_up(world: World, number: int, state: str) -> World:
    """`end_early` of engine/store/traversal_end.py, of a traversal that is under way."""
    traversal = world.traversal(number)
    nodes = tuple(dropped(node) for node in traversal.nodes)
    due = any(node is not None and node.wake for node in nodes)
    world = world.with_traversal(number, traversal._replace(nodes=nodes, state=state, wake=due))
    return close_hooks(world, number)


def dropped(node: Node | None) -> Node | None:
    if node is None:
        return None
    step = decided(node.operation, node.state, node.phase, (), node.passed, Superseded())
    if isinstance(step, Refused):
        return node
    wake = step.node.state is State.READY
    return node._replace(
        state=step.node.state, phase=step.node.phase, claim=node.claim + 1, wake=wake
    )


def close_hooks(world: World, number: int) -> World:
    return world.with_hooks(
        hook._replace(said="superseded")
        if hook.traversal == number and hook.said == "waiting"
        else hook
        for hook in world.hooks
    )


def begin(world: World, action: Action, template: tuple[Want, ...]) -> World:
    """A change toward a template, of what the real planning plans."""
    number = world.current + 1
    made = planned(template, known(world), number, said_before(world), action, world.stack)
    return kept(begun(world, action, made), template)


#: The operation of each in-place action.
IN_PLACE = {
    Action.CHECK: Operation.CHECK,
    Action.SUSPEND: Operation.SUSPEND,
    Action.RESUME: Operation.RESUME,
}


def visit(world: World, action: Action) -> World:
    """`start_action` of engine/service/stacks.py: refused while a traversal is under way."""
    if not world.current or world.traversal(world.current).state in (RUNNING, ENDING):
        return world
    made = planned_visits(
        IN_PLACE[action],
        world.template,
        known(world),
        said_before(world),
        action,
        world.stack,
    )
    return begun(world, action, made)


def begun(world: World, action: Action, made: Planned) -> World:
    """`insert_traversal` of engine/store/traversal_start.py."""
    number = world.current + 1
    traversal = Traversal(
        action, RUNNING if made.active else ENDING, made.active, True, made.graph, made.nodes
    )
    rows = [row._replace(digest="") if row.id in made.stale else row for row in world.rows]
    world = world._replace(current=number, traversals=(*world.traversals, traversal)).with_rows(
        [*rows, *made.rows]
    )
    world = forgotten(world)
    for (older, node), successor in made.successors:
        world = succeeded(world, older, node, successor)
    return world


def said_before(world: World) -> tuple[Want, ...]:
    """What was last said of each resource."""
    if not world.current:
        return ()
    graph = world.traversal(world.current).graph
    said = {want.name: want for want in (*graph.before, *graph.template)}
    return tuple(said.values())


def succeeded(world: World, older: int, at: int, successor: int) -> World:
    """SET_SUCCESSORS."""
    node = world.node(older, at)
    if node is None:
        return world
    return world.with_node(older, at, node._replace(successor=successor))


def known(world: World) -> Known:
    """READ_EXISTING: each row with what is under way on it, and rows that are only under way."""
    busy = dict(_busy(world))
    there = {row.id for row in world.rows}
    coming = [
        (_coming(world, one), one)
        for resource, one in busy.items()
        if resource not in there and one.replacement is not None
    ]
    return (*((row, busy.get(row.id)) for row in world.rows), *coming)


def _busy(world: World) -> Iterator[tuple[int, Busy]]:
    for number, traversal in enumerate(world.traversals, 1):
        for at, node in enumerate(traversal.nodes):
            if (
                node is not None
                and node.state in LIVE
                and node.phase is Phase.ACT
                and node.operation not in GATES
            ):
                fixed = traversal.graph.nodes[at]
                busy = Busy(
                    (number, at), node.operation, fixed.replacement, fixed.requires or (),
                    fixed.rules,
                )  # fmt: skip
                yield node.resource, busy


def _coming(world: World, busy: Busy) -> Row:
    """The second half of READ_EXISTING: the row that a node will make whose own has gone."""
    number, at = busy.node
    assert busy.replacement is not None
    name = world.traversal(number).graph.nodes[at].name
    return Row(busy.replacement, name, "INIT", "COMPLETE", "", rules=busy.rules)


def forgotten(world: World) -> World:
    """archive_nodes and FORGET_SUCCESSORS.

    Hooks of such nodes stay in the database; here only those that wait do.
    """
    for number, traversal in enumerate(world.traversals[:-1], 1):
        nodes = tuple(
            node._replace(successor=None) if node is not None and node.state in LIVE else None
            for node in traversal.nodes
        )
        world = world.with_traversal(number, traversal._replace(nodes=nodes))
    return world.with_hooks(
        hook
        for hook in world.hooks
        if hook.said == "waiting" or world.node(hook.traversal, hook.node) is not None
    )


def kept(world: World, template: tuple[Want, ...]) -> World:
    """`store_rules` of engine/service/traversals: breakpoints stay with their resources."""
    wants = {want.name: want for want in template}
    said = any(want.rules for want in template)
    if not said and not any(row.rules for row in world.rows):
        return world
    return world.with_rows(
        row._replace(rules=wants[row.name].rules)
        if row.name in wants and row.replaced_by is None
        else row
        for row in world.rows
    )


def cancel(world: World, ends: str) -> World:
    """`cancel` and `stop` of engine/service/actions/cancel.py; ends: how."""
    current = world.traversal(world.current)
    if current.state not in (RUNNING, ENDING):
        return world
    if ends == "stopped":
        return give_up(world, world.current, "stopped")
    if current.action is Action.DELETE:
        return world
    if ends == "failed":
        return give_up(world, world.current, FAILED)
    if current.action is not Action.UPDATE:
        return world
    return roll_back(give_up(world, world.current, FAILED))


def roll_back(world: World) -> World:
    """`roll_back` of engine/service/traversals/end.py."""
    template = () if world.reached is None else world.reached.template
    return begin(world, Action.ROLLBACK, template)


def end(world: World, number: int) -> World:
    """`end` of engine/service/traversals/end.py, with the real verdict."""
    traversal = world.traversal(number)
    if number != world.current or not is_over(traversal):
        return world
    if traversal.state == RUNNING:
        said = TraversalState.FAILED
        world = give_up(world, number, said.value)
    else:
        said = verdict(traversal.action, _unwell(traversal)).state
        world = _ended(world, number, said)
    if traversal.action is Action.DELETE and said is TraversalState.COMPLETE:
        return buried(world)
    back = traversal.action in ROLLED_BACK and world.rolls_back
    return roll_back(world) if back and said is TraversalState.FAILED else world


def _unwell(traversal: Traversal) -> list[EndedNode]:
    return [
        EndedNode(traversal.graph.nodes[at].name, "T", node.operation, node.state, "")
        for at, node in enumerate(traversal.nodes)
        if node is not None and node.state in (State.FAILED, State.STOPPED)
    ]


def _ended(world: World, number: int, said: TraversalState) -> World:
    """`end_traversal` of engine/store/traversal_end.py."""
    traversal = world.traversal(number)
    nodes = tuple(
        node._replace(state=State.DROPPED) if node and node.state is State.WAITING else node
        for node in traversal.nodes
    )
    ended = traversal._replace(state=said.value, wake=False, nodes=nodes)
    if said is TraversalState.COMPLETE and traversal.action not in (Action.DELETE, *IN_PLACE):
        world = world._replace(reached=traversal.graph)
    return world.with_traversal(number, ended)


def buried(world: World) -> World:
    """BURY."""
    for number, traversal in enumerate(world.traversals, 1):
        nodes = (None,) * len(traversal.nodes)
        world = world.with_traversal(number, traversal._replace(nodes=nodes))
    return world._replace(buried=True, rows=())
