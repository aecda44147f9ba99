"""Answers to hooks, from every answer channel."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from uuid import UUID

from engine.errors import (
    AnswerRefused,
    Conflict,
    Finding,
    Findings,
    Forbidden,
    Invalid,
    NotFound,
    nearest,
)
from engine.hooks.answer_data import DataCheck, check_data, measure_data
from engine.hooks.answer_rights import check_right
from engine.hooks.answers import (
    Answer,
    Approval,
    DeadlineExtension,
    FinalAnswer,
    RepeatedAnswer,
    judge,
    may_hand_over,
)
from engine.hooks.hash_chain import Entry
from engine.hooks.step_mode import RUN_TO, StepModeChange, affects_tree, step_mode_change
from engine.hot.schema.properties import check_resolved
from engine.hot.schema.type_schema import TypeSchema
from engine.missing_objects import no_hook
from engine.node.node import Answered
from engine.principal import Principal
from engine.service.actions.cancel import not_supported
from engine.service.hooks.adoption import adopt
from engine.service.hooks.answer_batches import AnswerBatch, AnswerBatches, PendingAnswer
from engine.service.hooks.breakpoints import LiveBreakpoints, MissedBreakpoint, with_continued
from engine.service.hooks.drift_answers import about_drift, drift_event, record_answers
from engine.service.traversals.start import Traversals
from engine.store.audit import audit_log
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.gathered_reads import GatheredReads
from engine.store.hooks import step_modes
from engine.store.hooks.adoptions import Adoption, read_adoptable, write_adoptions
from engine.store.hooks.deadlines import write_clocks
from engine.store.hooks.hook_lists import read_hook, read_hooks_by_id
from engine.store.hooks.locked_hooks import (
    FoundHook,
    HookKey,
    LockedHook,
    assign_hook,
    find_hook,
    find_hooks,
    find_waiting_hook,
    lock_hooks,
    patch_node,
    read_locked_hooks,
    read_waiting_hooks,
    record_events,
)
from engine.store.records import HookRecord
from engine.store.stacks.stack_locks import lock_stacks
from engine.store.stacks.stack_tree import StackTreeMember, lock_stack_tree, self_and_nested
from engine.words import (
    DRIFT,
    RESUMING_DECISIONS,
    UNDER_WAY,
    Decision,
    HookState,
    Json,
    Point,
    StepKind,
    StepMode,
)
from engine.work.hook_decisions import Verdict, apply, entry_of, hook_event
from engine.work.worker_metrics import WorkerMetrics, report_step

#: Of a transaction that decides answers to several stacks: a locked one must not delay the others.
LOCK_WAIT = timedelta(milliseconds=200)


@dataclass(frozen=True, slots=True)
class LockedAnswer:
    """An answer and its locked hook. tree: the locked stacks of the change; empty if the answer
    concerns this stack alone. check: the result of validating the answer's data."""

    hook: LockedHook
    answer: Answer
    tree: Sequence[StackTreeMember] = ()
    check: DataCheck | None = None

    @property
    def adopts(self) -> bool:
        """Whether the answer adopts observed values."""
        return about_drift(self.hook) and self.answer.decision is Decision.ADOPT

    def entry(self, kind: str, **changed: Json) -> Entry:
        """An entry of the audit log. changed: fields that differ from those of the answer."""
        verdict = _verdict(self.hook, self.answer, self.answer.decision)
        return entry_of(replace(verdict, **changed), kind)


