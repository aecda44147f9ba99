"""Answers to hooks, from every answer channel."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
from engine.hooks.answer_data import DataCheck, check_data, measure_data
from engine.hooks.answers import (
    Accepted,
    Counted,
    Extended,
    Given,
    Same,
    check_right,
    judge,
    may_hand_over,
)
from engine.hooks.hash_chain import Entry
from engine.hooks.step_mode import ON, affects_tree, step_mode_change
from engine.hot.schema.properties import check_resolved
from engine.hot.schema.type_schema import TypeSchema
from engine.node.inputs import Answered
from engine.principal import Principal
from engine.service.actions.cancel import not_supported
from engine.service.hooks.breakpoints import LiveBreakpoints
from engine.service.hooks.missed_breakpoints import MissedBreakpoint, with_continued
from engine.service.hooks.step_mode import set_step_mode
from engine.service.requests.requests import Answer
from engine.service.traversals.start import UNDER_WAY, Traversals
from engine.store import audit_log
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.hook_deadlines import write_clocks
from engine.store.hooks import (
    Held,
    assign_hook,
    find_hook,
    lock_hooks,
    patch_node,
    read_ask,
    record_events,
    step_into,
    waiting_hook_at,
)
from engine.store.records import HookRecord
from engine.store.stack_queries import read_hook
from engine.store.stack_tree import StackTreeMember, lock_stack_tree, within
from engine.words import GOES_ON, Decision, HookState, How, Json, Point
from engine.work.hook_decisions import Verdict, apply, hook_event
from engine.work.measures import Measures
from engine.work.worker_metrics import report_step


@dataclass(frozen=True, slots=True)
class LockedAnswer:
    """An answer and its locked hook. tree: the locked stacks of the change; empty if the answer
    concerns this stack alone. check: the result of validating the answer's data."""

    hook: Held
    answer: Answer
    tree: Sequence[StackTreeMember] = ()
    check: DataCheck | None = None

    def entry(self, kind: str, *, reason: str = "", data: Json = None) -> Entry:
        answer = self.answer
        return Entry(
            stack_id=self.hook.stack_id, hook_id=self.hook.id, kind=kind, by=answer.by.name,
            principal=answer.by.id, token_id=answer.by.token_id, door=answer.door,
            at=self.hook.now, address=answer.address,
            reason=reason or answer.reason, digest=answer.digest or self.hook.asked.digest,
            data=answer.data if data is None else data,
        )  # fmt: skip


