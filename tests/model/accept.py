"""The statements that begin, give up and end a traversal: engine/store/accept.py and finish.py."""

from engine.node import machine
from engine.plan.verdict import EndedNode, verdict
from engine.words import Action, Phase, State, TraversalState
from tests.model.planning import planned
from tests.model.store import ENDING, LIVE, RUNNING
from tests.model.world import Node, Row, Traversal, Want, World


def give_up(world: World, number: int, state: str) -> World:
    """SUPERSEDE_NODES, SUPERSEDE_HOOKS and SUPERSEDE_TRAVERSAL of engine/store/accept.py.

    Cancelling, too: there is no SQL for it yet, it is modelled as the same with state failed.
    """
    traversal = world.traversal(number)
    nodes = tuple(dropped(node) for node in traversal.nodes)
    due = any(node is not None and node.wake for node in nodes)
    world = world.with_traversal(number, traversal._replace(nodes=nodes, state=state, wake=due))
    return close_hooks(world, number)


def dropped(node: Node | None) -> Node | None:
    if node is None or (node.state, node.phase) not in machine.DROPPED_WHEN_SUPERSEDED:
        return node
    return node._replace(state=State.DROPPED, claim=node.claim + 1, wake=False)


def close_hooks(world: World, number: int) -> World:
    return world.with_hooks(
        hook._replace(said="superseded")
        if hook.traversal == number and hook.said == "waiting"
        else hook
        for hook in world.hooks
    )


def begin(world: World, action: Action, template: tuple[Want, ...]) -> World:
    """`insert_traversal` of engine/store/accept.py, of what the real planning plans."""
    number = world.current + 1
    made = planned(template, [(row, _running(world, row)) for row in world.rows], number)
    traversal = Traversal(
        action, RUNNING if made.active else ENDING, made.active, True, made.graph, made.nodes
    )
    rows = [row._replace(digest="") if row.id in made.stale else row for row in world.rows]
    world = world._replace(
        current=number, template=template, traversals=(*world.traversals, traversal)
    ).with_rows([*rows, *made.rows])
    for (older, node), successor in made.successors:
        world = succeeded(world, older, node, successor)
    return kept_rules(forgotten(world), template)


def succeeded(world: World, older: int, at: int, successor: int) -> World:
    """SET_SUCCESSORS."""
    node = world.node(older, at)
    assert node is not None
    return world.with_node(older, at, node._replace(successor=successor))


def _running(world: World, row: Row) -> tuple[int, int] | None:
    """The join of READ_EXISTING: the operation under way on a resource."""
    for number, traversal in enumerate(world.traversals, 1):
        for at, node in enumerate(traversal.nodes):
            acts = node is not None and node.state in LIVE and node.phase is Phase.ACT
            if acts and traversal.graph.nodes[at].resource == row.id:
                return number, at
    return None


def forgotten(world: World) -> World:
    """FORGET_NODES. Hooks of such nodes stay in the database; here only those that wait do."""
    for number, traversal in enumerate(world.traversals[:-1], 1):
        nodes = tuple(
            node if node is not None and node.state in LIVE else None for node in traversal.nodes
        )
        world = world.with_traversal(number, traversal._replace(nodes=nodes))
    return world.with_hooks(
        hook
        for hook in world.hooks
        if hook.said == "waiting" or world.node(hook.traversal, hook.node) is not None
    )


def kept_rules(world: World, template: tuple[Want, ...]) -> World:
    """STORE_RULES: breakpoints stay with their resources. A delete brings none."""
    rules = {want.name: want.rules for want in template}
    if not any(rules.values()) and not any(row.rules for row in world.rows):
        return world
    return world.with_rows(
        row._replace(rules=rules[row.name])
        if row.name in rules and row.replaced_by is None
        else row
        for row in world.rows
    )


def end(world: World, number: int) -> World:
    """LOCK_ENDING, then `end_traversal` of engine/store/finish.py with the real verdict."""
    traversal = world.traversal(number)
    if number != world.current or traversal.state != ENDING:
        return world
    unwell = [
        EndedNode(traversal.graph.nodes[at].name, "T", node.operation, node.state, "")
        for at, node in enumerate(traversal.nodes)
        if node is not None and node.state in (State.FAILED, State.STOPPED)
    ]
    said = verdict(traversal.action, unwell).state
    nodes = tuple(
        node._replace(state=State.DROPPED) if node and node.state is State.WAITING else node
        for node in traversal.nodes
    )
    ended = traversal._replace(state=said.value, wake=False, nodes=nodes)
    world = world.with_traversal(number, ended)
    if traversal.action is Action.DELETE and said is TraversalState.COMPLETE:
        return buried(world)
    return world


def buried(world: World) -> World:
    """BURY."""
    for number, traversal in enumerate(world.traversals, 1):
        nodes = (None,) * len(traversal.nodes)
        world = world.with_traversal(number, traversal._replace(nodes=nodes))
    return world._replace(buried=True, rows=())