@dataclass(frozen=True, slots=True)
class DecidedBatch:
    """errors, records: by hook. steps: of the nodes, for metrics."""

    errors: Mapping[UUID, Exception]
    records: Mapping[UUID, HookRecord]
    steps: Sequence[Json]


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
        metrics: WorkerMetrics,
    ) -> None:
        self._database = database
        self._registry = traversals.registry
        self._breakpoints = breakpoints
        self._metrics = metrics
        self._traversals = traversals
        self._limits = traversals.limits.hooks
        self._new_id = new_id
        self._wake = wake
        self._batches = AnswerBatches(self._decide_batch, self._decide_together)
        self._found = GatheredReads(self._find)

    async def answer(self, hook_id: UUID, answer: Answer, *, project: str | None) -> HookRecord:
        """Answer a hook. project: None if the hook's token authenticated the request.

        Raises AnswerRefused (the hook no longer waits, or another answer has decided it), Forbidden
        (the principal may not answer it), Invalid, NotFound.
        """
        if answer.data is not None:
            measure_data(answer.data)
        found = await self._found.get((hook_id, project))
        if found is None:
            raise no_hook(hook_id)
        check = await self._check_data(found, answer)
        tree = affects_tree(answer.word, stepped=found.stepped)
        return await self._batches.decide(
            PendingAnswer(found.stack_id, hook_id, answer, project, tree, check)
        )

    async def _find(self, keys: Sequence[HookKey]) -> Mapping[HookKey, FoundHook]:
        async with self._database.connection() as conn:
            return await find_hooks(conn, keys)

    async def _decide_batch(self, batch: AnswerBatch) -> Sequence[HookRecord | Exception]:
        """Decide answers to different hooks of one stack in one transaction."""
        async with self._database.transaction("answer", by_key=True) as conn:
            decided = await self._decide_locked(conn, await self._lock(conn, batch))
        self._report(decided)
        return [self._result(one, decided) for one in batch.answers]

    async def _decide_together(self, batch: AnswerBatch) -> Sequence[HookRecord | Exception]:
        """Decide answers to different hooks of any stacks in one transaction. Raises Unavailable if
        a stack stays locked."""
        async with self._database.transaction("answer", by_key=True, lock_wait=LOCK_WAIT) as conn:
            decided = await self._decide_locked(conn, await self._lock(conn, batch))
        self._report(decided)
        return [self._result(one, decided) for one in batch.answers]

    async def _decide_locked(
        self, conn: Connection, answers: Sequence[LockedAnswer]
    ) -> DecidedBatch:
        """Decide answers to different hooks, whose stacks are locked. A refused answer does not
        affect the others."""
        errors: dict[UUID, Exception] = {}
        verdicts: list[Verdict] = []
        credentials: dict[tuple[UUID, int], str] = {}
        adoptions: list[Adoption] = []
        adopting = [one.hook.key for one in answers if one.adopts]
        adoptable = await read_adoptable(conn, adopting) if adopting else {}
        for locked in answers:
            try:
                own = await self._judge(conn, locked)
                if own and locked.adopts:
                    resource = adoptable.get(locked.hook.id)
                    adoptions.append(adopt(resource, locked.answer.by, self._registry))
                verdicts += own
                if not about_drift(locked.hook):  # no traversal would use a credential
                    credentials |= _credentials(own, locked.answer.credential)
            except Forbidden as error:
                errors[locked.hook.id] = error
                await self._record_refusal(conn, locked, str(error))
            except (Conflict, Invalid, NotFound) as error:
                errors[locked.hook.id] = error
        steps = await self._apply(conn, verdicts, credentials) if verdicts else ()
        if about := [one for one in verdicts if about_drift(one.hook)]:
            await write_adoptions(conn, adoptions)
            await record_answers(conn, about)
        records = await read_hooks_by_id(conn, [one.hook.id for one in answers]) if answers else {}
        return DecidedBatch(errors, records, steps)

    def _report(self, decided: DecidedBatch) -> None:
        """Wake the workers, and count the steps of the nodes."""
        self._wake()
        for step in decided.steps:
            report_step(step, self._metrics)

    def _result(self, pending: PendingAnswer, decided: DecidedBatch) -> HookRecord | Exception:
        hook_id = pending.hook_id
        if hook_id in decided.errors or hook_id not in decided.records:
            return decided.errors.get(hook_id) or no_hook(hook_id)
        self._metrics.record_answer(pending.answer.channel, pending.answer.decision)
        return decided.records[hook_id]

    async def hand_over(
        self, hook_id: UUID, answer: Answer, to: str, *, project: str
    ) -> HookRecord:
        """Hand a hook over to another approver. to: ``user:NAME`` or ``role:NAME``. The note is the
        answer's reason.

        Raises AnswerRefused if the hook does not wait; Forbidden if the principal may not answer
        it; NotFound.
        """
        async with self._database.transaction("answer", by_key=True) as conn:
            locked = await self._lock_alone(conn, hook_id, answer, project)
            refusal = may_hand_over(locked.hook, answer, locked.hook.now)
            if refusal is not None:
                raise refusal
            await assign_hook(conn, locked.hook, to)
            note = f": {answer.reason}" if answer.reason else ""
            reason = f"{answer.by} handed {locked.hook.point} over to {to}{note}"
            entry = locked.entry("handed-over", data={"to": to})
            await _record(conn, locked, entry, "handed-over", reason, to=to)
            record = await read_hook(conn, hook_id, project)
        if record is None:
            raise no_hook(hook_id)
        return record

    async def unset(
        self, project: str, stack_id: UUID, resource_name: str, point: str, answer: Answer
    ) -> None:
        """Answer the hook that waits at a point of a resource, as Heat's `unset_hook` signal does.

        Raises Invalid (InvalidBreakPointHook) if no hook waits there, and as `answer` does.
        """
        known = [*(one.value for one in Point), DRIFT]
        if point not in known:
            raise _invalid_point(
                f'Invalid hook type "{point}" for resource "{resource_name}"', known
            )
        async with self._database.connection() as conn:
            hook_id = await find_waiting_hook(conn, stack_id, resource_name, point)
        if hook_id is None:
            raise _invalid_point(f'The "{point}" hook is not defined on "{resource_name}"', ())
        await self.answer(hook_id, answer, project=project)

    async def run_to(
        self, project: str, stack_id: UUID, path: str, answer: Answer
    ) -> Sequence[MissedBreakpoint]:
        """End stepping, continue the hooks that only stepping or breakpoints for debugging opened,
        and stop before the operations of one resource. path: from the stack: ``web/db``.

        Returns the nodes that have already passed the breakpoint. Raises NotFound if no node of
        the resource is pending; Invalid (NotSupported) if no traversal is under way.
        """
        async with self._database.transaction("answer", by_key=True) as conn:
            tree = await lock_stack_tree(conn, stack_id)
            locked = await self._traversals.lock(conn, project, stack_id)
            if locked.state not in UNDER_WAY:
                raise not_supported("Running to a resource", locked)
            nested = self_and_nested(tree)
            missed = await self._breakpoints.add_run_to(conn, locked, nested, path)
            hooks = await set_step_mode(conn, RUN_TO, tree)
            verdicts = [_verdict(one, answer, Decision.CONTINUE) for one in hooks]
            await self._apply(conn, verdicts, _credentials(verdicts, answer.credential))
        self._wake()
        paths = {one.id: one.path for one in tree}
        continued = {
            ("/".join(filter(None, (paths[one.stack_id], one.resource_name))), one.point)
            for one in hooks
        }
        return with_continued(missed, continued)

    async def _apply(
        self,
        conn: Connection,
        verdicts: Sequence[Verdict],
        credentials: Mapping[tuple[UUID, int], str],
    ) -> Sequence[Json]:
        """Write the verdicts. credentials: as `_credentials`."""
        steps = await apply(
            conn,
            verdicts,
            new_id=self._new_id,
            default_timeout=self._limits.default_timeout,
        )
        await self._traversals.keep_credentials(conn, credentials)
        return steps

    async def audit_log(self, hook: HookRecord) -> list[Entry]:
        """The audit log entries of a hook, oldest first."""
        async with self._database.connection() as conn:
            return await audit_log.read_log_of_hook(conn, hook.stack_id, hook.id)

    async def _check_data(self, hook: FoundHook, answer: Answer) -> DataCheck | None:
        """Validate the answer's data in a thread, before the stack is locked: it can take 0.5 s.

        Returns None for decisions that need no data, and if the hook asks for none.
        """
        if answer.decision not in RESUMING_DECISIONS or hook.ask is None:
            return None
        validate = partial(check_data, hook.ask, answer.data)
        return await self._traversals.thread_pool(validate, hook.project)

    async def _lock(self, conn: Connection, batch: AnswerBatch) -> Sequence[LockedAnswer]:
        """Lock the stacks, or the whole stack tree if the answer concerns that, and add the answers
        that have arrived meanwhile; returns the answers whose hooks exist."""
        first = batch.answers[0]
        tree = await lock_stack_tree(conn, first.stack_id) if first.tree else ()
        if not tree:
            await lock_stacks(conn, batch.stack_ids)
        batch.add_arrived()
        found = await read_locked_hooks(conn, [one.key for one in batch.answers])
        hooks = {one.id: one for one in found}
        return [
            LockedAnswer(hooks[one.hook_id], one.answer, tree, one.check)
            for one in batch.answers
            if one.hook_id in hooks
        ]

    async def _lock_alone(
        self, conn: Connection, hook_id: UUID, answer: Answer, project: str
    ) -> LockedAnswer:
        """Lock the hook's stack. Raises NotFound."""
        found = await find_hook(conn, hook_id, project)
        hooks = await lock_hooks(conn, [(found.stack_id, hook_id)]) if found else []
        if not hooks:
            raise no_hook(hook_id)
        return LockedAnswer(hooks[0], answer)

    async def _judge(self, conn: Connection, locked: LockedAnswer) -> Sequence[Verdict]:
        """Check the answer and return the verdicts to apply; none if it only has to be recorded.

        Raises AnswerRefused, Forbidden, Invalid; then nothing is written.
        """
        hook, answer = locked.hook, locked.answer
        if hook.rule.dry and hook.state is HookState.ANSWERED:
            check_right(hook, answer.by, answer.automation)
            await self._record_dry_run(conn, locked)
            return ()
        comparable = self._comparable(hook, answer)
        match judge(hook, comparable, locked.check, hook.now, self._limits):
            case FinalAnswer():
                return await self._decide(conn, locked)
            case Approval(missing=missing):
                reason = f"{answer.by} approved {hook.point}; approvals still required: {missing}"
                entry = locked.entry(answer.word)
                await _record(conn, locked, entry, "approved", reason, missing=missing)
            case DeadlineExtension(clock=clock):
                await write_clocks(conn, {(hook.stack_id, hook.id): clock})
                deadline = clock.deadline
                reason = f"{answer.by} is working on {hook.point}"
                entry = locked.entry("progress", data={"deadline": deadline})
                await _record(conn, locked, entry, "progress", reason, deadline=deadline)
            case RepeatedAnswer():
                pass
            case AnswerRefused() as refusal:
                raise refusal
        return ()

    async def _decide(self, conn: Connection, locked: LockedAnswer) -> Sequence[Verdict]:
        """Prepare the nodes and stepping modes for a decision; returns the verdicts to apply.

        Raises Invalid.
        """
        hook, answer = locked.hook, locked.answer
        if answer.how is StepKind.OUT and not any(one.level < 0 for one in locked.tree):
            remedy = "Answer step, continue or run."
            reason = "is not possible: this stack has no parent"
            raise Invalid([Finding("how", reason, remedy, "AnswerInvalid")])
        if answer.decision is Decision.PATCH:
            await patch_node(conn, hook, self._build_patch(hook, answer))
        if answer.how is StepKind.INTO:
            await step_modes.set_step_into(conn, hook)
        elif answer.decision is Decision.STEP:
            await step_modes.clear_node(conn, hook)
        mode_change = step_mode_change(answer.word, hook.rule)
        others = await set_step_mode(conn, mode_change, locked.tree)
        hook = _in_new_step_mode(hook, mode_change)
        return [
            _verdict(hook, answer, answer.decision, answer.how),
            *(_verdict(one, answer, mode_change.decision) for one in others if one.id != hook.id),
        ]

    def _comparable(self, hook: LockedHook, answer: Answer) -> Answer:
        """The answer; a repeated patch has its properties normalized as the stored patch has."""
        if answer.decision is Decision.PATCH and hook.state is HookState.ANSWERED:
            with contextlib.suppress(Invalid):  # an invalid patch cannot equal the stored one
                return replace(answer, properties=self._build_patch(hook, answer))
        return answer

    def _build_patch(self, hook: LockedHook, answer: Answer) -> dict[str, Json]:
        """The node's patch with the answer's properties, validated against the resource type.

        Raises Invalid.
        """
        schema, findings = self._registry.get(hook.type).schema, Findings()
        properties = dict(answer.properties or {})
        patchable = _patch_schema(schema, properties, hook.point, findings)
        checked = (
            check_resolved(patchable, properties, "properties", findings)
            if not findings.all
            else {}
        )
        if not findings.all:
            self._registry.check_properties(hook.type, checked, "properties", findings)
        findings.raise_if_any()
        return {**(hook.patched or {}), **checked}

    async def _record_refusal(self, conn: Connection, locked: LockedAnswer, reason: str) -> None:
        """Add an audit log entry for a forbidden answer: one for each principal and hook."""
        hook, answer = locked.hook, locked.answer
        entries = await audit_log.read_log_of_hook(conn, hook.stack_id, hook.id)
        if not any(one.kind == "refused" and _is_by(one, answer.by) for one in entries):
            data = {"decision": answer.decision}
            await audit_log.record(conn, [locked.entry("refused", reason=reason, data=data)])

    async def _record_dry_run(self, conn: Connection, locked: LockedAnswer) -> None:
        """Add the first decision for a dry-run rule to the audit log; it has no other effect."""
        kind = f"dry-{locked.answer.decision}"
        entries = await audit_log.read_log_of_hook(conn, locked.hook.stack_id, locked.hook.id)
        if not any(one.kind.startswith("dry-") for one in entries):
            await audit_log.record(conn, [locked.entry(kind)])


