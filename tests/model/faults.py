"""Mistakes that one could make in the machine or in the store's statements, and what sees them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from engine.hooks import answers
from engine.hooks.rule import Rule
from engine.node import decisions, machine
from engine.node import node as tables
from engine.node.effects import WakeAt
from engine.node.inputs import Expired, Input, Superseded
from engine.node.node import ENDED, Refused, Step
from engine.plan import gates, visits
from engine.plan.draft import Existing, Plan, PlannedNode
from engine.words import Action, Decision, Operation, Phase, StackId, State, pre_stack
from tests.model import accept, planning, protocol, sizes, store, telling
from tests.model.explore import Violation, explore
from tests.model.protocol import Move
from tests.model.world import Fixed, Hand, Node, Row, Seen, Size, Told, World, Write

Table = dict[tuple[State, Phase, type[Input]], machine.Row]


class Fault(NamedTuple):
    """`wrong` in place of `name` of `module`. breaks: a rule that must see it, in `size`.

    behind: another rule sees it earlier, so look on behind what that one finds.
    """

    what: str
    module: object
    name: str
    wrong: Any
    size: Size
    breaks: str
    behind: bool = False


def _fits_anybody(node: Node | None, hand: Hand) -> bool:
    return node is not None and node.state in store.LIVE


_freed_by, _counted, _settle = store.freed_by, store.counted, store.settle
_known, _existing = accept.known, planning._existing
_rows_of = visits._concerned
_take_up, _change, _failed = telling.take_up, telling.change, telling._failed
_visited = telling._visited


def _no_successor(world: World, hand: Hand, node: Node, told: Told) -> list[tuple[int, int]]:
    return _freed_by(world, hand, node._replace(successor=None), told)


def _twice(world: World, hand: Hand, node: Node, told: Told) -> list[tuple[int, int]]:
    return [one for one in _freed_by(world, hand, node, told) for _ in range(2)]


def _also_by_failure(world: World, hand: Hand, node: Node, told: Told) -> list[tuple[int, int]]:
    done = State.DONE if told.state in ENDED else told.state
    return _freed_by(world, hand, node, told._replace(state=done))


def _only_less(world: World, changes: list[tuple[int, int]]) -> World:
    return _counted(world, [(number, min(change, 0)) for number, change in changes])


def _not_for_newer(world: World, changes: list[tuple[int, int]]) -> World:
    first = changes[0][0]
    return _counted(world, [one for one in changes if one[0] == first or one[1] > 0])


def _not_woken(world: World, changes: list[tuple[int, int]]) -> World:
    after = _counted(world, changes)
    for number in {number for number, _ in changes}:
        wake = world.traversal(number).wake
        after = after.with_traversal(number, after.traversal(number)._replace(wake=wake))
    return after


def _stale_tells(world: World, hand: Hand, told: Told) -> World:
    after = _settle(world, hand, told)
    gone = told.write.row if told.write and told.write.kind == "remove" else None
    if gone is None or store.fits(world.node(hand.traversal, hand.node), hand):
        return after
    return after.with_rows(store.passed_on(list(after.rows), gone))


def _not_moved(world: World, told: Told, number: int, at: int) -> int:
    return world.traversal(number).graph.nodes[at].resource


def _same_key(node: Node, told: Told) -> int | None:
    return store.keyed(node, node.claim) if told.phase is Phase.ACT else node.key


def _nobody_uses(row: Row, busy: planning.Busy | None) -> Existing:
    return replace(_existing(row, busy), using=frozenset())


def _idle(row: Row, busy: planning.Busy | None) -> Existing:
    return _existing(row, None)


def _as_read(seen: Seen, operation: Operation) -> Write:
    write = _visited(seen, operation)
    assert seen.row is not None
    return write._replace(row=write.row._replace(digest=seen.row.digest))


def _all_but_one(operation: Operation, rows: Sequence[Existing]) -> list[Existing]:
    return _rows_of(operation, rows)[1:]


def _not_suspending(row: Row, busy: planning.Busy | None) -> Existing:
    return replace(_existing(row, busy), suspending=False)


def _first_behind(nodes: list[PlannedNode], gate: PlannedNode) -> list[PlannedNode]:
    place = len(nodes)
    return [replace(nodes[0], after={*nodes[0].after, place}), *nodes[1:], gate]


def _without_finish(
    planned: Plan, stack_id: StackId, action: Action, rules: Sequence[Rule], *, watched: bool
) -> Plan:
    before = [rule for rule in rules if rule.point == pre_stack(action)]
    return gates.gated(planned, stack_id, action, before, watched=watched)


def _as_planned(world: World, fixed: Fixed, said: Write) -> tuple[Rule, ...]:
    return fixed.rules


def _allowed(fixed: Fixed, seen: Seen) -> Told | None:
    return _take_up(fixed._replace(restricted=()), seen)


def _not_retained(fixed: Fixed, row: Row | None) -> Operation | None:
    return _change(fixed, row and row._replace(policy="Delete"))


def _back_to_the_same(world: World) -> World:
    return accept.begin(world, Action.ROLLBACK, world.template)


def _lost(fixed: Fixed, seen: Seen, node: tables.Node, broken: bool, *, left: bool) -> Write:
    write = _failed(fixed, seen, node, broken, left=left)
    return write if write.kind == "update" else Write("update", write.row)


def _only_there(world: World) -> planning.Known:
    return tuple(one for one in _known(world) if world.row(one[0].id) is not None)


def _no_shadows(busy: planning.Busy) -> None:
    return None


def _forgotten(world: World) -> World:
    for number, traversal in enumerate(world.traversals[:-1], 1):
        gone = traversal._replace(nodes=(None,) * len(traversal.nodes))
        world = world.with_traversal(number, gone)
    return world


def _goes_on(node: tables.Node, *_: object) -> Step:
    return Step(replace(node, state=State.READY))


def _timer_lost(node: tables.Node, said: Any) -> Step | Refused:
    step = machine.decide(node, said)
    if isinstance(step, Refused):
        return step
    kept = tuple(effect for effect in step.effects if not isinstance(effect, WakeAt))
    return Step(step.node, kept)


def _not_dropped(*states: State) -> Table:
    return {
        at: row
        for at, row in machine.TABLE.items()
        if at[2] is not Superseded or at[0] not in states
    }


_DROP = machine.Row(decisions.drop, ())
_ALSO_ACTING = dict(machine.TABLE) | {
    (state, Phase.ACT, Superseded): _DROP for state in (State.RUNNING, State.PARKED)
}
_NO_DEADLINE = dict(machine.TABLE) | {
    (State.PARKED, Phase.PRE, Expired): machine.Row(_goes_on, ()),
}
_STALE, _ONCE = "a_stale_settle_changes_nothing", "an_operation_is_carried_out_once"
_WAITS, _ACTIVE = "waits_are_what_is_waited_for", "active_is_what_is_active"
_GIVEN_UP, _ANSWER = "what_was_given_up_only_acts", "no_operation_without_its_answer"
_HELD, _WOKEN = "a_claim_is_held_once", "what_is_live_will_be_woken"
_HOOKS, _BEGINS = "a_waiting_hook_holds_a_node", "what_was_given_up_begins_nothing"
_PROGRESS = "an_end_can_be_reached"

STALE_TELLS = Fault(
    "a stale settle tells users of what was replaced",
    store, "settle", _stale_tells, sizes.REPLACED_BEHIND, _STALE,
)  # fmt: skip

FAULTS: tuple[Fault, ...] = (
    Fault(
        "the claim is not counted up at a settle",
        store, "bumped", lambda claim: claim, sizes.HOOKED, _ONCE,
    ),
    Fault(
        "the claim is not looked at in a settle",
        store, "fits", _fits_anybody, sizes.CHAIN, _STALE,
    ),
    Fault(
        "the claim is not looked at in a settle: two outcomes",
        store, "fits", _fits_anybody, sizes.HOOKED, _ONCE,
    ),
    Fault(
        "a lease that ran out is claimed without counting up",
        store, "claim_bumped", lambda node: node.claim + (node.state is not State.RUNNING),
        sizes.CHAIN, _HELD,
    ),
    Fault(
        "each claim gives the operation a new key",
        store, "keyed", lambda node, number: number, sizes.CHAIN, _ONCE,
    ),
    Fault(
        "what is ready is not dropped by a newer traversal",
        machine, "TABLE", _not_dropped(State.READY), sizes.UPDATED, _GIVEN_UP,
    ),
    Fault(
        "what is parked at a hook is not dropped by a newer traversal",
        machine, "TABLE", _not_dropped(State.PARKED), sizes.HOOK_GIVEN_UP, _GIVEN_UP,
    ),
    Fault(
        "what acts is dropped by a newer traversal",
        machine, "TABLE", _ALSO_ACTING, sizes.DELETED,
        "a_complete_stack_is_really_so",
    ),
    Fault(
        "a hook of a superseded traversal is left waiting",
        accept, "close_hooks", lambda world, number: world, sizes.HOOK_GIVEN_UP, _HOOKS,
    ),
    Fault(
        "a superseded traversal opens hooks behind what it did",
        store, "refuses", lambda *_: False, sizes.HOOK_GIVEN_UP, _BEGINS,
    ),
    Fault(
        "the newer node is not let go",
        store, "freed_by", _no_successor, sizes.UPDATED, _WAITS,
    ),
    Fault(
        "the newer node is not let go, and its traversal ends without it",
        store, "freed_by", _no_successor, sizes.TAKEN_OVER,
        "a_complete_stack_is_what_was_wanted", True,
    ),
    Fault(
        "a newer traversal deletes nodes that still act: no end",
        accept, "forgotten", _forgotten, sizes.TAKEN_OVER, _PROGRESS, True,
    ),
    Fault(
        "the newer traversal does not know whom it waits for",
        accept, "succeeded", lambda world, older, at, successor: world, sizes.UPDATED, _WAITS,
    ),
    Fault("waits are counted down twice", store, "freed_by", _twice, sizes.DIAMOND_OF_4, _WAITS),
    Fault(
        "a failure lets go what waits",
        store, "freed_by", _also_by_failure, sizes.CHAIN, "operations_keep_the_order", True,
    ),
    Fault(
        "what becomes ready is not counted as active",
        store, "counted", _only_less, sizes.CHAIN, _ACTIVE,
    ),
    Fault(
        "what waited for an older operation stays counted as active",
        store, "counted", _not_for_newer, sizes.UPDATED, _ACTIVE,
    ),
    Fault(
        "a settle does not wake its traversal",
        store, "counted", _not_woken, sizes.HOOKED, _WOKEN,
    ),
    Fault(
        "a newer traversal deletes nodes that still act",
        accept, "forgotten", _forgotten, sizes.UPDATED, _WAITS,
    ),
    Fault(
        "breakpoints are passed by", decisions, "pending_breakpoints", lambda *_: [],
        sizes.HOOKED, _ANSWER,
    ),
    Fault(
        "a rejection goes on", decisions, "_fail", _goes_on, sizes.HOOKED, _ANSWER,
    ),
    Fault(
        "a deadline that stops goes on",
        machine, "TABLE", _NO_DEADLINE, sizes.HOOKED, _ANSWER,
    ),
    STALE_TELLS,
    Fault(
        "who waited does not go on with the replacement",
        store, "moved_to", _not_moved, sizes.UPDATED_TWICE, "a_name_has_one_row", True,
    ),
    Fault(
        "what an operation may yet put in a row's place is not planned for",
        planning, "_replacement", _no_shadows, sizes.LEFT_BEHIND, "a_complete_stack_is_really_so",
    ),
    Fault(
        "what is made for a row that has gone is not seen",
        accept, "known", _only_there, sizes.MADE_AND_DELETED, "a_complete_stack_is_really_so",
    ),
    Fault(
        "a replacement goes on under the key of the update",
        store, "rekeyed", _same_key, sizes.UPDATED_TWICE, _ONCE,
    ),
    Fault(
        "what is under way is not seen to use anything",
        planning, "_existing", _nobody_uses, sizes.USER_OF_A_REPLACEMENT,
        "operations_keep_the_order",
    ),
    Fault(
        "what was declared meanwhile does not stay with a resource: it is not asked for",
        store, "_stays_with", _as_planned, sizes.HOOKED_LATER,
        "what_goes_asks_as_it_was_told_to",
    ),
    Fault(
        "what is retained is deleted",
        telling, "change", _not_retained, sizes.RETAINED, "what_is_to_stay_is_not_deleted",
    ),
    Fault(
        "what is restricted is done",
        protocol, "take_up", _allowed, sizes.FORBIDDEN, "what_is_restricted_is_not_done",
    ),
    Fault(
        "the way back leads nowhere",
        accept, "roll_back", _back_to_the_same, sizes.ROLLED_BACK,
        "a_way_back_leads_to_what_was_reached",
    ),
    Fault(
        "the time of what only waits is not looked after",
        store, "is_working", lambda traversal: False, sizes.TIMED_OUT, "what_ends_is_led_to",
    ),
    Fault(
        "what a failure left behind is forgotten",
        telling, "_failed", _lost, sizes.LEFT_UNSEEN, "a_complete_stack_is_really_so",
    ),
    Fault(
        "a check writes back the digest that it has read",
        telling, "_visited", _as_read, sizes.CHECKED, "a_check_changes_no_definition",
    ),
    Fault(
        "a check does not see what is under way",
        planning, "_existing", _idle, sizes.CHECK_BEHIND,
        "a_check_waits_for_what_is_under_way", True,
    ),
    Fault(
        "breakpoints of a check are passed by",
        decisions, "pending_breakpoints", lambda *_: [], sizes.CHECK_ASKED, _ANSWER,
    ),
    Fault(
        "a suspend leaves out a resource",
        visits, "_concerned", _all_but_one, sizes.SUSPENDED,
        "an_in_place_action_reaches_every_resource",
    ),
    Fault(
        "a suspend ignores the order",
        visits, "_order", lambda *_: {}, sizes.SUSPENDED, "in_place_actions_keep_the_order",
    ),
    Fault(
        "a resume does not see a suspend under way",
        planning, "_existing", _not_suspending, sizes.SUSPEND_CANCELLED,
        "an_in_place_action_reaches_every_resource",
    ),
    Fault(
        "breakpoints of a suspend are ignored",
        decisions, "pending_breakpoints", lambda *_: [], sizes.SUSPEND_ASKED, _ANSWER,
    ),
    Fault(
        "the hook before the stack holds no node",
        gates, "_behind", lambda nodes, gate: [*nodes, gate], sizes.STACK_HOOKS,
        "a_stack_hook_holds_every_node",
    ),
    Fault(
        "the hook before the stack holds one node only",
        gates, "_behind", _first_behind, sizes.STACK_HOOKS, "a_stack_hook_holds_every_node",
    ),
    Fault(
        "a stack completes without the hook after it",
        planning, "gated", _without_finish, sizes.STACK_HOOKS,
        "a_stack_completes_behind_its_hook",
    ),
    Fault(
        "hooks of a stack are ignored",
        decisions, "pending_breakpoints", lambda *_: [], sizes.STACK_HOOKS,
        "a_stack_hook_holds_every_node",
        True,
    ),
    Fault(
        "one approval is enough",
        answers, "Counted", lambda missing: answers.Accepted(Decision.CONTINUE),
        sizes.APPROVED, "a_hook_continues_with_all_its_approvals",
    ),
    Fault(
        "all approvals are there, and the hook waits",
        answers, "Accepted", lambda decision: answers.Counted(0),
        sizes.APPROVED, "a_hook_continues_with_all_its_approvals",
    ),
    Fault("a timer is lost", telling, "decide", _timer_lost, sizes.CHAIN, _WOKEN),
)  # fmt: skip


@contextmanager
def made(fault: Fault) -> Iterator[None]:
    """The mistake, made, and all that was worked out without it forgotten."""
    with pytest.MonkeyPatch.context() as broken:
        _forget()
        broken.setattr(fault.module, fault.name, fault.wrong)
        yield
    _forget()


def _forget() -> None:
    telling.decided.cache_clear()
    planning.planned.cache_clear()
    planning.planned_visits.cache_clear()


def found(fault: Fault) -> Violation | None:
    """How the mistake is seen, by the rule that must see it."""
    with made(fault):
        seen = explore(fault.size, behind=fault.behind, until=fault.breaks)
    return seen.violations.get(fault.breaks)


def shortest(fault: Fault) -> Sequence[Move]:
    violation = found(fault)
    assert violation is not None
    return violation.sequence
