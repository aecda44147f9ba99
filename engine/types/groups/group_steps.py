"""The way of a group to what it should be, in turns: one change of the stack inside after another.

What each turn does is decided when it comes, from what the stack inside really holds: so it does
not matter who ended the one before, in which operation, or how.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from engine.hooks.member_choice import CHOICES, MAY_CHOOSE, BadChoice, chosen
from engine.types.contract import (
    Call,
    Child,
    Confirm,
    Done,
    Failed,
    Outcome,
    ReconcileNested,
    RunNested,
    Wait,
)
from engine.types.groups.member_placement import PLACED, placed, view_of
from engine.types.groups.member_template import Body, CurrentMembers, present
from engine.types.nested_commands import run_nested
from engine.types.placement import Placer, Places
from engine.words import Json

#: Seconds: a hundred years.
LONGEST_PAUSE = 3_155_760_000


@dataclass(frozen=True, slots=True)
class MemberChange:
    """The members after a turn, and what it means for those there are.

    bodies: in the order in which members are read. altered: names of those that get another body;
    made, gone: of those that come and go. open: who could be altered, or be gone, instead.
    """

    bodies: Mapping[str, Body]
    made: Sequence[str] = ()
    altered: Sequence[str] = ()
    gone: Sequence[str] = ()
    open: Sequence[str] = ()

    @property
    def any(self) -> bool:
        return bool(self.made or self.altered or self.gone)

    def opened(self, names: Sequence[str]) -> "MemberChange":
        return replace(self, open=names)


@dataclass(frozen=True, slots=True)
class GroupStep:
    """kind: the beginning of its step's name. ask: the point where somebody may choose other
    members, or "". pause: seconds to wait before it, if it follows one of its kind. kept: what is
    decided with it for all turns that follow."""

    kind: str
    change: MemberChange
    ask: str = ""
    pause: float = 0
    kept: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Progress:
    """number: of the turn, from 1. step: its name, once it has begun. last: the kind of the turn
    before it; "" at the first. asked: the turn for which somebody was asked last. until: when the
    pause before the turn is over. kept: what was decided for the whole operation.
    """

    number: int = 1
    step: str = ""
    last: str = ""
    asked: int = 0
    until: str | None = None
    kept: Mapping[str, Json] = field(default_factory=dict)

    def document(self, **changed: Any) -> dict[str, Json]:
        return asdict(replace(self, **changed))

    def after(self) -> "Progress":
        kind = self.step.rpartition("-")[0]
        return replace(self, number=self.number + 1, step="", last=kind, until=None)


class Plan(Protocol):
    """What one group wants."""

    def kept(self, there: CurrentMembers) -> Mapping[str, Json]:
        """What is decided when the operation begins, and holds through all its turns."""

    def turn(
        self, there: CurrentMembers, at: Progress, names: Sequence[str] | None
    ) -> GroupStep | None:
        """The next turn; None: everything is as it should be. names: chosen by an answer."""

    def goal(
        self, change: MemberChange, there: CurrentMembers, kept: Mapping[str, Json]
    ) -> ReconcileNested:
        """What a turn brings the stack inside to."""


def go(
    call: Call, plan: Plan, done: Callable[[Child], Done], placer: Placer | None = None
) -> Outcome | Awaitable[Outcome]:
    """One call of an operation that takes turns. placer: says where new members come to be."""
    there = present(call.child)
    at = Progress(**call.progress) if call.progress else Progress(kept=plan.kept(there))
    if at.step and call.child is not None and call.child.step == at.step:
        ended = run_nested(call, at.step, ReconcileNested(None), done)
        if not isinstance(ended, Done):
            return ended
        at = at.after()
    turn = _next_turn(call, plan, there, at, done)
    if not isinstance(turn, GroupStep):
        return turn
    if placer is None or not turn.change.made:
        return _begun(plan, turn, there, at, {})
    return _placed(call, plan, turn, there, at, placer)


def _next_turn(
    call: Call, plan: Plan, there: CurrentMembers, at: Progress, done: Callable[[Child], Done]
) -> GroupStep | Outcome:
    """Every operation brings the stack inside somewhere at least once: what is in the templates of
    its members may have changed, though nothing of the group itself did."""
    turn = plan.turn(there, at, None)
    if turn is None and at.last and call.child is not None:
        return done(call.child)
    turn = turn or GroupStep("members", MemberChange(there.bodies))
    held = _paused(call, turn, at) or _asked(call, turn, at)
    if held is not None:
        return held
    names = chosen(turn.ask, _seen(turn), call.answers.get(turn.ask))
    if names is not None and not isinstance(names, BadChoice):
        turn = plan.turn(there, at, names) or turn
    return turn


async def _placed(
    call: Call, plan: Plan, turn: GroupStep, there: CurrentMembers, at: Progress, placer: Placer
) -> Outcome:
    places = await placer.place(view_of(call, turn.change.bodies, turn.change.made, there))
    if isinstance(places, str):
        return _failed(call, places)
    return _begun(plan, turn, there, at, {name: dict(one) for name, one in places.items()})


def _begun(
    plan: Plan, turn: GroupStep, there: CurrentMembers, at: Progress, places: Places
) -> RunNested:
    change = turn.change
    bodies = {name: placed(body, places.get(name, {})) for name, body in change.bodies.items()}
    known = {**there.group.get(PLACED, {}), **places}
    remembered = {name: known[name] for name in bodies if known.get(name)}
    step, kept = f"{turn.kind}-{at.number}", {**at.kept, **turn.kept, PLACED: remembered}
    goal = plan.goal(replace(change, bodies=bodies), there, kept)
    return RunNested(step, goal, at.document(step=step, kept=kept))


def _paused(call: Call, turn: GroupStep, at: Progress) -> Outcome | None:
    if not turn.pause or at.last != turn.kind:
        return None
    pause = timedelta(seconds=min(turn.pause, LONGEST_PAUSE))
    until = datetime.fromisoformat(at.until) if at.until else call.now + pause
    if call.now >= until:
        return None
    if call.superseded:
        return _failed(call, "superseded between two batches")
    return Wait(until, at.document(until=until.isoformat()))


def _asked(call: Call, turn: GroupStep, at: Progress) -> Outcome | None:
    if not turn.ask:
        return None
    if at.asked != at.number:
        return Confirm(turn.ask, at.document(asked=at.number), _seen(turn))
    said = call.confirmed
    if said is None or said.accepted:
        return None
    why = f": {said.reason}" if said.reason else ""
    return _failed(call, f"{turn.ask} rejected by {said.by}{why}")


def _failed(call: Call, reason: str) -> Failed:
    there = call.physical_id if call.child is None else str(call.child.id)
    return Failed(reason, there, call.data)


def _seen(turn: GroupStep) -> dict[str, Json]:
    """What there is to look at: see engine/hooks/member_choice.py."""
    if not turn.ask:
        return {}
    change = turn.change
    seen = {"altered": change.altered, "made": change.made, "gone": change.gone}
    named = change.altered or () if CHOICES[turn.ask].fewer else change.gone
    return {
        **{name: [*members] for name, members in seen.items()},
        CHOICES[turn.ask].key: [*named],
        MAY_CHOOSE: [*change.open],
    }
