"""The protocol: everything that can happen next to a world, each with its name.

To add an operation, an outcome or a request: give it a `Move`, let `moves` offer it, and say in
engine terms what it stands for. The statements themselves are in tests/model/store.py
and accept.py.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from engine.errors import AnswerRefused
from engine.hooks.answers import Accepted, Asked, Counted, Given, judge
from engine.hooks.deadline import HookClock
from engine.hooks.rule import Limits, Rule
from engine.node.inputs import (
    Answered,
    Expired,
    Input,
    MustReplace,
    MustRetry,
    MustWait,
    OperationFailed,
    Succeeded,
)
from engine.principal import named
from engine.words import (
    GATES,
    VISITS,
    Action,
    Decision,
    HookState,
    OnTimeout,
    Operation,
    Phase,
    State,
)
from tests.model import accept, store
from tests.model.telling import DENIED, LEFT, take_up, tell, tell_superseded
from tests.model.world import EMPTY, HALF, Fixed, Hand, Hook, Node, Size, Told, World

LATER = datetime(2026, 1, 1, tzinfo=UTC)
#: What an operation says that is called again, by what it did.
FOUND_DONE: dict[str, Input] = {
    "Succeeded": Succeeded(),
    "OperationFailed": OperationFailed("broke"),
    "Left": LEFT,
    "MustReplace": MustReplace(),
    "OperationForbidden": DENIED,
}
#: Two principals answer where a rule needs several approvals.
PRINCIPALS = ("ann", "bob")
MINUTES = timedelta(minutes=10)
LIMITS = Limits(MINUTES, MINUTES)
CONTINUE = Answered(Decision.CONTINUE, "ann")
REJECT = Answered(Decision.REJECT, "ann")


class Move(NamedTuple):
    """One thing that happens. kind: request, late, claim, call, settle, again, die, hook or end."""

    kind: str
    traversal: int = 0
    node: int = 0
    hand: Hand | None = None
    said: Input | None = None
    hook: Hook | None = None


def start(size: Size) -> World:
    timed = size.luck.late > 0
    return EMPTY._replace(luck=size.luck, rolls_back=size.rolls_back, timed=timed, stack=size.stack)


def moves(size: Size, world: World) -> Iterator[tuple[Move, World]]:
    """Every move that can come next, with the world after it."""
    yield from requests(size, world)
    yield from lateness(world)
    if len(world.hands) < size.hands:
        yield from claims(world)
    for hand in dict.fromkeys(world.hands):
        yield from of_hand(world, hand)
    for hook in world.hooks:
        if hook.said == "waiting":
            yield from of_hook(world, hook)


def requests(size: Size, world: World) -> Iterator[tuple[Move, World]]:
    """What is asked of the front door (engine/service/stacks.py), at any instant."""
    if world.asked == len(size.requests) or world.buried:
        return
    if size.patient and not is_still(world):
        return
    asked = size.requests[world.asked]
    after = world._replace(asked=world.asked + 1)
    state = world.traversal(world.current).state if world.current else ""
    busy = state in (store.RUNNING, store.ENDING)
    if asked.action is None:
        after = accept.cancel(after, asked.ends)
    elif asked.action in accept.IN_PLACE:
        after = accept.visit(after, asked.action)
    elif not (asked.action is Action.DELETE and _deletes(world)):
        if busy:
            after = accept.give_up(after, world.current, store.SUPERSEDED)
        after = accept.begin(after, asked.action, asked.template)
    yield Move("request"), after


def lateness(world: World) -> Iterator[tuple[Move, World]]:
    """The time of what runs is over; it is found by whoever looks for work next."""
    if not world.current or not world.luck.late:
        return
    current = world.traversal(world.current)
    if store.is_working(current) and not current.late:
        after = world.spent("late").with_traversal(world.current, current._replace(late=True))
        yield Move("late", world.current, -1), after


def is_still(world: World) -> bool:
    """Nothing is left to do, and nothing is held."""
    if world.hands or any(hook.said == "waiting" for hook in world.hooks):
        return False
    if world.current and world.traversal(world.current).state not in store.ENDS:
        return False
    return not any(
        node is not None and node.state in store.LIVE
        for traversal in world.traversals
        for node in traversal.nodes
    )


def _deletes(world: World) -> bool:
    current = world.traversal(world.current)
    return current.action is Action.DELETE and current.state in (store.RUNNING, store.ENDING)


def claims(world: World) -> Iterator[tuple[Move, World]]:
    """The second half of `advance`: a node that is due, or a traversal that is over.

    What runs is due when its lease has run out. That costs luck while its worker lives; the node
    of a dead one, whose death was paid for, is found for nothing.
    """
    for number, traversal in enumerate(world.traversals, 1):
        if store.is_over(traversal) and traversal.wake and not _ends(world, number):
            yield Move("claim", number, -1), world.holding(Hand(number, -1, 0, "end"))
        for at, node in enumerate(traversal.nodes):
            if node is None or not store.is_due(world, number, at):
                continue
            move = Move("claim", number, at)
            if node.state is not State.RUNNING or not _held(world, number, at, node.claim):
                yield move, taken(store.claim(world, number, at), number, at)
            elif world.luck.lease:
                late = world.spent("lease")
                yield move, taken(store.claim(late, number, at), number, at)


def _ends(world: World, number: int) -> bool:
    return any(hand.stage == "end" and hand.traversal == number for hand in world.hands)


def _held(world: World, number: int, at: int, claim: int) -> bool:
    return any(hand[:3] == (number, at, claim) and hand.stage != "told" for hand in world.hands)


def taken(world: World, number: int, at: int) -> World:
    """`NodeRunner.run_node`: in phase act it is about to call, else it has something to tell."""
    node = world.node(number, at)
    assert node is not None
    seen = store.seen(world, number, at)
    hand = Hand(number, at, node.claim, "call", seen)
    if node.phase is Phase.ACT:
        return world.holding(hand)
    told = take_up(world.traversal(number).graph.nodes[at], seen)
    return world if told is None else world.holding(hand._replace(stage="tell", told=told))


def of_hand(world: World, hand: Hand) -> Iterator[tuple[Move, World]]:
    """What a worker can do with what it holds, and its death."""
    move = Move("", hand.traversal, hand.node, hand)
    match hand.stage:
        case "end":
            yield move._replace(kind="end"), accept.end(world.without(hand), hand.traversal)
        case "call":
            yield from calls(world, hand)
        case "tell":
            assert hand.told is not None
            yield move._replace(kind="settle"), settled(world.without(hand), hand)
            # Nothing comes of a step that is refused: to say it again is to say it first.
            if world.luck.twice and not store.refuses(world, hand, hand.told):
                unsure = settled(world.without(hand).spent("twice"), hand)
                again = unsure.holding(hand._replace(stage="told"))
                yield move._replace(kind="settle", said=CONTINUE), again
        case _:
            yield move._replace(kind="again"), settled(world.without(hand), hand)
    if hand.stage == "told" or not _current(world, hand):
        yield move._replace(kind="die"), world.without(hand)
    elif world.luck.lease:
        yield move._replace(kind="die"), world.spent("lease").without(hand)


def _current(world: World, hand: Hand) -> bool:
    node = None if hand.stage == "end" else world.node(hand.traversal, hand.node)
    return hand.stage == "end" or (node is not None and node.claim == hand.claim)


def calls(world: World, hand: Hand) -> Iterator[tuple[Move, World]]:
    """The operation takes effect under its key; its outcome is in the worker's hands."""
    assert hand.seen is not None
    for said, luck in outcomes(world, hand):
        if luck and not getattr(world.luck, luck):
            continue
        fixed = world.traversal(hand.traversal).graph.nodes[hand.node]
        told = tell(fixed, hand.seen, said)
        after = world.without(hand)
        if told is not None:
            after = after.holding(hand._replace(stage="tell", told=told))
        after = acted(after.spent(luck) if luck else after, hand, said)
        yield Move("call", hand.traversal, hand.node, hand, said), after


