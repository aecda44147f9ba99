"""The steps of a group's operation: a sequence of changes of its nested stack.

Each step is computed from the current members of the nested stack, so it does not matter how, or in
which operation, the previous step ended.
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
from engine.types.groups.member_placement import PLACED, group_view, placed
from engine.types.groups.member_template import Body, CurrentMembers, current_members
from engine.types.nested_commands import run_nested
from engine.types.placement import Placer, Places
from engine.words import Json

#: Seconds: a hundred years.
LONGEST_PAUSE = 3_155_760_000


@dataclass(frozen=True, slots=True)
class MemberChange:
    """The members after a step, and the differences from the current ones.

    bodies: the definitions, in reading order. altered: the names of members with a new definition.
    made, gone: the names of created and removed members. open: the names of members that an answer
    can choose instead.
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
    """kind: the start of the step's name. ask: the hook point where an answer can choose other
    members, or "". pause: seconds to wait before the step if it follows one of the same kind. kept:
    records for all following steps."""

    kind: str
    change: MemberChange
    ask: str = ""
    pause: float = 0
    kept: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Progress:
    """number: of the step, from 1. step: its name, once it runs. last: the kind of the previous
    step; "" at the first. asked: the last step for which hooks were opened. until: the end of the
    pause before the step. kept: records for the whole operation.
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
    """The plan of one group."""

    def kept(self, there: CurrentMembers) -> Mapping[str, Json]:
        """The records that are computed at the start of the operation, for all its steps."""

    def step(
        self, there: CurrentMembers, at: Progress, names: Sequence[str] | None
    ) -> GroupStep | None:
        """The next step; None if the group is up to date. names: chosen by an answer."""

    def goal(
        self, change: MemberChange, there: CurrentMembers, kept: Mapping[str, Json]
    ) -> ReconcileNested:
        """The command of a step for the nested stack."""


def run_steps(
    call: Call, plan: Plan, done: Callable[[Child], Done], placer: Placer | None = None
) -> Outcome | Awaitable[Outcome]:
    """One call of an operation that runs in steps. placer: places new members."""
    there = current_members(call.child)
    at = Progress(**call.progress) if call.progress else Progress(kept=plan.kept(there))
    if at.step and call.child is not None and call.child.step == at.step:
        ended = run_nested(call, at.step, ReconcileNested(None), done)
        if not isinstance(ended, Done):
            return ended
        at = at.after()
    step = _next_step(call, plan, there, at, done)
    if not isinstance(step, GroupStep):
        return step
    if placer is None or not step.change.made:
        return _start(plan, step, there, at, {})
    return _place(call, plan, step, there, at, placer)


def _next_step(
    call: Call, plan: Plan, there: CurrentMembers, at: Progress, done: Callable[[Child], Done]
) -> GroupStep | Outcome:
    """Each operation has at least one step: the templates of the members may have changed although
    the group's properties have not."""
    step = plan.step(there, at, None)
    if step is None and at.last and call.child is not None:
        return done(call.child)
    step = step or GroupStep("members", MemberChange(there.bodies))
    held = _paused(call, step, at) or _asked(call, step, at)
    if held is not None:
        return held
    names = chosen(step.ask, _seen(step), call.answers.get(step.ask))
    if names is not None and not isinstance(names, BadChoice):
        step = plan.step(there, at, names) or step
    return step


async def _place(
    call: Call, plan: Plan, step: GroupStep, there: CurrentMembers, at: Progress, placer: Placer
) -> Outcome:
    places = await placer.place(group_view(call, step.change.bodies, step.change.made, there))
    if isinstance(places, str):
        return _failed(call, places)
    return _start(plan, step, there, at, {name: dict(one) for name, one in places.items()})


def _start(
    plan: Plan, step: GroupStep, there: CurrentMembers, at: Progress, places: Places
) -> RunNested:
    change = step.change
    bodies = {name: placed(body, places.get(name, {})) for name, body in change.bodies.items()}
    known = {**there.group.get(PLACED, {}), **places}
    remembered = {name: known[name] for name in bodies if known.get(name)}
    name, kept = f"{step.kind}-{at.number}", {**at.kept, **step.kept, PLACED: remembered}
    goal = plan.goal(replace(change, bodies=bodies), there, kept)
    return RunNested(name, goal, at.document(step=name, kept=kept))


def _paused(call: Call, step: GroupStep, at: Progress) -> Outcome | None:
    if not step.pause or at.last != step.kind:
        return None
    pause = timedelta(seconds=min(step.pause, LONGEST_PAUSE))
    until = datetime.fromisoformat(at.until) if at.until else call.now + pause
    if call.now >= until:
        return None
    if call.superseded:
        return _failed(call, "superseded between two batches")
    return Wait(until, at.document(until=until.isoformat()))


def _asked(call: Call, step: GroupStep, at: Progress) -> Outcome | None:
    if not step.ask:
        return None
    if at.asked != at.number:
        seen = _seen(step)
        return Confirm(step.ask, at.document(asked=at.number), seen, public_seen=seen)
    answer = call.confirmed
    if answer is None or answer.accepted:
        return None
    why = f": {answer.reason}" if answer.reason else ""
    return _failed(call, f"{step.ask} rejected by {answer.by}{why}")


def _failed(call: Call, reason: str) -> Failed:
    there = call.physical_id if call.child is None else str(call.child.id)
    return Failed(reason, there, call.data, public_reason=reason)


def _seen(step: GroupStep) -> dict[str, Json]:
    """The data for the reviewer; see engine/hooks/member_choice.py."""
    if not step.ask:
        return {}
    change = step.change
    seen = {"altered": change.altered, "made": change.made, "gone": change.gone}
    named = change.altered or () if CHOICES[step.ask].fewer else change.gone
    return {
        **{name: [*members] for name, members in seen.items()},
        CHOICES[step.ask].key: [*named],
        MAY_CHOOSE: [*change.open],
    }