async def _record(
    conn: Connection, locked: LockedAnswer, entry: Entry, kind: str, reason: str, **data: Json
) -> None:
    """Record an answer that does not decide the hook: in the audit log, and as an event."""
    by, note = locked.answer.by.name, locked.answer.reason
    details = {**data, "by": by, "reason": note}
    await audit_log.record(conn, [entry])
    make_event = drift_event if about_drift(locked.hook) else hook_event
    event = make_event(locked.hook, f"headgate.hook.{kind}", reason, details)
    await record_events(conn, [event])


def _credentials(verdicts: Sequence[Verdict], credential: str) -> Mapping[tuple[UUID, int], str]:
    """The credential of an answer, by the traversal (stack ID, number) that it resumes: a
    traversal's credential is deleted while it waits. Empty if the answer has none."""
    if not credential:
        return {}
    return {(one.hook.stack_id, one.hook.traversal): credential for one in verdicts}


def _in_new_step_mode(hook: LockedHook, change: StepModeChange) -> LockedHook:
    """The hook, with its traversal's step mode after the change."""
    before = StepMode(hook.step_mode) if hook.step_mode else None
    now = change.own.get(before, before)
    return hook if now == before else replace(hook, step_mode=now)


def _is_by(entry: Entry, by: Principal) -> bool:
    return Principal(entry.principal, entry.by) == Principal(by.id, by.name)


