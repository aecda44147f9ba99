"""Runs a claimed node to its next step: prepares it, calls its operation and judges the outcome.

An exception that a node raises fails this node only.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from inspect import isawaitable
from typing import NamedTuple
from uuid import UUID

import structlog
from structlog.contextvars import bind_contextvars, reset_contextvars
from structlog.typing import FilteringBoundLogger

from engine.store.connection import size_of
from engine.store.encryption.secret_values import Keyring
from engine.store.fault_points import reach
from engine.store.maintenance.failover_losses import StartedOperation
from engine.store.traversals.advance import (
    TOO_LARGE,
    Claim,
    RefusedStep,
    Work,
    is_given_up,
    is_last_try,
)
from engine.tracing import Span, Tracer
from engine.types.contract import Outcome
from engine.types.registry import TypeRegistry
from engine.types.signal_urls import SignalUrls
from engine.words import Json, State
from engine.work.nodes.internal_error import NodeContext, bare_failure, fail, report
from engine.work.nodes.job import Job, NodeInput, decide_again, decide_step, prepare_claim
from engine.work.nodes.operation_call import (
    OUTCOMES,
    RAISED,
    Exchange,
    OperationRetries,
    RunNestedOperation,
    judge,
    start,
)
from engine.work.nodes.prepare import PreparedNode
from engine.work.nodes.resource_size import check_size, check_size_before
from engine.work.nodes.runs import LaterNodes, LaterStep, Runs
from engine.work.nodes.step_queue import StepOrigin, StepQueue, WaitingStep
from engine.work.worker_metrics import WorkerMetrics, outcome_of, report_step

log: FilteringBoundLogger = structlog.get_logger()

#: Number of operations that are compared with the database after a failover: the last ones. Those
#: that ended are compared for so many seconds.
MAX_STARTED, STARTED_SECONDS = 2_000, 600.0


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """What a runner needs to call operations.

    keyring, exchange: open credentials. run_nested: runs operations of resources with a nested
    stack. signal_urls: make the URLs at which resources receive signals. resource_bytes: the quota
    of a project.
    """

    registry: TypeRegistry
    retrying: OperationRetries
    default_timeout: timedelta
    resource_bytes: Callable[[str], int]
    new_id: Callable[[], UUID]
    keyring: Keyring | None
    exchange: Exchange
    run_nested: RunNestedOperation | None
    signal_urls: SignalUrls | None
    metrics: WorkerMetrics
    tracer: Tracer


class _Call(NamedTuple):
    """A running operation. began: time of the event loop's clock."""

    began: float
    span: Span


