"""Runs a claimed node to its next step: prepares it, calls its operation and judges the outcome.

An exception that a node raises fails this node only.
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
from engine.work.internal_error import NodeContext, bare_failure, fail, report
from engine.work.job import Job, NodeInput, prepare_claim, settle, settle_superseded
from engine.work.measures import Measures
from engine.work.operation_call import RAISED, Exchange, RunNestedOperation, judge, start
from engine.work.prepare import Prepared
from engine.work.resource_size import within_quota, within_quota_before
from engine.work.retries import Retrying
from engine.work.step_queue import Decided, StepQueue, WaitingStep
from engine.work.worker_metrics import outcome_of, report_step

log: FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """What a runner needs to call operations.

    sealer, exchange: open credentials. run_nested: runs operations of resources with a nested
    stack. signal_urls: make the URLs at which resources receive signals. resource_bytes: the quota
    of a project.
    """

    registry: Registry
    retrying: Retrying
    default_timeout: timedelta
    resource_bytes: Callable[[str], int]
    new_id: Callable[[], UUID]
    sealer: Sealer | None
    exchange: Exchange
    run_nested: RunNestedOperation | None
    signal_urls: SignalUrls | None
    measures: Measures
    tracer: Tracer


class _Call(NamedTuple):
    """A running operation. began: time of the event loop's clock."""

    began: float
    span: Span


