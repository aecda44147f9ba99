"""The steps of a group's operation: a sequence of changes of its nested stack.

Each step is computed from the current members of the nested stack, so it does not matter how, or in
which operation, the previous step ended.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from engine.hooks.member_choice import CHOICES, MAY_CHOOSE, InvalidChoice, chosen_members
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
    run_nested,
)
from engine.types.groups.member_template import (
    FAILED,
    Body,
    CurrentMembers,
    build_template,
    current_members,
    preview_template,
)
from engine.types.nested_state import restore_nested
from engine.types.placement import GroupView, PlacedMember, Placer, Places
from engine.words import Json

#: In the group's records: the properties from the plug-in, by member.
PLACED: Final = "placed"


def with_place(body: Body, place: Mapping[str, Json]) -> Body:
    return {**body, "properties": {**(body.get("properties") or {}), **place}} if place else body


def with_placement(
    body_of: Callable[[str], Body], current: CurrentMembers
) -> Callable[[str], Body]:
    """Definitions of existing members, with the properties of their placement."""
    known = current.group.get(PLACED) or {}
    return lambda name: with_place(body_of(name), known.get(name, {}))


def group_view(
    call: Call, bodies: Mapping[str, Body], new: Sequence[str], current: CurrentMembers
) -> GroupView:
    """The argument of the placement plug-in."""
    body, known = bodies[new[0]], current.group.get(PLACED) or {}
    return GroupView(
        call.project,
        call.stack_id,
        call.stack_name,
        call.resource_name,
        str(body["type"]),
        {} if call.has_secrets else body.get("properties") or {},
        tuple(
            PlacedMember(
                name, "COMPLETE" if name in current.healthy else FAILED, known.get(name, {})
            )
            for name in current.bodies
            if name not in new
        ),
        tuple(new),
    )


#: Seconds: a hundred years.
MAX_PAUSE = 3_155_760_000


@dataclass(frozen=True, slots=True)
class MemberChange:
    """The members after a step, and the differences from the current ones.

    bodies: the definitions, in reading order. created, changed, removed: the names of members that
    are created, get a new definition, or are removed. open: the names of members that an answer can
    choose instead.
    """

    bodies: Mapping[str, Body]
    created: Sequence[str] = ()
    changed: Sequence[str] = ()
    removed: Sequence[str] = ()
    open: Sequence[str] = ()

    @property
    def any(self) -> bool:
        return bool(self.created or self.changed or self.removed)

    def with_open(self, names: Sequence[str]) -> "MemberChange":
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
    pause before the step. kept: records for the whole operation. shown: the members in the hook of
    the step `asked`: an answer that chooses no others approves these.
    """

    number: int = 1
    step: str = ""
    last: str = ""
    asked: int = 0
    until: str | None = None
    kept: Mapping[str, Json] = field(default_factory=dict)
    shown: Sequence[str] = ()

    def document(self, **changed: Any) -> dict[str, Json]:
        """The fields as stored. Engines of the previous release read it, too: fields that are empty
        are left out."""
        return {name: value for name, value in asdict(replace(self, **changed)).items() if value}

    @classmethod
    def read(cls, document: Mapping[str, Json]) -> "Progress":
        """A stored document, also one of the next release with more fields."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in document.items() if name in known})

    def after(self) -> "Progress":
        kind = self.step.rpartition("-")[0]
        return replace(self, number=self.number + 1, step="", last=kind, until=None, shown=())


class GroupPlan(Protocol):
    """The plan of one group. has_secrets: its members may have secrets."""

    @property
    def has_secrets(self) -> bool: ...

    def compute_records(self, current: CurrentMembers) -> Mapping[str, Json]:
        """The records that are computed at the start of the operation, for all its steps."""

    def step(
        self, current: CurrentMembers, at: Progress, names: Sequence[str] | None
    ) -> GroupStep | None:
        """The next step; None if the group is up to date. names: chosen by an answer."""


def run_steps(
    call: Call, plan: GroupPlan, done: Callable[[Child], Done], placer: Placer | None = None
) -> Outcome | Awaitable[Outcome]:
    """One call of an operation that runs in steps. placer: places new members.

    A restore is one step, to the members of the snapshot.
    """
    restored = restore_nested(call, None, done)
    if restored is not None:
        return restored
    current = current_members(call.child)
    at = (
        Progress.read(call.progress)
        if call.progress
        else Progress(kept=plan.compute_records(current))
    )
    if call.child is not None and _is_last_step(call.child, at):
        at = replace(at, step=call.child.step, kept={**at.kept, **current.group})
        ended = run_nested(call, at.step, ReconcileNested(None), done)
        if not isinstance(ended, Done):
            return ended
        at = at.after()
    step = _next_step(call, plan, current, at, done)
    if not isinstance(step, GroupStep):
        return step
    if placer is None or not step.change.created:
        return _start(plan, step, current, at, {})
    return _place(call, plan, step, current, at, placer)


def _is_last_step(child: Child, at: Progress) -> bool:
    """Whether the step has run on the nested stack. If the call that started it was lost, `at` has
    no name of it, and the nested stack has its records. An answer to the hook before this step
    counts for this step only.
    """
    return child.step == at.step if at.step else child.step.endswith(f"-{at.number}")


#: Definitions of members that a preview compares; after more, it takes the rest as one step.
MAX_COMPARED: Final = 200_000
#: Members of a group that a preview lists.
MAX_PREVIEWED_MEMBERS: Final = 10_000


def preview_members(
    call: Call, plan: GroupPlan, size: int, whole: GroupPlan | None = None
) -> ReconcileNested | None:
    """The command for the members after all steps, if no hook chooses others; None if they are
    unknown or too many.

    size: of the group after the steps. whole: the plan without batches, for groups with so many
    batches that the steps are too costly.
    Properties from a placement plug-in are not included for new members.
    """
    if size > MAX_PREVIEWED_MEMBERS:
        return None
    before = current_members(call.child)
    current, records = _after_steps(before, plan, whole, {})
    placed: Mapping[str, Json] = current.group.get(PLACED) or {}
    kept = {name: place for name, place in placed.items() if name in current.bodies}
    found = preview_template(
        current.bodies, {**records, PLACED: kept}, has_secrets=plan.has_secrets
    )
    if found is None or call.child is None or before.healthy == before.bodies.keys():
        return found
    ages = {one.name: (one.created_at, one.name) for one in call.child.members}
    other, _ = _after_steps(before, plan, whole, ages)
    return replace(found, certain=other.bodies.keys() == current.bodies.keys())


def _after_steps(
    current: CurrentMembers, plan: GroupPlan, whole: GroupPlan | None, ages: Mapping[str, Any]
) -> tuple[CurrentMembers, Mapping[str, Json]]:
    """The members and the records after all steps. The first step repairs failed members. ages: to
    sort them by, if it repairs them in place; otherwise it replaces them, so they are the youngest.
    """
    at = Progress(kept=plan.compute_records(current))
    compared = 0
    while (step := plan.step(current, at, None)) is not None:
        bodies = step.change.bodies
        stay = [name for name in current.bodies if name in bodies]
        if ages:
            stay.sort(key=lambda name: (name not in ages, ages.get(name, ())))
        else:
            stay = [
                *(name for name in stay if name in current.healthy),
                *(name for name in stay if name not in current.healthy),
            ]
        ordered = {name: bodies[name] for name in dict.fromkeys((*stay, *bodies))}
        current = replace(current, bodies=ordered, healthy=frozenset(ordered))
        at = replace(at, step=f"{step.kind}-{at.number}", kept={**at.kept, **step.kept}).after()
        compared += len(ordered)
        if compared > MAX_COMPARED:
            plan = whole or plan
    return current, at.kept


def _next_step(
    call: Call,
    plan: GroupPlan,
    current: CurrentMembers,
    at: Progress,
    done: Callable[[Child], Done],
) -> GroupStep | Outcome:
    """Each operation has at least one step: the templates of the members may have changed although
    the group's properties have not."""
    step = plan.step(current, at, None)
    if step is None and at.last and call.child is not None:
        return done(call.child)
    step = step or GroupStep("members", MemberChange(current.bodies))
    outcome = _pause(call, step, at) or _ask_confirmation(call, step, at)
    if outcome is not None:
        return outcome
    names = chosen_members(step.ask, _review_data(step), call.answers.get(step.ask))
    if names is None and at.asked == at.number and at.shown:
        names = at.shown
    if names is not None and not isinstance(names, InvalidChoice):
        step = plan.step(current, at, names) or step
    return step