class Hooks:
    """Answers to hooks, from every answer channel, and stepping."""

    def __init__(
        self,
        database: Database,
        traversals: Traversals,
        breakpoints: LiveBreakpoints,
        *,
        new_id: Callable[[], UUID],
        wake: Callable[[], None],
        measures: Measures,
    ) -> None:
        self._database = database
        self._registry = traversals.registry
        self._breakpoints = breakpoints
        self._measures = measures
        self._traversals = traversals
        self._limits = traversals.limits.hooks
        self._new_id = new_id
        self._wake = wake

    async def answer(self, hook_id: UUID, answer: Answer, *, project: str | None) -> HookRecord:
        """Answer a hook. project: None if the hook's token authenticated the request.

        Raises AnswerRefused (the hook no longer waits, or another answer has decided it), Forbidden
        (the principal may not answer it), Invalid, NotFound.
        """
        forbidden: Forbidden | None = None
        steps: Sequence[Json] = ()
        check = await self._check_data(hook_id, answer, project)
        async with self._database.transaction("answer", replan=True) as conn:
            locked = replace(await self._lock(conn, hook_id, answer, project), check=check)
            try:
                steps = await self._judge(conn, locked)
            except Forbidden as error:
                # Committed before the error is raised: the audit log has one entry for it.
                forbidden = error
                await self._record_refusal(conn, locked, str(error))
            record = await read_hook(conn, hook_id, project)
        self._wake()
        if forbidden is not None:
            raise forbidden
        if record is None:
            raise _hook_not_found(hook_id)
        self._measures.hook_answered(answer.door, answer.decision)
        for step in steps:
            report_step(step, self._measures)
        return record

    async def hand_over(
        self, hook_id: UUID, answer: Answer, to: str, *, project: str
    ) -> HookRecord:
        """Hand a hook over to another approver. to: ``user:NAME`` or ``role:NAME``. The note is the
        answer's reason.

        Raises AnswerRefused if the hook does not wait; Forbidden if the principal may not answer
        it; NotFound.
        """
        async with self._database.transaction("answer", replan=True) as conn:
            locked = await self._lock(conn, hook_id, answer, project)
            refusal = may_hand_over(locked.hook.asked, _given(answer), locked.hook.now)
            if refusal is not None:
                raise refusal
            await assign_hook(conn, locked.hook, to)
            await audit_log.record(conn, [locked.entry("handed-over", data={"to": to})])
            note = f": {answer.reason}" if answer.reason else ""
            reason = f"{answer.by} handed {locked.hook.asked.point} over to {to}{note}"
            data = {"to": to, "by": answer.by.name, "reason": answer.reason}
            kind = "headgate.hook.handed-over"
            await record_events(conn, [hook_event(locked.hook, kind, reason, data)])
            record = await read_hook(conn, hook_id, project)
        if record is None:
            raise _hook_not_found(hook_id)
        return record

    async def unset(
        self, project: str, stack_id: UUID, resource_name: str, point: str, answer: Answer
    ) -> None:
        """Answer the hook that waits at a point of a resource, as Heat's `unset_hook` signal does.

        Raises Invalid (InvalidBreakPointHook) if no hook waits there, and as `answer` does.
        """
        known = [one.value for one in Point]
        if point not in known:
            raise _invalid_point(
                f'Invalid hook type "{point}" for resource "{resource_name}"', known
            )
        async with self._database.connection() as conn:
            hook_id = await waiting_hook_at(conn, stack_id, resource_name, point)
        if hook_id is None:
            raise _invalid_point(f'The "{point}" hook is not defined on "{resource_name}"', ())
        await self.answer(hook_id, answer, project=project)

    async def run_to(
        self, project: str, stack_id: UUID, path: str, answer: Answer
    ) -> Sequence[MissedBreakpoint]:
        """Continue all hooks of stepping and of breakpoints, and stop before the operations of one
        resource. path: of the resource, from the stack: ``web/db``.

        Returns the nodes that have already passed the breakpoint. Raises NotFound if no node of
        the resource is pending; Invalid (NotSupported) if no traversal is under way.
        """
        async with self._database.transaction("answer", replan=True) as conn:
            tree = within(await lock_stack_tree(conn, stack_id))
            locked = await self._traversals.lock(conn, project, stack_id)
            if locked.state not in UNDER_WAY:
                raise not_supported("Running to a resource", locked)
            missed = await self._breakpoints.add_run_to(conn, locked, tree, path)
            hooks = await self._continue_all(conn, tree, answer)
        self._wake()
        paths = {one.id: one.path for one in tree}
        continued = {
            (
                "/".join(filter(None, (paths[one.stack_id], one.asked.resource_name))),
                one.asked.point,
            )
            for one in hooks
        }
        return with_continued(missed, continued)

    async def _continue_all(
        self, conn: Connection, tree: Sequence[StackTreeMember], answer: Answer
    ) -> list[Held]:
        """End stepping in all stacks of the tree, and continue the hooks that only stepping or
        breakpoints for debugging opened; returns these hooks. tree: locked."""
        hooks = await set_step_mode(conn, ON, tree)
        await self._apply(conn, [_verdict(one, answer, Decision.CONTINUE) for one in hooks], answer)
        return hooks

    async def _apply(
        self, conn: Connection, verdicts: Sequence[Verdict], answer: Answer
    ) -> Sequence[Json]:
        steps = await apply(
            conn,
            verdicts,
            new_id=self._new_id,
            default_timeout=self._limits.default_timeout,
        )
        # The credential is deleted while a traversal waits; the answer supplies a new one.
        resumed = {(one.held.stack_id, one.held.traversal) for one in verdicts}
        await self._traversals.keep_credentials(conn, sorted(resumed), answer.credential)
        return steps

    async def audit_log(self, hook: HookRecord) -> list[Entry]:
        """The audit log entries of a hook, oldest first."""
        async with self._database.connection() as conn:
            return await audit_log.trail_of_hook(conn, hook.stack_id, hook.id)

    async def _check_data(
        self, hook_id: UUID, answer: Answer, project: str | None
    ) -> DataCheck | None:
        """Validate the answer's data in a thread, before the stack is locked: it can take 0.5 s.

        Returns None for decisions that need no data, and for an unknown hook. Raises Invalid for
        data that is too large.
        """
        if answer.data is not None:
            measure_data(answer.data)
        if answer.decision not in GOES_ON:
            return None
        async with self._database.connection() as conn:
            requested = await read_ask(conn, hook_id, project)
        if requested is None:
            return None
        ask, owner = requested
        return await self._traversals.thread_pool(partial(check_data, ask, answer.data), owner)

    async def _lock(
        self, conn: Connection, hook_id: UUID, answer: Answer, project: str | None
    ) -> LockedAnswer:
        """Lock the hook's stack, or its whole stack tree if the answer concerns that.

        Raises NotFound.
        """
        found = await find_hook(conn, hook_id, project)
        if found is None:
            raise _hook_not_found(hook_id)
        stack_id, stepped = found
        through = affects_tree(answer.word, stepped=stepped)
        tree = await lock_stack_tree(conn, stack_id) if through else ()
        return LockedAnswer((await lock_hooks(conn, [(stack_id, hook_id)]))[0], answer, tree)

    async def _judge(self, conn: Connection, locked: LockedAnswer) -> Sequence[Json]:
        """Check the answer and apply or record it; returns the transitions of the nodes.

        Raises AnswerRefused, Forbidden, Invalid.
        """
        held, answer = locked.hook, locked.answer
        if held.asked.rule.dry and held.asked.state is HookState.ANSWERED:
            check_right(held.asked, _given(answer))
            await self._record_dry_run(conn, locked)
            return ()
        given = replace(self._comparable(held, answer), check=locked.check)
        match judge(held.asked, given, held.now, self._limits):
            case Accepted():
                return await self._decide(conn, locked)
            case Counted(missing=missing):
                await audit_log.record(conn, [locked.entry(answer.word)])
                reason = f"{answer.by} approved {held.asked.point}; {missing} more to go"
                data = {"by": answer.by.name, "missing": missing, "reason": answer.reason}
                event = hook_event(held, "headgate.hook.approved", reason, data)
                await record_events(conn, [event])
            case Extended(clock=clock):
                await write_clocks(conn, {(held.stack_id, held.id): clock})
                deadline = clock.deadline
                await audit_log.record(
                    conn, [locked.entry("progress", data={"deadline": deadline})]
                )
                reason = f"{answer.by} is working on {held.asked.point}"
                data = {"by": answer.by.name, "deadline": deadline, "reason": answer.reason}
                event = hook_event(held, "headgate.hook.progress", reason, data)
                await record_events(conn, [event])
            case Same():
                pass
            case AnswerRefused() as refusal:
                raise refusal
        return ()

    async def _decide(self, conn: Connection, locked: LockedAnswer) -> Sequence[Json]:
        """Apply a decision; returns the transitions of the nodes. Raises Invalid."""
        held, answer = locked.hook, locked.answer
        if answer.decision is Decision.PATCH:
            await patch_node(conn, held, self._patched(held, answer))
        if answer.how is How.INTO:
            await step_into(conn, held)
        if answer.how is How.OUT and not any(one.level < 0 for one in locked.tree):
            remedy = "Answer step, continue or run."
            reason = "is not possible: this stack has no parent"
            raise Invalid([Finding("how", reason, remedy, "AnswerInvalid")])
        mode_change = step_mode_change(answer.word, held.asked.rule)
        others = await set_step_mode(conn, mode_change, locked.tree)
        verdicts = [_verdict(held, answer, answer.decision, answer.how)]
        verdicts += [
            _verdict(one, answer, mode_change.decision) for one in others if one.id != held.id
        ]
        return await self._apply(conn, verdicts, answer)

    def _comparable(self, held: Held, answer: Answer) -> Given:
        """The answer; a repeated patch has its properties normalized as the stored patch has."""
        given = _given(answer)
        if answer.decision is Decision.PATCH and held.asked.state is HookState.ANSWERED:
            with contextlib.suppress(Invalid):  # an invalid patch cannot equal the stored one
                return replace(given, properties=self._patched(held, answer))
        return given

    def _patched(self, held: Held, answer: Answer) -> dict[str, Json]:
        """The node's patch with the answer's properties, validated against the resource type.

        Raises Invalid.
        """
        schema, findings = self._registry.get(held.type).schema, Findings()
        given = dict(answer.properties or {})
        patchable = _patch_schema(schema, given, held.asked.point, findings)
        checked = (
            check_resolved(patchable, given, "properties", findings) if not findings.all else {}
        )
        if not findings.all:
            self._registry.check_properties(held.type, checked, "properties", findings)
        findings.raise_if_any()
        return {**(held.patched or {}), **checked}

    async def _record_refusal(self, conn: Connection, locked: LockedAnswer, reason: str) -> None:
        """Add an audit log entry for a forbidden answer: one for each principal and hook."""
        hook, answer = locked.hook, locked.answer
        entries = await audit_log.trail_of_hook(conn, hook.stack_id, hook.id)
        if not any(one.kind == "refused" and _is_by(one, answer.by) for one in entries):
            data = {"decision": answer.decision}
            await audit_log.record(conn, [locked.entry("refused", reason=reason, data=data)])

    async def _record_dry_run(self, conn: Connection, locked: LockedAnswer) -> None:
        """Add the first decision for a dry-run rule to the audit log; it has no other effect."""
        kind = f"dry-{locked.answer.decision}"
        entries = await audit_log.trail_of_hook(conn, locked.hook.stack_id, locked.hook.id)
        if not any(one.kind.startswith("dry-") for one in entries):
            await audit_log.record(conn, [locked.entry(kind)])


