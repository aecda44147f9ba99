"""Answers to hooks, through whichever door they come: one way in for all of them."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from engine.errors import (
    AnswerRefused,
    Finding,
    Findings,
    Forbidden,
    Invalid,
    NotFound,
    nearest,
)
from engine.hooks.answers import (
    Accepted,
    Counted,
    Extended,
    Given,
    Same,
    judge,
    may_hand_over,
)
from engine.hooks.audit import Entry
from engine.hooks.course import ON, course_after, goes_through
from engine.hot.properties import check_resolved
from engine.hot.schema import TypeSchema
from engine.node.inputs import Answered
from engine.service.going_on import take_course
from engine.service.reading import Reading
from engine.service.requests import Answer
from engine.service.traversals import Traversals
from engine.store import audit
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.hooks import (
    Held,
    assign_hook,
    extend_hook,
    find_hook,
    lock_hooks,
    patch_node,
    record_events,
    step_into,
    waiting_hook_at,
)
from engine.store.kin import Kin, lock_kin
from engine.store.read import read_hook
from engine.store.records import HookRecord
from engine.words import Decision, HookState, How, Json, Point
from engine.work.answering import Verdict, apply, hook_event
from engine.work.measures import Measures
from engine.work.told import tell_step


@dataclass(frozen=True, slots=True)
class Taken:
    """An answer on its way: the hook as it is held, and who says what. kin: the stacks that its
    change goes through, locked; none where they are not concerned."""

    held: Held
    answer: Answer
    kin: Sequence[Kin] = ()

    def entry(self, kind: str, *, reason: str = "", data: Json = None) -> Entry:
        answer = self.answer
        return Entry(
            stack_id=self.held.stack_id, hook_id=self.held.id, kind=kind, by=answer.by,
            door=answer.door, at=self.held.now, address=answer.address,
            reason=reason or answer.reason, digest=answer.digest or self.held.asked.digest,
            data=answer.data if data is None else data,
        )  # fmt: skip


class Answering(Reading):
    def __init__(
        self,
        database: Database,
        traversals: Traversals,
        *,
        new_id: Callable[[], UUID],
        wake: Callable[[], None],
        measures: Measures,
    ) -> None:
        super().__init__(database, traversals.registry)
        self._measures = measures
        self._traversals = traversals
        self.hook_limits = traversals.limits.hooks
        self._new_id = new_id
        self._wake = wake

    async def answer(self, hook_id: UUID, answer: Answer, *, project: str | None) -> HookRecord:
        """Answer a hook. project: None when the hook's token was shown.

        AnswerRefused (too late, or another answer decided), Forbidden (not theirs to answer),
        Invalid, NotFound.
        """
        forbidden: Forbidden | None = None
        steps: Sequence[Json] = ()
        async with self._database.transaction("answer", replan=True) as conn:
            taken = await self._take(conn, hook_id, answer, project)
            try:
                steps = await self._judged(conn, taken)
            except Forbidden as error:
                # Who tried what they may not is kept, once.
                forbidden = error
                await self._keep_refusal(conn, taken, str(error))
            record = await read_hook(conn, hook_id, project)
        self._wake()
        if forbidden is not None:
            raise forbidden
        if record is None:
            raise _no_hook(hook_id)
        self._measures.hook_answered(answer.door, answer.decision)
        for step in steps:
            tell_step(step, self._measures)
        return record

    async def hand_over(
        self, hook_id: UUID, answer: Answer, to: str, *, project: str
    ) -> HookRecord:
        """Let somebody else answer, with a note (the answer's reason). to: user:NAME or role:NAME.

        Who may hand it over is who may answer it. AnswerRefused when it does not wait.
        """
        async with self._database.transaction("answer", replan=True) as conn:
            taken = await self._take(conn, hook_id, answer, project)
            refusal = may_hand_over(taken.held.asked, _given(answer), taken.held.now)
            if refusal is not None:
                raise refusal
            await assign_hook(conn, taken.held, to)
            await audit.record(conn, [taken.entry("handed-over", data={"to": to})])
            note = f": {answer.reason}" if answer.reason else ""
            said = f"{answer.by} handed {taken.held.asked.point} over to {to}{note}"
            told = {"to": to, "by": answer.by, "reason": answer.reason}
            kind = "headgate.hook.handed-over"
            await record_events(conn, [hook_event(taken.held, kind, said, told)])
            record = await read_hook(conn, hook_id, project)
        if record is None:
            raise _no_hook(hook_id)
        return record

    async def unset_hook(
        self, project: str, stack_id: UUID, resource_name: str, point: str, answer: Answer
    ) -> None:
        """Heat's way to answer: Invalid with code InvalidBreakPointHook when none waits."""
        known = [one.value for one in Point]
        if point not in known:
            raise _not_waiting(f'Invalid hook type "{point}" for resource "{resource_name}"', known)
        async with self._database.connection() as conn:
            hook_id = await waiting_hook_at(conn, stack_id, resource_name, point)
        if hook_id is None:
            raise _not_waiting(f'The "{point}" hook is not defined on "{resource_name}"', ())
        await self.answer(hook_id, answer, project=project)

    async def go_on(self, conn: Connection, kin: Sequence[Kin], answer: Answer) -> None:
        """Let everything go on that waits for whoever debugs; from now on as the rules say."""
        held = await take_course(conn, ON, kin)
        await self._apply(conn, [_verdict(one, answer, Decision.CONTINUE) for one in held], answer)

    async def _apply(
        self, conn: Connection, verdicts: Sequence[Verdict], answer: Answer
    ) -> Sequence[Json]:
        steps = await apply(
            conn,
            verdicts,
            new_id=self._new_id,
            default_timeout=self.hook_limits.default_timeout,
        )
        # What was deleted while it waited comes with the answer.
        told = {(one.held.stack_id, one.held.traversal) for one in verdicts}
        await self._traversals.keep_credentials(conn, sorted(told), answer.credential)
        return steps

    async def trail(self, hook: HookRecord) -> list[Entry]:
        """Everything that was said to a hook, in order."""
        async with self._database.connection() as conn:
            return await audit.trail_of_hook(conn, hook.stack_id, hook.id)

    async def _take(
        self, conn: Connection, hook_id: UUID, answer: Answer, project: str | None
    ) -> Taken:
        """Lock the hook's stack, and others of its tree where the answer concerns them."""
        found = await find_hook(conn, hook_id, project)
        if found is None:
            raise _no_hook(hook_id)
        stack_id, stepped = found
        through = goes_through(answer.word, stepped=stepped)
        kin = await lock_kin(conn, stack_id) if through else ()
        return Taken((await lock_hooks(conn, [(stack_id, hook_id)]))[0], answer, kin)

    async def _judged(self, conn: Connection, taken: Taken) -> Sequence[Json]:
        """The steps that the nodes have made."""
        held, answer = taken.held, taken.answer
        if held.asked.rule.dry and held.asked.state is HookState.ANSWERED:
            await self._keep_dry(conn, taken)
            return ()
        match judge(held.asked, self._as_kept(held, answer), held.now, self.hook_limits):
            case Accepted():
                return await self._decide(conn, taken)
            case Counted(missing=missing):
                await audit.record(conn, [taken.entry(answer.word)])
                said = f"{answer.by} approved {held.asked.point}; {missing} more to go"
                told = {"by": answer.by, "missing": missing, "reason": answer.reason}
                event = hook_event(held, "headgate.hook.approved", said, told)
                await record_events(conn, [event])
            case Extended(deadline=deadline):
                await extend_hook(conn, held, deadline)
                await audit.record(conn, [taken.entry("progress", data={"deadline": deadline})])
                said = f"{answer.by} is working on {held.asked.point}"
                told = {"by": answer.by, "deadline": deadline, "reason": answer.reason}
                event = hook_event(held, "headgate.hook.progress", said, told)
                await record_events(conn, [event])
            case Same():
                pass
            case AnswerRefused() as refusal:
                raise refusal
        return ()

    async def _decide(self, conn: Connection, taken: Taken) -> Sequence[Json]:
        held, answer = taken.held, taken.answer
        if answer.decision is Decision.PATCH:
            await patch_node(conn, held, self._patched(held, answer))
        if answer.how is How.INTO:
            await step_into(conn, held)
        if answer.how is How.OUT and not any(one.level < 0 for one in taken.kin):
            remedy = "Answer step, continue or run."
            reason = "leads nowhere: no stack is around this one"
            raise Invalid([Finding("how", reason, remedy, "AnswerInvalid")])
        course = course_after(answer.word, held.asked.rule)
        others = await take_course(conn, course, taken.kin)
        verdicts = [_verdict(held, answer, answer.decision, answer.how)]
        verdicts += [_verdict(one, answer, course.decision) for one in others if one.id != held.id]
        return await self._apply(conn, verdicts, answer)

    def _as_kept(self, held: Held, answer: Answer) -> Given:
        """A patch of a decided hook is compared with what was kept of the one that decided."""
        given = _given(answer)
        if answer.decision is Decision.PATCH and held.asked.state is HookState.ANSWERED:
            with contextlib.suppress(Invalid):  # then it is not the same
                return replace(given, properties=self._patched(held, answer))
        return given

    def _patched(self, held: Held, answer: Answer) -> dict[str, Json]:
        """The properties as the type keeps them. Raises Invalid for those it does not take."""
        schema, findings = self._registry.get(held.type).schema, Findings()
        asked = dict(answer.properties or {})
        known = _only(schema, asked, held.asked.point, findings)
        taken = check_resolved(known, asked, "properties", findings) if not findings.all else {}
        if not findings.all:
            self._registry.check_properties(held.type, taken, "properties", findings)
        findings.raise_if_any()
        return {**(held.patched or {}), **taken}

    async def _keep_refusal(self, conn: Connection, taken: Taken, why: str) -> None:
        trail = await audit.trail_of_hook(conn, taken.held.stack_id, taken.held.id)
        if not any(one.kind == "refused" and one.by == taken.answer.by for one in trail):
            told = {"decision": taken.answer.decision}
            await audit.record(conn, [taken.entry("refused", reason=why, data=told)])

    async def _keep_dry(self, conn: Connection, taken: Taken) -> None:
        """A rule that only tries out: what it would have decided is kept, and nothing else."""
        kind = f"dry-{taken.answer.decision}"
        trail = await audit.trail_of_hook(conn, taken.held.stack_id, taken.held.id)
        if not any(one.kind.startswith("dry-") for one in trail):
            await audit.record(conn, [taken.entry(kind)])


def _given(answer: Answer) -> Given:
    return Given(
        answer.decision, answer.by, answer.roles, answer.by_token, answer.digest, answer.data,
        answer.properties, answer.extend, answer.how,
    )  # fmt: skip


def _verdict(held: Held, answer: Answer, decision: Decision, how: How = How.OVER) -> Verdict:
    return Verdict(
        held,
        Answered(decision, answer.by, answer.reason),
        answer.by,
        answer.door,
        answer.reason,
        answer.data if held.asked.rule.ask or answer.data is not None else None,
        answer.address,
        answer.digest,
        how,
    )


def _only(schema: TypeSchema, asked: dict[str, Json], point: str, findings: Findings) -> TypeSchema:
    """The schema of what is asked to change, with nothing else in it."""
    known = schema.properties
    for name in asked:
        if name not in known and not schema.any_property:
            remedy = nearest(name, list(known)) or f"Known: {', '.join(sorted(known))}."
            findings.add(f"properties.{name}", f"is no property of {schema.name}", remedy)
        elif name in known and point != Point.PRE_CREATE and not known[name].update_allowed:
            remedy = "Answer at the pre-create of a new resource, or update the template."
            findings.add(f"properties.{name}", "cannot be changed in place", remedy)
    return replace(schema, properties={name: known[name] for name in asked if name in known})


def _no_hook(hook_id: UUID) -> NotFound:
    return NotFound(f"there is no hook {hook_id}", code="HookNotFound")


def _not_waiting(reason: str, known: Sequence[str]) -> Invalid:
    remedy = f"Acceptable hook types are: {', '.join(known)}." if known else ""
    return Invalid([Finding("", reason, remedy, "InvalidBreakPointHook")])