class NodeRunner:
    """held: the claims of this process, with a task while an operation does I/O."""

    def __init__(
        self, settings: RunnerSettings, queue: StepQueue, *, wake: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._queue = queue
        self._wake = wake
        self.held: dict[Claim, asyncio.Task[None] | None] = {}
        self._last_tries: dict[Claim, float] = {}

    def running(self) -> list[asyncio.Task[None]]:
        return [task for task in self.held.values() if task is not None]

    @property
    def last_try_since(self) -> float | None:
        """When it claimed a node that fails if its worker ends once more, by the event loop's
        clock; None without such a node.

        A node that ends the worker at the same time would make it fail as well.
        """
        for claim in self._last_tries.keys() - self.held.keys():
            del self._last_tries[claim]
        return min(self._last_tries.values(), default=None)

    def retain(self, claims: Collection[Claim]) -> None:
        """Drop all other claims, whose tasks have ended."""
        self.held = {claim: task for claim, task in self.held.items() if claim in claims}

    def fail_unread(self, work: Work) -> None:
        """Fail a claimed node whose documents were not read, because it ended too many workers or
        is too large. Keep any other one until its lease ends, so that it does not delay the rest.
        """
        with _log_context(work):
            if work.lost >= MOST_LOST:
                reason = (
                    f"it ended its worker {work.lost} times in a row, or ran until its lease"
                    " expired, and is not retried; see the server's log"
                )
            elif work.size > TOO_LARGE:
                reason = f"its documents are {work.size} bytes, more than a worker can read at once"
            else:
                log.warning(
                    "node.left", lost=work.lost, remedy="None needed: it is claimed again later."
                )
                return
            log.error("node.given_up", lost=work.lost, bytes=work.size, type=work.type)
            self.held[work.key] = None
            self._queue.add(
                _waiting_step(bare_failure(NodeContext(work), reason), NodeContext(work))
            )

    def _report_restart(self, work: Work) -> None:
        log.warning(
            "operation.restarted", type=work.type, operation=work.operation,
            operation_key=str(work.operation_key), attempt=work.restarts + 1,
        )  # fmt: skip
        self.measure(lambda measures: measures.restarted(work.type, work.operation))

    def run_node(self, group: asyncio.TaskGroup, work: Work, claimed_at: float) -> None:
        """Decide the next step of a node, or call its operation in phase act."""
        self.held[work.key] = None
        if work.lost == MOST_LOST - 1:
            self._last_tries[work.key] = claimed_at
        with _log_context(work):
            try:
                reach("worker.prepare", work.name)
                job, node_input = prepare_claim(work, self._settings.registry)
                if job.prepared is not None:
                    most = self._settings.resource_bytes(work.project)
                    node_input = within_quota_before(job.prepared, node_input, most)
            except RAISED as error:
                self._fail_internally(NodeContext(work), error, "prepare")
                return
            if work.restarted:
                self._report_restart(work)
            if node_input is not None:
                self._settle(job, node_input)
            elif job.prepared is not None:
                seconds = asyncio.get_running_loop().time() - claimed_at
                self.measure(lambda measures: measures.claimed(seconds))
                self._execute(group, job, job.prepared)

    def _execute(self, group: asyncio.TaskGroup, job: Job, prepared: Prepared) -> None:
        settings = self._settings
        try:
            reach("worker.start", job.work.name)
            call = self._begin_call(job.work)
            outcome = start(
                prepared,
                settings.sealer,
                settings.exchange,
                settings.run_nested,
                settings.signal_urls,
            )
            if isawaitable(outcome):
                task = group.create_task(self._await(job, prepared, outcome, call))
                self.held[job.work.key] = task
                return
        except RAISED as error:
            self._fail_internally(NodeContext(job.work, prepared), error, "start")
            return
        self._judge(job, prepared, outcome, call)

    def _begin_call(self, work: Work) -> _Call:
        span = self._settings.tracer.begin(
            f"{work.operation} {work.type}", work.traceparent or "",
            stack_id=str(work.key.stack_id), traversal=work.key.traversal, resource=work.name,
        )  # fmt: skip
        return _Call(asyncio.get_running_loop().time(), span)

    async def _await(
        self, job: Job, prepared: Prepared, outcome: Awaitable[Outcome], call: _Call
    ) -> None:
        try:
            awaited = await outcome
            reach("worker.await", job.work.name)
        except RAISED as error:
            self.held[job.work.key] = None
            self._fail_internally(NodeContext(job.work, prepared), error, "await")
        else:
            self.held[job.work.key] = None
            self._judge(job, prepared, awaited, call)
        self._wake()

    def _judge(self, job: Job, prepared: Prepared, outcome: Outcome, call: _Call) -> None:
        try:
            reach("worker.judge", job.work.name)
            most = self._settings.resource_bytes(job.work.project)
            node_input = judge(prepared, outcome, self._settings.retrying)
            node_input = within_quota(prepared, node_input, most)
        except RAISED as error:
            call.span.end(outcome="failed")
            self._fail_internally(NodeContext(job.work, prepared, outcome), error, "judge")
            return
        seconds, outcome_name = (
            asyncio.get_running_loop().time() - call.began,
            outcome_of(node_input.input),
        )
        work = job.work
        self.measure(
            lambda measures: measures.operated(work.type, work.operation, outcome_name, seconds)
        )
        call.span.end(outcome=outcome_name)
        self._settle(job, node_input, outcome)

    def _settle(self, job: Job, node_input: NodeInput, outcome: Outcome | None = None) -> None:
        settings, context = self._settings, NodeContext(job.work, job.prepared, outcome)
        try:
            reach("worker.settle", job.work.name)
            step = settle(
                job, node_input, new_id=settings.new_id, default_timeout=settings.default_timeout
            )
            if step is None:
                raise RuntimeError("the node machine refuses this input")
            waiting = _waiting_step(step, context)
            waiting.decided = Decided(job, node_input)
        except RAISED as error:
            self._fail_internally(context, error, "settle")
        else:
            self._queue.add(waiting)

    def _fail_internally(self, context: NodeContext, error: BaseException, stage: str) -> None:
        self.fail(context, report(error, self._settings.new_id(), stage))

    def fail(self, context: NodeContext, reason: str) -> None:
        """Fail a node, whatever its documents contain."""
        settings = self._settings
        try:
            reach("worker.fail", context.work.name)
            step = fail(
                context, reason, new_id=settings.new_id, default_timeout=settings.default_timeout
            )
        except RAISED as error:
            report(error, settings.new_id(), "fail")
            step = bare_failure(context, reason)
        self._queue.add(_waiting_step(step, context))

    def refused(self, one: WaitingStep, error: Exception) -> None:
        """Fail the node of a step that the database refuses in a batch of its own.

        The failure carries none of its documents. If that is refused as well, the claim is dropped
        until its lease expires.
        """
        with _log_context(one.context.work):
            reason = report(error, self._settings.new_id(), "write")
            if one.last:
                self.held.pop(one.claim, None)
                return
            waiting = _waiting_step(bare_failure(one.context, reason), one.context)
            waiting.last = True
            self._queue.set_apart([waiting])

    def superseded(self, one: WaitingStep, refused: RefusedStep) -> None:
        """Decide again on a step that was refused because its traversal has ended.

        The new step is in the next batch. If this process ends before it is written, the operation
        is called again with the same operation key when the lease expires.
        """
        settings = self._settings
        with _log_context(one.context.work):
            try:
                if one.decided is None:
                    raise RuntimeError("the store refused a step that opens no hook")
                step = settle_superseded(
                    *one.decided,
                    Superseded(reason=refused.reason),
                    new_id=settings.new_id,
                    default_timeout=settings.default_timeout,
                )
                if step is None:
                    raise RuntimeError("the node machine refuses this input")
                waiting = _waiting_step(step, one.context)
            except RAISED as error:
                self._fail_internally(one.context, error, "superseded")
            else:
                self._queue.add(waiting)

    def written(self, one: WaitingStep) -> None:
        """Release the claim of a step that is durable, and count it."""
        self.held.pop(one.claim, None)
        self.measure(lambda measures: report_step(one.step, measures))

    def measure(self, record: Callable[[Measures], None]) -> None:
        """Record a metric. An exception is logged and fails no node."""
        try:
            reach("worker.measure")
            record(self._settings.measures)
        except Exception as error:
            report(error, self._settings.new_id(), "measure")


def _waiting_step(step: Json, context: NodeContext) -> WaitingStep:
    """Encodes the step, to measure it. Raises what writing the step would raise."""
    size = size_of(step)
    if step["resource"] is not None:
        step["resource"]["bytes"] = size
    if step["state"] == State.RUNNING:  # the next claim returns its documents
        work = context.work
        size = max(size, work.size + (size_of(work.inputs) if work.inputs else 0))
    return WaitingStep(step, size, context)


def _log_context(work: Work) -> AbstractContextManager[object]:
    """Adds the node to every log line, also of tasks that start within."""
    return bound_contextvars(
        stack_id=str(work.key.stack_id), traversal=work.key.traversal, resource=work.name
    )