class NodeRunner:
    """claims: those of this process, with a task while an operation does I/O."""

    def __init__(
        self, settings: RunnerSettings, queue: StepQueue, *, wake: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._queue = queue
        self._wake = wake
        self.claims: dict[Claim, asyncio.Task[None] | None] = {}
        self._started: deque[tuple[float, StartedOperation]] = deque(maxlen=MAX_STARTED)
        self._last_tries: dict[Claim, float] = {}
        self._interruptible: dict[Claim, asyncio.Future[Outcome]] = {}
        self._runs = Runs(
            settings.registry,
            settings.retrying,
            settings.resource_bytes,
            settings.new_id,
            settings.default_timeout,
        )

    def interrupt(self, claim: Claim) -> None:
        """Interrupt the cancelled operation of a claim, if its type is interruptible: its call is
        cancelled, and it is called again to end."""
        call = self._interruptible.pop(claim, None)
        if call is not None:
            call.cancel()

    def running(self) -> list[asyncio.Task[None]]:
        return [task for task in self.claims.values() if task is not None]

    @property
    def last_try_since(self) -> float | None:
        """When it claimed a node that fails if its worker ends once more, by the event loop's
        clock; None without such a node.

        A node that ends the worker at the same time would make it fail as well.
        """
        for claim in self._last_tries.keys() - self.claims.keys():
            del self._last_tries[claim]
        return min(self._last_tries.values(), default=None)

    def retain(self, claims: Collection[Claim]) -> None:
        """Drop all other claims, whose tasks have ended."""
        self.claims = {claim: task for claim, task in self.claims.items() if claim in claims}

    def fail_unread(self, work: Work) -> None:
        """Fail a claimed node whose documents were not read because too many of its workers ended
        or it is too large. Keep any other one until its lease ends, so that it does not delay the
        rest.
        """
        with _LogContext(work):
            if is_given_up(work.expired_leases):
                reason = (
                    f"its worker ended, or its lease expired, {work.expired_leases} times in a row;"
                    " it is not retried (see the server's log)"
                )
            elif work.size > TOO_LARGE:
                reason = f"its documents are {work.size} bytes, more than a worker can read at once"
            else:
                log.warning(
                    "node.returned",
                    expired_leases=work.expired_leases,
                    remedy="No action needed: a worker claims the node again later.",
                )
                return
            log.error(
                "node.given_up", expired_leases=work.expired_leases, bytes=work.size, type=work.type
            )
            self._take(work)
            self._queue.add(
                _waiting_step(bare_failure(NodeContext(work), reason), NodeContext(work))
            )

    def _report_restart(self, work: Work) -> None:
        log.warning(
            "operation.restarted", type=work.type, operation=work.operation,
            operation_key=str(work.operation_key), attempt=work.restarts + 1,
        )  # fmt: skip
        self.measure(lambda metrics: metrics.record_restart(work.type, work.operation))

    def run_node(
        self,
        group: asyncio.TaskGroup,
        work: Work,
        claimed_at: float,
        later: LaterNodes | None = None,
    ) -> None:
        """Decide the next step of a node, or call its operation in phase `execute`.

        later: nodes that may be executed after it, in a run.
        """
        self._take(work)
        if is_last_try(work.expired_leases):
            self._last_tries[work.key] = claimed_at
        with _LogContext(work):
            try:
                reach("worker.prepare", work.name)
                job, node_input = prepare_claim(work, self._settings.registry)
                if job.prepared is not None:
                    max_bytes = self._settings.resource_bytes(work.project)
                    node_input = check_size_before(job.prepared, node_input, max_bytes)
            except RAISED as error:
                self._fail_internally(NodeContext(work), error, "prepare")
                return
            if work.restarted:
                self._report_restart(work)
            if node_input is not None:
                self._decide(job, node_input)
            elif job.prepared is not None:
                seconds = asyncio.get_running_loop().time() - claimed_at
                self.measure(lambda metrics: metrics.record_claim(seconds))
                self._execute(group, job, job.prepared, later)

    def _take(self, work: Work) -> None:
        self._queue.accept(work)
        self.claims[work.key] = None

    async def _await_outcome(self, prepared: PreparedNode, outcome: Awaitable[Outcome]) -> Outcome:
        """Await an operation. One that is interrupted is called again, to end."""
        if not prepared.type.interruptible:
            return await outcome
        claim, work = prepared.work.key, prepared.work
        call = asyncio.ensure_future(outcome)
        self._interruptible[claim] = call
        try:
            return await call
        except asyncio.CancelledError:
            if claim in self._interruptible:  # this task was cancelled instead
                raise
        finally:
            self._interruptible.pop(claim, None)
        work.cancelled = True
        again = self._start(prepared)
        return await again if isawaitable(again) else again

    def _start(self, prepared: PreparedNode) -> Outcome | Awaitable[Outcome]:
        settings = self._settings
        return start(
            prepared,
            settings.keyring,
            settings.exchange,
            settings.run_nested,
            settings.signal_urls,
        )

    def _execute(
        self,
        group: asyncio.TaskGroup,
        job: Job,
        prepared: PreparedNode,
        later: LaterNodes | None,
    ) -> None:
        try:
            reach("worker.start", job.work.name)
            call = self._begin_call(job.work)
            outcome = self._start(prepared)
            if not isinstance(outcome, OUTCOMES) and isawaitable(outcome):
                self._note_started(job.work)
                task = group.create_task(self._await(job, prepared, outcome, call))
                self.claims[job.work.key] = task
                return
        except RAISED as error:
            self._fail_internally(NodeContext(job.work, prepared), error, "start")
            return
        self._judge(job, prepared, outcome, call, later)

    def _note_started(self, work: Work) -> None:
        if work.operation_key is None:
            return
        one = StartedOperation(
            claim=work.key,
            operation_key=work.operation_key,
            project=work.project,
            stack=work.stack_name,
            resource=work.name,
            type=work.type,
            operation=work.operation,
        )
        self._started.append((asyncio.get_running_loop().time(), one))

    @property
    def started(self) -> list[StartedOperation]:
        """Operations with I/O that run or that started in the last minutes, oldest first."""
        since = asyncio.get_running_loop().time() - STARTED_SECONDS
        return [one for at, one in self._started if at > since or one.claim in self.claims]

    def abandon(self, claims: Collection[Claim]) -> None:
        """Stop these operations: the database does not know their claims."""
        abandoned = {*claims}
        for claim in abandoned:
            task = self.claims.pop(claim, None)
            if task is not None:
                task.cancel()
        kept = (pair for pair in self._started if pair[1].claim not in abandoned)
        self._started = deque(kept, maxlen=MAX_STARTED)
        self._queue.drop(abandoned)

    def _begin_call(self, work: Work) -> _Call:
        return _Call(asyncio.get_running_loop().time(), self._begin_span(work))

    def _begin_span(self, work: Work, seconds_ago: float = 0.0) -> Span:
        return self._settings.tracer.begin(
            f"{work.operation} {work.type}", work.traceparent or "", seconds_ago=seconds_ago,
            stack_id=str(work.key.stack_id), traversal=work.key.traversal, resource=work.name,
        )  # fmt: skip

    async def _await(
        self, job: Job, prepared: PreparedNode, outcome: Awaitable[Outcome], call: _Call
    ) -> None:
        try:
            awaited = await self._await_outcome(prepared, outcome)
            reach("worker.await", job.work.name)
        except RAISED as error:
            self.claims[job.work.key] = None
            self._fail_internally(NodeContext(job.work, prepared), error, "await")
        else:
            self.claims[job.work.key] = None
            self._judge(job, prepared, awaited, call)
        self._wake()

    def _judge(
        self,
        job: Job,
        prepared: PreparedNode,
        outcome: Outcome,
        call: _Call,
        later: LaterNodes | None = None,
    ) -> None:
        try:
            reach("worker.judge", job.work.name)
            max_bytes = self._settings.resource_bytes(job.work.project)
            node_input = judge(prepared, outcome, self._settings.retrying)
            node_input = check_size(prepared, node_input, max_bytes)
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
            lambda metrics: metrics.record_operation(
                work.type, work.operation, outcome_name, seconds
            )
        )
        call.span.end(outcome=outcome_name)
        self._decide(job, node_input, outcome, later)

    def _decide(
        self,
        job: Job,
        node_input: NodeInput,
        outcome: Outcome | None = None,
        later: LaterNodes | None = None,
    ) -> None:
        settings, context = self._settings, NodeContext(job.work, job.prepared, outcome)
        try:
            reach("worker.decide", job.work.name)
            step = decide_step(
                job, node_input, new_id=settings.new_id, default_timeout=settings.default_timeout
            )
            if step is None:
                raise RuntimeError("the node machine refuses this input")
            waiting = _waiting_step(step, context)
            waiting.decided = StepOrigin(job, node_input)
            if later is not None:
                waiting.add_later(self._runs.execute(job, step, later))
        except RAISED as error:
            self._fail_internally(context, error, "decide")
        else:
            self._queue.add(waiting)

    def _fail_internally(self, context: NodeContext, error: BaseException, stage: str) -> None:
        self.fail(context, report(error, self._settings.new_id(), stage))

    def fail(self, context: NodeContext, reason: str) -> None:
        """Fail a node, also if its documents cannot be encoded."""
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

    def fail_refused(self, one: WaitingStep, error: Exception) -> None:
        """Fail the node of a step that the database refuses in a batch of its own.

        The failure carries none of its documents. If that is refused as well, the claim is dropped
        until its lease expires.
        """
        with _LogContext(one.context.work):
            reason = report(error, self._settings.new_id(), "write")
            if one.last:
                self.claims.pop(one.claim, None)
                return
            waiting = _waiting_step(bare_failure(one.context, reason), one.context)
            waiting.last = True
            self._queue.set_apart([waiting])

    def decide_again(self, one: WaitingStep, refused: RefusedStep) -> None:
        """Decide again on a step that was refused (`RefusedStep`).

        The new step is in the next batch. If this process ends before it is written, the operation
        is called again with the same operation key when the lease expires.
        """
        settings = self._settings
        with _LogContext(one.context.work):
            try:
                if one.decided is None:
                    raise RuntimeError("the store refused a step that cannot be refused")
                step = decide_again(
                    *one.decided,
                    refused,
                    new_id=settings.new_id,
                    default_timeout=settings.default_timeout,
                )
                if step is None:
                    raise RuntimeError("the node machine refuses this input")
                waiting = _waiting_step(step, one.context)
                waiting.decided = one.decided
            except RAISED as error:
                self._fail_internally(one.context, error, "superseded")
            else:
                self._queue.add(waiting)

    def release_written(self, one: WaitingStep, *, alone: bool = False) -> None:
        """Release the claim of a step that is durable, and count it. alone: the later nodes of its
        run were not written."""
        self.claims.pop(one.claim, None)
        self.measure(lambda metrics: report_step(one.step, metrics))
        for later in () if alone else one.later:
            self._report_later(later)

    def _report_later(self, one: LaterStep) -> None:
        """Count and trace an operation that was executed in a run."""
        work = one.work
        now = asyncio.get_running_loop().time()
        self.measure(
            lambda metrics: metrics.record_operation(work.type, work.operation, "done", one.seconds)
        )
        self.measure(lambda metrics: report_step(one.step, metrics))
        span = self._begin_span(work, seconds_ago=now - one.began)
        span.end(outcome="done")

    def measure(self, record: Callable[[WorkerMetrics], None]) -> None:
        """Record a metric. An exception is logged and fails no node."""
        try:
            reach("worker.measure")
            record(self._settings.metrics)
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


class _LogContext:
    """Adds a node to every log line, also of tasks that start within.

    Cheaper than `bound_contextvars`, which copies all variables for each node.
    """

    __slots__ = ("_tokens", "_work")

    def __init__(self, work: Work) -> None:
        self._work = work

    def __enter__(self) -> None:
        key = self._work.key
        self._tokens = bind_contextvars(
            stack_id=str(key.stack_id), traversal=key.traversal, resource=self._work.name
        )

    def __exit__(self, *_: object) -> None:
        reset_contextvars(**self._tokens)