async def _place(
    call: Call,
    plan: GroupPlan,
    step: GroupStep,
    current: CurrentMembers,
    at: Progress,
    placer: Placer,
) -> Outcome:
    places = await placer.place(group_view(call, step.change.bodies, step.change.created, current))
    if isinstance(places, str):
        return _failed(call, places)
    return _start(plan, step, current, at, {name: dict(one) for name, one in places.items()})


def _start(
    plan: GroupPlan, step: GroupStep, current: CurrentMembers, at: Progress, places: Places
) -> RunNested:
    change = step.change
    bodies = {name: with_place(body, places.get(name, {})) for name, body in change.bodies.items()}
    previous = current.previous_bodies([*change.changed, *change.created])
    known = {**current.group.get(PLACED, {}), **places}
    remembered = {name: known[name] for name in bodies if known.get(name)}
    name, kept = f"{step.kind}-{at.number}", {**at.kept, **step.kept, PLACED: remembered}
    goal = build_template(bodies, kept, has_secrets=plan.has_secrets, previous=previous)
    return RunNested(name, goal, at.document(step=name, kept=kept))


def _pause(call: Call, step: GroupStep, at: Progress) -> Outcome | None:
    if not step.pause or at.last != step.kind:
        return None
    pause = timedelta(seconds=min(step.pause, MAX_PAUSE))
    until = datetime.fromisoformat(at.until) if at.until else call.now + pause
    if call.now >= until:
        return None
    if call.superseded:
        return _failed(call, "superseded between two batches")
    return Wait(until, at.document(until=until.isoformat()))


def _ask_confirmation(call: Call, step: GroupStep, at: Progress) -> Outcome | None:
    if not step.ask:
        return None
    if at.asked != at.number:
        seen = _review_data(step)
        progress = at.document(asked=at.number, shown=seen[CHOICES[step.ask].key])
        return Confirm(step.ask, progress, seen, public_seen=seen)
    answer = call.confirmation
    if answer is None or answer.accepted:
        return None
    why = f": {answer.reason}" if answer.reason else ""
    return _failed(call, f"{step.ask} rejected by {answer.by}{why}")


def _failed(call: Call, reason: str) -> Failed:
    current = call.physical_id if call.child is None else str(call.child.id)
    return Failed(reason, current, call.data, public_reason=reason)


def _review_data(step: GroupStep) -> dict[str, Json]:
    """The data for the reviewer; see engine/hooks/member_choice.py."""
    if not step.ask:
        return {}
    change = step.change
    seen = {"changed": change.changed, "created": change.created, "removed": change.removed}
    named = change.changed or () if CHOICES[step.ask].fewer else change.removed
    return {
        **{name: [*members] for name, members in seen.items()},
        CHOICES[step.ask].key: [*named],
        MAY_CHOOSE: [*change.open],
    }
