"""The SQL function `advance` over the model. Each function says which part of it it stands for.

Small on purpose: tests/model/faults.py breaks them one at a time.
"""

from engine.hooks.rule import Rule
from engine.node.node import ENDED
from engine.words import Direction, Operation, Phase, State
from tests.model.world import (
    KEPT,
    Fixed,
    Hand,
    Hook,
    Node,
    Row,
    Seen,
    Told,
    Traversal,
    World,
    Write,
)

RUNNING, ENDING, SUPERSEDED, FAILED = "running", "ending", "superseded", "failed"
ENDS = ("complete", "failed", "stopped")
LIVE = frozenset({State.READY, State.RUNNING, State.PARKED})


def fits(node: Node | None, hand: Hand) -> bool:
    """`step` in `apply_transitions`: the claim is the node's still, and it can move."""
    return node is not None and node.claim == hand.claim and node.state in LIVE


def settle(world: World, hand: Hand, told: Told) -> World:
    """`advance` with one step, claiming nothing. `hand` says which node and which claim."""
    node = world.node(hand.traversal, hand.node)
    if not fits(node, hand):
        return retimed(world)
    assert node is not None
    world = write(world, hand, told.write)
    world = opened(world, hand, told)
    world = moved(world, hand, node, told)
    world, changes = released(world, hand, node, told)
    return retimed(counted(world, changes))


def refuses(world: World, hand: Hand, told: Told) -> bool:
    """`refused` in `apply_transitions`: a traversal that has ended opens no hooks."""
    over = world.traversal(hand.traversal).state != RUNNING
    return over and bool(told.hooks) and fits(world.node(hand.traversal, hand.node), hand)


def moved(world: World, hand: Hand, node: Node, told: Told) -> World:
    """`moved` in `apply_transitions`."""
    changed = node._replace(
        state=told.state,
        phase=told.phase,
        operation=told.operation,
        passed=told.passed,
        claim=bumped(node.claim),
        wake=told.wake or told.state in (State.RUNNING, State.READY),
        key=rekeyed(node, told),
        attempts=told.attempts,
        outcomes=node.outcomes + told.outcome,
    )
    return world.with_node(hand.traversal, hand.node, changed)


def bumped(claim: int) -> int:
    """`claim = n.claim + 1` in `moved`: what was said once cannot be said again."""
    return claim + 1


def rekeyed(node: Node, told: Told) -> int | None:
    """`operation_key` in `moved`: another operation has another key."""
    another = told.operation is not node.operation
    if told.phase is not Phase.ACT:
        return None if another else node.key
    return node.claim if another else keyed(node, node.claim)


def keyed(node: Node, number: int) -> int:
    """`coalesce(n.operation_key, gen_random_uuid())`, in `moved` and `claimed`."""
    return number if node.key is None else node.key


def opened(world: World, hand: Hand, told: Told) -> World:
    """`hooked` in `apply_transitions`."""
    if not told.hooks:
        return world
    fresh = [Hook(hand.traversal, hand.node, point, said) for point, said in told.hooks]
    return world.with_hooks([*world.hooks, *fresh])


def released(
    world: World, hand: Hand, node: Node, told: Told
) -> tuple[World, list[tuple[int, int]]]:
    """`wake_dependents`; with it the parts of `update_clock`."""
    changes = [(hand.traversal, -1 if told.state in ENDED else 0)]
    freed = freed_by(world, hand, node, told)
    if node.successor is not None and told.state in ENDED:
        changes.append((world.current, -1))
    for traversal, one in freed:
        waiting = world.node(traversal, one)
        if waiting is None or waiting.state is not State.WAITING:
            continue
        waits = waiting.waits - 1
        ready = State.READY if waits == 0 else State.WAITING
        changed = waiting._replace(waits=waits, state=ready, wake=waits == 0)
        if traversal != hand.traversal:
            changed = changed._replace(resource=moved_to(world, told, traversal, one))
        world = world.with_node(traversal, one, changed)
        if waits == 0:
            changes.append((traversal, 1))
    return world, changes


def freed_by(world: World, hand: Hand, node: Node, told: Told) -> list[tuple[int, int]]:
    """`freed`: what waited for this node, and the newer traversal's node that waits for it."""
    requirers = world.traversal(hand.traversal).graph.nodes[hand.node].requirers
    freed = [(hand.traversal, one) for one in requirers] if told.state is State.DONE else []
    if node.successor is not None and told.state in ENDED:
        freed.append((world.current, node.successor))
    return freed


def moved_to(world: World, told: Told, number: int, at: int) -> int:
    """`freed.moved_to`: who waited for an operation goes on with what that has put in its place."""
    node, fixed = world.node(number, at), world.traversal(number).graph.nodes[at]
    assert node is not None
    inserts = told.write is not None and told.write.kind == "insert"
    if inserts and fixed.direction is Direction.FORWARD:
        assert told.write is not None
        return told.write.row.id
    return node.resource


