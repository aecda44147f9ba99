"""Carries one claimed node on to its next step: prepare it, call its operation, judge the outcome.

Each node has a guard of its own: whatever is raised for it fails it, and it alone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from inspect import isawaitable
from typing import NamedTuple
from uuid import UUID

import structlog
from structlog.contextvars import bound_contextvars
from structlog.typing import FilteringBoundLogger

from engine.node.inputs import Superseded
from engine.store.advance import MOST_LOST, TOO_LARGE, Claim, RefusedStep, Work
from engine.store.document_size import size_of
from engine.store.encryption import Sealer
from engine.store.fault_points import reach
from engine.tracing import Span, Tracer
from engine.types.contract import Outcome
from engine.types.registry import Registry
from engine.types.signal_urls import SignalUrls
from engine.words import Json, State
from engine.work.internal_error import Wreck, bare_failure, fail, report
from engine.work.job import Job, NodeInput, settle, settle_superseded, take_up
from engine.work.measures import Measures
from engine.work.operation_call import RAISED, Carry, Exchange, judge, start
from engine.work.prepare import Prepared
from engine.work.resource_size import within_quota, within_quota_before
from engine.work.retries import Retrying
from engine.work.step_queue import Decided, StepQueue, WaitingStep
from engine.work.worker_metrics import outcome_of, report_step

log: FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What operations are called with. sealer, exchange: open credentials. carry: for resources
    that hold a stack of their own. doors: where data is sent to resources. resource_bytes: the
    quota of a project."""

    registry: Registry
    retrying: Retrying
    default_timeout: timedelta
    resource_bytes: Callable[[str], int]
    new_id: Callable[[], UUID]
    sealer: Sealer | None
    exchange: Exchange
    carry: Carry | None
    doors: SignalUrls | None
    measures: Measures
    tracer: Tracer


class _Call(NamedTuple):
    """A type's operation that runs. began: by the loop's clock."""

    began: float
    span: Span