def _verdict(
    hook: LockedHook, answer: Answer, decision: Decision, how: StepKind = StepKind.OVER
) -> Verdict:
    return Verdict(
        hook,
        Answered(decision, answer.by.name, answer.reason),
        answer.by,
        answer.channel,
        answer.reason,
        answer.data,
        answer.address,
        answer.digest,
        how,
    )


def _patch_schema(
    schema: TypeSchema, properties: dict[str, Json], point: str, findings: Findings
) -> TypeSchema:
    """The schema of these properties alone. Adds findings for those that a patch at this point
    cannot change."""
    known = schema.properties
    for name in properties:
        if name not in known and not schema.any_property:
            remedy = nearest(name, list(known)) or f"Known: {', '.join(sorted(known))}."
            findings.add(f"properties.{name}", f"is not a property of {schema.name}", remedy)
        elif name in known and point != Point.PRE_CREATE and not known[name].update_allowed:
            remedy = "Answer at the pre-create of a new resource, or update the template."
            findings.add(f"properties.{name}", "cannot be changed in place", remedy)
    return replace(schema, properties={name: known[name] for name in properties if name in known})


def _invalid_point(reason: str, known: Sequence[str]) -> Invalid:
    remedy = f"Acceptable hook types are: {', '.join(known)}." if known else ""
    return Invalid([Finding("", reason, remedy, "InvalidBreakPointHook")])


async def set_step_mode(
    conn: Connection, mode_change: StepModeChange, tree: Sequence[StackTreeMember]
) -> list[LockedHook]:
    """Set the step modes of the traversals; returns the waiting hooks to continue, locked.

    tree: the stacks of the change, locked.
    """
    await step_modes.set_step_modes(
        conn,
        [
            (one.id, one.traversal, mode_change.at(one.level)[one.step_mode])
            for one in tree
            if one.under_way and one.step_mode in mode_change.at(one.level)
        ],
    )
    running = [(one.id, one.traversal) for one in self_and_nested(tree) if one.under_way]
    if mode_change.ends_stepping(1):
        await step_modes.clear_all(conn, running)
    levels = {one.level for one in tree}
    await step_modes.clear_owners(
        conn,
        [
            (one.id, one.traversal)
            for one in tree
            if one.level <= 0 and one.level - 1 in levels  # the owner's stack is locked
            and one.under_way and mode_change.ends_stepping(one.level)
        ],
    )  # fmt: skip
    waiting = await read_waiting_hooks(conn, running)
    hooks = await lock_hooks(conn, waiting) if waiting else []
    return [one for one in hooks if mode_change.resumes(one.rule)]