def counted(world: World, changes: list[tuple[int, int]]) -> World:
    """`update_clock`: a traversal of which nothing is active any more is ending."""
    for number in {number for number, _ in changes}:
        traversal = world.traversal(number)
        active = traversal.active + sum(change for one, change in changes if one == number)
        ends = traversal.state == RUNNING and active == 0
        state = ENDING if ends else traversal.state
        world = world.with_traversal(
            number, traversal._replace(active=active, state=state, wake=True)
        )
    return world


def retimed(world: World) -> World:
    """`timed` at the end of `advance`, for every traversal of a stack it touched."""
    for number, traversal in enumerate(world.traversals, 1):
        if traversal.wake and traversal.state != ENDING:
            due = any(node is not None and node.wake for node in traversal.nodes)
            if not due and not (world.timed and is_working(traversal)):
                world = world.with_traversal(number, traversal._replace(wake=False))
    return world


def is_working(traversal: Traversal) -> bool:
    """`working_since`: time counts while anything but hooks is left to do."""
    held = sum(
        node is not None and node.state is State.PARKED and node.phase is not Phase.ACT
        for node in traversal.nodes
    )
    return traversal.state == RUNNING and traversal.active > held


def is_over(traversal: Traversal) -> bool:
    """The second half of `ending` in `claim_due`: nothing is left to do, or its time is over."""
    return traversal.state == ENDING or (traversal.late and is_working(traversal))


def write(world: World, hand: Hand, said: Write | None) -> World:
    """`written`, `removed`, `replaced` and `inserted` in `apply_transitions`."""
    if said is None:
        return world
    fixed = world.traversal(hand.traversal).graph.nodes[hand.node]
    rows = list(world.rows)
    if said.kind == "update":
        rows = [_updated(world, row, said.row, fixed) for row in rows]
    if said.kind == "remove":
        rows = [row for row in rows if row.id != said.row.id]
        rows = passed_on(rows, said.row)
        if said.row.policy == "Retain" and any(thing[0] == said.row.id for thing in world.things):
            world = world._replace(left=world.left | {said.row.id})
    if said.kind in ("insert", "leave"):
        rows = [_pointed(row, said) if row.id == said.replaces else row for row in rows]
        requires = _ids(world, fixed.requires or ())
        rules = _stays_with(world, fixed, said)
        rows = [*rows, said.row._replace(requires=requires, rules=rules)]
    return world.with_rows(rows)


def _stays_with(world: World, fixed: Fixed, said: Write) -> tuple[Rule, ...]:
    """What was last said of the row it replaces."""
    replaced = None if said.replaces is None else world.row(said.replaces)
    return fixed.rules if replaced is None else replaced.rules


def _pointed(row: Row, said: Write) -> Row:
    """`replaced`. "leave": the replacement failed and left something behind; the old one stays."""
    if said.kind == "insert":
        return row._replace(replaced_by=said.row.id)
    return row._replace(replaced_by=None, action="UPDATE", status="FAILED")


def _updated(world: World, row: Row, said: Row, fixed: Fixed) -> Row:
    if row.id != said.id:
        return row
    requires = row.requires if fixed.requires is None else _ids(world, fixed.requires)
    digest = row.digest if said.digest == KEPT else said.digest
    return said._replace(
        requires=requires, replaced_by=row.replaced_by, rules=row.rules, digest=digest
    )


def _ids(world: World, names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(row.id for row in world.rows if row.name in names and row.replaced_by is None)


def passed_on(rows: list[Row], gone: Row) -> list[Row]:
    """The last update of `apply_transitions`: users of what was replaced use its replacement."""
    if gone.replaced_by is None:
        return rows
    return [
        row._replace(
            requires=tuple(
                sorted(gone.replaced_by if one == gone.id else one for one in row.requires)
            )
        )
        for row in rows
    ]


def claim(world: World, number: int, at: int) -> World:
    """`claimed` in `claim_due`, for one node that is due. What the worker was given is not here."""
    node = world.node(number, at)
    assert node is not None
    key = keyed(node, node.claim) if node.phase is Phase.ACT else node.key
    taken = node._replace(state=State.RUNNING, claim=claim_bumped(node), wake=True, key=key)
    return retimed(world.with_node(number, at, taken))


def claim_bumped(node: Node) -> int:
    """`claim = n.claim + 1` in `claimed`."""
    return node.claim + 1


def is_due(world: World, number: int, at: int) -> bool:
    """`p_due` and `candidate` in `claim_due`: the traversal leads to its nodes, in its time."""
    node, traversal = world.node(number, at), world.traversal(number)
    return traversal.wake and node is not None and node.wake and not is_over(traversal)


def seen(world: World, number: int, at: int) -> Seen:
    """`read_claimed`: the rows for a node it gives a worker."""
    node = world.node(number, at)
    assert node is not None
    row = world.row(node.resource)
    uses = frozenset(_ids(world, world.traversal(number).graph.nodes[at].uses))
    return Seen(node.operation, node.phase, node.passed, node.key, row, node.attempts, uses)


def seen_at_hook(world: World, number: int, at: int) -> Seen:
    """READ_HOOKS: behind a replacement the row is the new one."""
    said = seen(world, number, at)
    if said.phase is Phase.POST and said.operation is Operation.REPLACE:
        fixed = world.traversal(number).graph.nodes[at]
        return said._replace(row=world.row(fixed.replacement or 0))
    return said