def _given(answer: Answer) -> Given:
    return Given(
        answer.decision, answer.by, answer.automation, answer.digest, answer.data,
        answer.properties, answer.extend, answer.how,
    )  # fmt: skip


def _is_by(entry: Entry, by: Principal) -> bool:
    return Principal(entry.principal, entry.by) == Principal(by.id, by.name)


def _verdict(held: Held, answer: Answer, decision: Decision, how: How = How.OVER) -> Verdict:
    return Verdict(
        held,
        Answered(decision, answer.by.name, answer.reason),
        answer.by,
        answer.door,
        answer.reason,
        answer.data if held.asked.rule.ask or answer.data is not None else None,
        answer.address,
        answer.digest,
        how,
    )


def _patch_schema(
    schema: TypeSchema, given: dict[str, Json], point: str, findings: Findings
) -> TypeSchema:
    """The schema of the given properties alone. Adds findings for those that a patch at this point
    cannot change."""
    known = schema.properties
    for name in given:
        if name not in known and not schema.any_property:
            remedy = nearest(name, list(known)) or f"Known: {', '.join(sorted(known))}."
            findings.add(f"properties.{name}", f"is not a property of {schema.name}", remedy)
        elif name in known and point != Point.PRE_CREATE and not known[name].update_allowed:
            remedy = "Answer at the pre-create of a new resource, or update the template."
            findings.add(f"properties.{name}", "cannot be changed in place", remedy)
    return replace(schema, properties={name: known[name] for name in given if name in known})


def _hook_not_found(hook_id: UUID) -> NotFound:
    return NotFound(f"there is no hook {hook_id}", code="HookNotFound")


def _invalid_point(reason: str, known: Sequence[str]) -> Invalid:
    remedy = f"Acceptable hook types are: {', '.join(known)}." if known else ""
    return Invalid([Finding("", reason, remedy, "InvalidBreakPointHook")])