def outcomes(world: World, hand: Hand) -> Iterator[tuple[Input, str]]:
    """What an operation can end with, and the luck that each takes.

    Called again under its key it finds what it did before, and says the same.
    """
    assert hand.seen is not None
    node = world.node(hand.traversal, hand.node)
    called = (hand.seen.key, hand.seen.operation)
    for key, operation, said in node.acted if node else ():
        if (key, operation) == called:
            yield FOUND_DONE[said], ""
            return
    if hand.seen.operation is Operation.CHECK and not _is_whole(world, node):
        yield OperationFailed("broke"), ""
        return
    yield Succeeded(), ""
    if hand.seen.operation in GATES:
        return
    yield OperationFailed("broke"), "fail"
    yield MustWait(LATER), "wait"
    yield MustRetry(LATER, "again"), "retry"
    if hand.seen.operation in (Operation.CREATE, Operation.REPLACE):
        yield LEFT, "leave"
    if hand.seen.operation is Operation.UPDATE:
        fixed = world.traversal(hand.traversal).graph.nodes[hand.node]
        yield DENIED if "replace" in fixed.restricted else MustReplace(), "replace"


def _is_whole(world: World, node: Node | None) -> bool:
    """What a check finds: a thing that is there, and not half of one."""
    values = {row: value for row, value, _ in world.things}
    return node is not None and values.get(node.resource, HALF) != HALF


def acted(world: World, hand: Hand, said: Input) -> World:
    """What an operation does outside, be it that its worker has lost the claim meanwhile."""
    node = world.node(hand.traversal, hand.node)
    if node is None or hand.seen is None or isinstance(said, MustWait | MustRetry):
        return world
    key = -1 if hand.seen.key is None else hand.seen.key
    effect = (key, hand.seen.operation, "Left" if said == LEFT else type(said).__name__)
    if effect not in node.acted:
        world = made(world, hand, node, said)
    return world.with_node(hand.traversal, hand.node, node._replace(acted=node.acted | {effect}))