class NodeRunner:
    """held: the nodes that this process has; with a task, while an operation does I/O."""

    def __init__(self, around: Surroundings, queue: StepQueue, *, wake: Callable[[], None]) -> None:
        self._around = around
        self._queue = queue
        self._wake = wake
        self.held: dict[Claim, asyncio.Task[None] | None] = {}
        self._last_tries: set[Claim] = set()

    def running(self) -> list[asyncio.Task[None]]:
        return [task for task in self.held.values() if task is not None]

    @property
    def has_last_try(self) -> bool:
        """Whether it has a node that fails if its worker ends once more.

        Another node that ended workers must not run beside it: its failure would be counted twice.
        """
        self._last_tries &= self.held.keys()
        return bool(self._last_tries)

    def forget(self, but: Collection[Claim]) -> None:
        """Hold only these nodes from now on; the tasks of the others have ended."""
        self.held = {claim: task for claim, task in self.held.items() if claim in but}

    def give_up(self, work: Work) -> None:
        """Fail a claimed node whose documents were not read. One that is not at its end is left
        alone until its lease ends: it is out of the way of the others, and that counts."""
        with _named(work):
            if work.lost >= MOST_LOST:
                reason = (
                    f"it ended its worker {work.lost} times in a row, or ran until its lease was"
                    " over, and is not tried again; see the server's log"
                )
            elif work.size > TOO_LARGE:
                reason = (
                    f"what it reads is {work.size} bytes, which is more than can be read at once"
                )
            else:
                log.warning("node.left", lost=work.lost, remedy="It is claimed again later.")
                return
            log.error("node.given_up", lost=work.lost, bytes=work.size, type=work.type)
            self.held[work.key] = None
            self._queue.add(_waiting(bare_failure(Wreck(work), reason), Wreck(work)))

    def _tell_restart(self, work: Work) -> None:
        log.warning(
            "operation.restarted", type=work.type, operation=work.operation,
            operation_key=str(work.operation_key), attempt=work.restarts + 1,
        )  # fmt: skip
        self.measure(lambda measures: measures.restarted(work.type, work.operation))

    def carry_on(self, group: asyncio.TaskGroup, work: Work, claimed_at: float) -> None:
        """Decide the next step of a node; call its operation if that is where it is."""
        self.held[work.key] = None
        if work.lost == MOST_LOST - 1:
            self._last_tries.add(work.key)
        with _named(work):
            try:
                reach("worker.take_up", work.name)
                job, said = take_up(work, self._around.registry)
                if job.prepared is not None:
                    most = self._around.resource_bytes(work.project)
                    said = within_quota_before(job.prepared, said, most)
            except RAISED as error:
                self._broke(Wreck(work), error, "take_up")
                return
            if work.restarted:
                self._tell_restart(work)
            if said is not None:
                self._settle(job, said)
            elif job.prepared is not None:
                seconds = asyncio.get_running_loop().time() - claimed_at
                self.measure(lambda measures: measures.claimed(seconds))
                self._act(group, job, job.prepared)

    def _act(self, group: asyncio.TaskGroup, job: Job, prepared: Prepared) -> None:
        one = self._around
        try:
            reach("worker.start", job.work.name)
            call = self._begun(job.work)
            outcome = start(prepared, one.sealer, one.exchange, one.carry, one.doors)
            if isawaitable(outcome):
                task = group.create_task(self._await(job, prepared, outcome, call))
                self.held[job.work.key] = task
                return
        except RAISED as error:
            self._broke(Wreck(job.work, prepared), error, "start")
            return
        self._judge(job, prepared, outcome, call)

    def _begun(self, work: Work) -> _Call:
        span = self._around.tracer.begin(
            f"{work.operation} {work.type}", work.traceparent or "",
            stack_id=str(work.key.stack_id), traversal=work.key.traversal, resource=work.name,
        )  # fmt: skip
        return _Call(asyncio.get_running_loop().time(), span)

    async def _await(
        self, job: Job, prepared: Prepared, outcome: Awaitable[Outcome], call: _Call
    ) -> None:
        try:
            said = await outcome
            reach("worker.await", job.work.name)
        except RAISED as error:
            self.held[job.work.key] = None
            self._broke(Wreck(job.work, prepared), error, "await")
        else:
            self.held[job.work.key] = None
            self._judge(job, prepared, said, call)
        self._wake()

    def _judge(self, job: Job, prepared: Prepared, outcome: Outcome, call: _Call) -> None:
        try:
            reach("worker.judge", job.work.name)
            most = self._around.resource_bytes(job.work.project)
            said = judge(prepared, outcome, self._around.retrying)
            said = within_quota(prepared, said, most)
        except RAISED as error:
            call.span.end(outcome="failed")
            self._broke(Wreck(job.work, prepared, outcome), error, "judge")
            return
        seconds, word = asyncio.get_running_loop().time() - call.began, outcome_of(said.input)
        work = job.work
        self.measure(lambda measures: measures.operated(work.type, work.operation, word, seconds))
        call.span.end(outcome=word)
        self._settle(job, said, outcome)

    def _settle(self, job: Job, said: NodeInput, outcome: Outcome | None = None) -> None:
        one, wreck = self._around, Wreck(job.work, job.prepared, outcome)
        try:
            reach("worker.settle", job.work.name)
            step = settle(job, said, new_id=one.new_id, default_timeout=one.default_timeout)
            if step is None:
                raise RuntimeError("the node machine refuses this input")
            waiting = _waiting(step, wreck)
            waiting.decided = Decided(job, said)
        except RAISED as error:
            self._broke(wreck, error, "settle")
        else:
            self._queue.add(waiting)

    def _broke(self, wreck: Wreck, error: BaseException, stage: str) -> None:
        self.fail(wreck, report(error, self._around.new_id(), stage))

    def fail(self, wreck: Wreck, reason: str) -> None:
        """Fail a node, whatever its documents hold."""
        one = self._around
        try:
            reach("worker.fail", wreck.work.name)
            step = fail(wreck, reason, new_id=one.new_id, default_timeout=one.default_timeout)
        except RAISED as error:
            report(error, one.new_id(), "fail")
            step = bare_failure(wreck, reason)
        self._queue.add(_waiting(step, wreck))

    def refused(self, one: WaitingStep, error: Exception) -> None:
        """The database refuses a step that was written alone: fail its node, at last with nothing
        of what it holds. What cannot even be failed so is left to the end of its lease."""
        with _named(one.of.work):
            reason = report(error, self._around.new_id(), "write")
            if one.last:
                self.held.pop(one.claim, None)
                return
            waiting = _waiting(bare_failure(one.of, reason), one.of)
            waiting.last = True
            self._queue.set_apart([waiting])

    def superseded(self, one: WaitingStep, refused: RefusedStep) -> None:
        """A step is not written, as its traversal has ended: decide again, and write that with the
        next batch. If this process ends before, the operation is called again when the lease is
        over, with the same operation key."""
        around = self._around
        with _named(one.of.work):
            try:
                if one.decided is None:
                    raise RuntimeError("a step that opens no hook was refused")
                step = settle_superseded(
                    *one.decided,
                    Superseded(reason=refused.reason),
                    new_id=around.new_id,
                    default_timeout=around.default_timeout,
                )
                if step is None:
                    raise RuntimeError("the node machine refuses this input")
                waiting = _waiting(step, one.of)
            except RAISED as error:
                self._broke(one.of, error, "superseded")
            else:
                self._queue.add(waiting)

    def written(self, one: WaitingStep) -> None:
        """A step is durable."""
        self.held.pop(one.claim, None)
        self.measure(lambda measures: report_step(one.step, measures))

    def measure(self, tell: Callable[[Measures], None]) -> None:
        """What counts is no reason for a node to fail."""
        try:
            reach("worker.tell")
            tell(self._around.measures)
        except Exception as error:
            report(error, self._around.new_id(), "tell")


def _waiting(step: Json, wreck: Wreck) -> WaitingStep:
    """Raises what writing the step would raise."""
    size = size_of(step)
    if step["resource"] is not None:
        step["resource"]["bytes"] = size
    if step["state"] == State.RUNNING:  # its documents come back with the next claim
        work = wreck.work
        size = max(size, work.size + (size_of(work.inputs) if work.inputs else 0))
    return WaitingStep(step, size, wreck)


def _named(work: Work) -> AbstractContextManager[object]:
    """In every line of the log, also of tasks that are begun within: which node it is about."""
    return bound_contextvars(
        stack_id=str(work.key.stack_id), traversal=work.key.traversal, resource=work.name
    )