def made(world: World, hand: Hand, node: Node, said: Input) -> World:
    """What there really is after an operation. A replacement leaves something behind when it fails
    only if it says so; whatever else failed is half of something."""
    if isinstance(said, MustReplace) or said == DENIED:
        return world
    assert hand.seen is not None
    if hand.seen.operation in VISITS | GATES:
        return world
    fixed = world.traversal(hand.traversal).graph.nodes[hand.node]
    good, operation, row = isinstance(said, Succeeded), hand.seen.operation, node.resource
    if operation is Operation.DELETE and good:
        return world.with_thing(row, None)
    if operation is Operation.UPDATE and all(one[0] != row for one in world.things):
        return world  # a worker that lost its claim long ago, and what it was to change is gone
    if operation is Operation.REPLACE and not good and said != LEFT:
        return world
    new = operation is Operation.CREATE and world.row(row) is None
    if new or operation is Operation.REPLACE:
        row = fixed.replacement or 0
    return world.with_thing(row, fixed.value if good else HALF, hand.seen.uses)


def settled(world: World, hand: Hand) -> World:
    """`advance` with the worker's step; where the node goes on running, its worker keeps it. When
    it is refused, its worker holds what is decided then."""
    assert hand.told is not None
    if store.refuses(world, hand, hand.told):
        told = again(world, hand, hand.told)
        return store.retimed(world).holding(hand._replace(stage="tell", told=told))
    fit = store.fits(world.node(hand.traversal, hand.node), hand)
    after = store.settle(world, hand, hand.told)
    node = after.node(hand.traversal, hand.node)
    if fit and node is not None and node.state is State.RUNNING:
        return taken(after, hand.traversal, hand.node)
    return after


def again(world: World, hand: Hand, refused: Told) -> Told:
    """`NodeRunner.superseded`."""
    assert hand.seen is not None and refused.said is not None
    fixed = world.traversal(hand.traversal).graph.nodes[hand.node]
    return tell_superseded(fixed, hand.seen, refused.said)


def of_hook(world: World, hook: Hook) -> Iterator[tuple[Move, World]]:
    """`Hooks.answer`, and `Timers.expire_due`: the rule says what a deadline means."""
    fixed = world.traversal(hook.traversal).graph.nodes[hook.node]
    move = Move("hook", hook.traversal, hook.node, hook=hook)
    rule = next(rule for rule in fixed.rules if rule.point == hook.point)
    for by in PRINCIPALS[: rule.approvals]:
        said = Answered(Decision.CONTINUE, by)
        match approve(hook, rule, by):
            case Accepted():
                counted = counting(world, hook, by)
                after = answered(counted[0], counted[1], fixed, said, "continue")
                yield move._replace(said=said), after
            case Counted():
                yield move._replace(said=said), counting(world, hook, by)[0]
            case _:
                pass  # the same principal again: nothing changes
    if not world.luck.no:
        return
    unlucky = world.spent("no")
    yield move._replace(said=REJECT), answered(unlucky, hook, fixed, REJECT, "reject")
    then = rule.on_timeout
    after = answered(unlucky, hook, fixed, Expired(then), OnTimeout(then).value)
    yield move._replace(said=Expired(then)), after


def approve(hook: Hook, rule: Rule, by: str) -> object:
    """`Engine.answer`, judged by the real rules."""
    asked = Asked(
        state=HookState.WAITING,
        resource_name="",
        point=hook.point,
        digest="",
        clock=HookClock(LATER, MINUTES, LATER + MINUTES),
        decision=None,
        decided_by=None,
        decided_at=None,
        rule=rule,
        requested_by=named("eve"),
        approved_by=hook.approved,
    )
    judged = judge(asked, Given(Decision.CONTINUE, named(by)), LATER, LIMITS)
    assert not isinstance(judged, AnswerRefused)
    return judged


def counting(world: World, hook: Hook, by: str) -> tuple[World, Hook]:
    """The approval, recorded in the audit log; of rules that need one only it is left out."""
    fixed = world.traversal(hook.traversal).graph.nodes[hook.node]
    needed = next(rule.approvals for rule in fixed.rules if rule.point == hook.point)
    keys = {*hook.approved, named(by).key} if needed > 1 else set()
    given = hook._replace(approved=tuple(sorted(keys)))
    return world.with_hooks(given if one == hook else one for one in world.hooks), given


def answered(world: World, hook: Hook, fixed: Fixed, said: Input, word: str) -> World:
    """`apply` in engine/work/hook_decisions.py: DECIDE_HOOKS, then `advance` with the step."""
    node = world.node(hook.traversal, hook.node)
    decided = [one._replace(said=word) if one == hook else one for one in world.hooks]
    after = world.with_hooks(decided)
    if node is None:
        return after
    seen = store.seen_at_hook(world, hook.traversal, hook.node)
    told = tell(fixed, seen, said, node.state)
    if told is None:
        return after
    hand = Hand(hook.traversal, hook.node, node.claim, "tell", seen, told)
    return store.settle(after, hand, told)
