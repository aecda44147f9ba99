"""The worker: claims nodes, decides their steps and calls their operations.

Any number of workers share one database. A lane is a loop around one call of the store
(`advance`): it passes in the steps decided since the last call and gets back the nodes to run next.
Operations that only compute are called by the lane. Operations that do I/O run as tasks, bounded in
number, and queue their steps for the next lane. A node that waits for a hook, a timer or another
node occupies no worker.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from engine.back_off import BackOff
from engine.errors import Unavailable
from engine.store.database import Database
from engine.store.database_errors import DataFault, classify_error
from engine.store.encryption.secret_values import Keyring
from engine.store.fault_points import reach
from engine.store.maintenance.failover_losses import StartedOperation
from engine.store.maintenance.processes import OtherEngines
from engine.store.traversals.advance import (
    BATCH_BYTES,
    UNLABELLED,
    UNREAD,
    AdvanceResult,
    advance,
    next_due,
    release,
)
from engine.tracing import Tracer
from engine.types.registry import TypeRegistry
from engine.types.signal_urls import SignalUrls
from engine.words import Json
from engine.work.nodes.claim_limits import ClaimLimits
from engine.work.nodes.claim_pace import ClaimPace
from engine.work.nodes.internal_error import report
from engine.work.nodes.lane_signal import LaneSignal
from engine.work.nodes.lease_renewal import LeaseRenewal
from engine.work.nodes.node_runner import NodeRunner, RunnerSettings
from engine.work.nodes.operation_call import Exchange, OperationRetries, RunNestedOperation
from engine.work.nodes.runs import RUN_SECONDS, LaterNodes
from engine.work.nodes.step_queue import StepQueue, WaitingStep
from engine.work.nodes.traversal_finisher import TraversalFinisher
from engine.work.worker_metrics import WorkerMetrics

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds before a lane repeats after an error.
BACK_OFF = 1.0
#: Seconds that a lane sleeps if work is overdue but locked.
OVERDUE_SLEEP = BackOff(0.02, 0.32)
#: Bytes that one resource may compute, without a quota.
RESOURCE_BYTES = 4_194_304
#: Seconds. A claim that is not released counts as lost, as if its process had died.
RELEASE_TIMEOUT = 2.0
#: How often a step in a batch of its own may fail with an error that it can have caused. All lanes
#: pause after each error, so a few tries delay other work by seconds.
TRIES = {DataFault.UNLIKELY: 5, DataFault.POSSIBLE: 2}
#: How many claims may fail in a row before smaller ones look for the node at fault.
TOLERATED = {DataFault.UNLIKELY: 5}


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """batch: nodes that a lane claims at once. operations: concurrent operations with I/O. labels:
    of the nodes that it executes; "": those without a label."""

    batch: int
    workers: int
    lease: timedelta
    poll: timedelta
    operations: int
    drain: timedelta
    default_timeout: timedelta
    retrying: OperationRetries
    labels: Sequence[str] = UNLABELLED


def sleep_seconds(due: float | None, overdue: int, max_sleep: float) -> float:
    """Return how long an idle lane sleeps if no signal wakes it.

    due: seconds until work is due; None: none is planned. overdue: how often in a row overdue work
    was locked; each time doubles the sleep.
    """
    if due is None:
        return max_sleep
    return min(max_sleep, max(due, OVERDUE_SLEEP.ceiling(overdue)))


class Worker:
    def __init__(
        self,
        database: Database,
        registry: TypeRegistry,
        settings: WorkerSettings,
        *,
        name: str,
        new_id: Callable[[], UUID],
        finisher: TraversalFinisher,
        keyring: Keyring | None = None,
        exchange: Exchange = str,
        run_nested: RunNestedOperation | None = None,
        signal_urls: SignalUrls | None = None,
        resource_bytes: Callable[[str], int] = lambda _: RESOURCE_BYTES,
        metrics: WorkerMetrics | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        """keyring, exchange: open credentials. run_nested: runs operations of resources with a
        nested stack. signal_urls: make the URLs at which resources receive signals.
        resource_bytes: bytes that one resource of a project may compute.
        """
        self._finisher = finisher
        self._database = database
        self._settings = settings
        self._name = name
        self._new_id = new_id
        self._wake = LaneSignal()
        self._served = ""
        self._gathering = 0  # number of lanes that are about to claim
        self._many_stacks = False  # the last claim returned all due nodes, of several stacks
        self._pace = ClaimPace()  # by the loop's clock
        self._turn: asyncio.TimerHandle | None = None  # after a notification
        self._has_turn = False  # the lane that is woken claims if work is due
        self._queue = StepQueue(settings.batch)
        self._limits = ClaimLimits(
            settings.batch, settings.operations, settings.lease.total_seconds()
        )
        self._run_types = registry.computing_types()
        self._runner = NodeRunner(
            RunnerSettings(
                registry=registry,
                retrying=settings.retrying,
                default_timeout=settings.default_timeout,
                resource_bytes=resource_bytes,
                new_id=new_id,
                keyring=keyring,
                exchange=exchange,
                run_nested=run_nested,
                signal_urls=signal_urls,
                metrics=metrics or WorkerMetrics(),
                tracer=tracer or Tracer(),
            ),
            self._queue,
            wake=self.wake,
        )
        self._renewal = LeaseRenewal(
            database, self._runner, self._queue, lease=settings.lease, new_id=new_id
        )

    def wake(self) -> None:
        """Claim now: a node became ready. One lane does, and wakes another if there is more."""
        self._has_turn = False
        self._wake_lane()

    def _wake_lane(self) -> None:
        if not self._gathering or self._queue:  # else a lane is about to claim
            self._wake.set()

    def wake_in_turn(self) -> None:
        """Claim in the turn of this process, if work is due then: PostgreSQL has notified all
        processes of the same work, also this one of what it did itself. A claim that begins before
        is one of it, too."""
        seconds = self._pace.seconds_to_turn
        if not seconds:
            self._take_turn()
        elif self._turn is None:
            self._turn = asyncio.get_running_loop().call_later(seconds, self._take_turn)

    def _take_turn(self) -> None:
        self._turn, self._has_turn = None, True
        self._wake_lane()

    def _end_turn(self) -> None:
        self._has_turn = False
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None

    def set_other_engines(self, others: OtherEngines) -> None:
        """others: processes that claim the same nodes."""
        self._pace.other_engines, self._pace.earlier_engines = others.count, others.earlier

    def check_cancelled(self) -> None:
        """Interrupt cancelled operations now: some were cancelled while a worker called them."""
        self._renewal.check_now()

    @property
    def started(self) -> Sequence[StartedOperation]:
        """The last operations of this process with effects outside of the database."""
        return self._runner.started

    def abandon(self, operations: Sequence[StartedOperation]) -> None:
        """Stop operations that the database does not know after a failover; their results are not
        written."""
        self._runner.abandon([one.claim for one in operations])

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, then wait for running operations up to `drain`.

        Operations cancelled after that are called again, by any worker, when their lease expires.
        Raises an error that no guard of a lane or node has caught. It may then be called again:
        waiting steps are written. Other nodes keep their lease and count as lost, as if the process
        had died, so that a node that ends its worker each time fails.
        """
        try:
            await self._run(stop)
        except BaseException:
            waiting = {one.claim for one in self._queue}
            self._runner.retain(waiting)
            raise
        with suppress(Exception):
            async with asyncio.timeout(RELEASE_TIMEOUT), self._database.connection() as conn:
                await release(conn, [*self._runner.claims])

    async def _run(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            renewing = group.create_task(self._renewal.run())
            workers = [
                group.create_task(self._lane(group, stop)) for _ in range(self._settings.workers)
            ]
            await stop.wait()
            self._wake.set_all()
            await asyncio.wait(workers, timeout=self._settings.drain.total_seconds())
            renewing.cancel()
            for task in (*workers, *self._runner.running()):
                task.cancel()

    async def _lane(self, group: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        overdue = 0
        while True:
            if self._many_stacks or not self._queue:
                await self._gather(stop)
            self._wake.clear()
            batch, alone = self._queue.take()
            want = 0 if alone or stop.is_set() else self._free_capacity()
            advanced: AdvanceResult | None = None
            try:
                if batch or want:
                    advanced = await self._round(group, batch, want)
            except Exception as error:
                self._recover(batch, want, error)
                await asyncio.sleep(BACK_OFF)
                continue
            if self._queue or (advanced is not None and _may_leave_more(advanced, want)):
                continue
            if stop.is_set() and not self._runner.claims:
                self._wake.set_all()
                return
            overdue = await self._sleep(advanced, overdue)

    async def _gather(self, stop: asyncio.Event) -> None:
        """Let due work accumulate after a claim: see claim_pace.py. The steps of a claim with nodes
        of one stack, or of a full one, are written at once.
        """
        now = asyncio.get_running_loop().time
        self._gathering += 1
        try:
            if (seconds := self._pace.seconds_to_write(now())) > 0:
                await asyncio.sleep(seconds)
            if self._queue or stop.is_set():
                return
            if (seconds := self._pace.seconds_to_claim(now())) > 0:
                self._wake.clear()
                await self._wake.wait(seconds)  # steps to write end it
        finally:
            self._gathering -= 1

    def _recover(self, batch: Sequence[WaitingStep], want: int, error: Exception) -> None:
        """Keep a batch that was not written, or split it to find the step or claim at fault."""
        how = classify_error(error)
        if isinstance(error, Unavailable):
            log.warning("worker.unavailable", reason=str(error), steps=len(batch))
        elif how is not DataFault.CERTAIN or len(batch) != 1:
            report(error, self._new_id(), f"batch of {len(batch)} steps, {want} nodes to claim")
        if not batch and how is not DataFault.NONE:
            self._limits.record_failed_claim(want, tolerated=TOLERATED.get(how, 0))
        if how is DataFault.NONE or not batch:
            self._queue.put_back(batch)
        elif len(batch) > 1:
            self._queue.set_apart(batch)
        else:
            self._recover_one(batch[0], error, how)

    def _recover_one(self, one: WaitingStep, error: Exception, how: DataFault) -> None:
        if one.later:
            one.drop_later()  # one of these may be at fault
            self._queue.set_apart([one])
            return
        one.tries += 1
        if one.tries < TRIES.get(how, 0):
            self._queue.set_apart([one])
        else:
            self._runner.fail_refused(one, error)

    def _free_capacity(self) -> int:
        now = asyncio.get_running_loop().time()
        running = len(self._runner.running())
        return self._limits.free_capacity(running, self._runner.last_try_since, now)

    async def _round(
        self, group: asyncio.TaskGroup, batch: Sequence[WaitingStep], want: int
    ) -> AdvanceResult:
        """Write steps, claim nodes and run them.

        Raises only if no step of the batch is written.
        """
        now = asyncio.get_running_loop().time
        began, last_try = now(), self._runner.last_try_since
        with self._limits.may_claim_suspects(want, last_try, began) as suspects:
            advanced = await self._advance(
                [document for one in batch for document in one.documents()], want, suspects=suspects
            )
            if _may_leave_more(advanced, want):
                self.wake()
            refused = {one.key: one for one in advanced.refused}
            for one in batch:
                if one.claim in refused:
                    self._runner.decide_again(one, refused[one.claim])
                else:
                    self._runner.release_written(one, alone=one.claim in advanced.alone)
            if advanced.ends:
                await self._finisher.finish(advanced.ends)
            self._run_nodes(group, advanced, began)
        if last_try is not None and self._runner.last_try_since is None:
            self._limits.record_last_try(last_try, now())
            self.wake()
        return advanced

    def _run_nodes(self, group: asyncio.TaskGroup, advanced: AdvanceResult, began: float) -> None:
        before = len(self._runner.running())
        later = (
            LaterNodes(advanced.later, asyncio.get_running_loop().time() + RUN_SECONDS)
            if advanced.later
            else None
        )
        for work in advanced.unread:
            self._runner.fail_unread(work)
        for work in advanced.work:
            if self._lease_expired(began):
                break
            self._runner.run_node(group, work, began, later)
        if advanced.work:
            self._limits.record_started(len(self._runner.running()) - before)

    async def _advance(self, steps: Sequence[Json], want: int, *, suspects: bool) -> AdvanceResult:
        reach("advance.before")
        began = asyncio.get_running_loop().time()
        max_bytes = BATCH_BYTES if self._limits.reads_documents else UNREAD
        if want:
            self._end_turn()
        async with self._database.connection() as conn:
            advanced = await advance(
                conn, self._name, self._settings.lease, want, steps, self._served, max_bytes,
                suspects=suspects, run_types=self._run_types if self._limits.claims_runs else (),
                labels=self._settings.labels,
            )  # fmt: skip
        reach("advance.after")
        if want:
            now = asyncio.get_running_loop().time()
            self._pace.record_claim(began, now)
            stacks = {work.key.stack_id for work in advanced.work}
            self._many_stacks = len(stacks) > 1 and len(advanced.work) < want
            self._limits.record_claim()
        self._served = advanced.turn or self._served
        return advanced

    def _lease_expired(self, began: float) -> bool:
        """Return whether a lease taken at `began` may have expired, so that another worker may have
        claimed the nodes: the process was suspended or advanced no CPU time.
        """
        expired = asyncio.get_running_loop().time() - began >= self._settings.lease.total_seconds()
        if expired:
            log.warning("lease.expired", remedy="No action needed: another worker runs the nodes.")
        return expired

    async def _sleep(self, last: AdvanceResult | None, overdue: int) -> int:
        """Sleep until woken, until the next timer or lease is due, or for the poll interval. In
        a turn of this process, sleep again if earlier ones have left nothing. Asking for the time
        of due work costs a tenth of a claim that finds none.

        last: of this lane, if it has just claimed all due work. overdue: how often in a row all
        overdue work was locked by other transactions, which wake this lane when they leave work;
        returns the new number.
        """
        max_sleep = self._settings.poll.total_seconds()
        due = await self._next_due(last)
        if last is not None and not last.idle and due is not None and due <= 0:
            return 0  # it became due since the claim
        overdue = overdue + 1 if due is not None and due <= 0 else 0
        while await self._wake.wait(sleep_seconds(due, overdue, max_sleep)):
            if not self._has_turn or self._queue:
                return 0
            self._has_turn, overdue = False, 0
            due = await self._next_due(None)
            if due is not None and due <= 0:
                return 0
        return overdue

    async def _next_due(self, last: AdvanceResult | None) -> float | None:
        try:
            reach("worker.rest")
            if last is not None and last.idle:
                return last.due_in
            async with self._database.connection() as conn:
                return await next_due(conn, self._settings.labels)
        except Unavailable as error:
            log.warning("worker.unavailable", reason=str(error))
        except Exception as error:
            report(error, self._new_id(), "rest")
        return BACK_OFF


def _may_leave_more(advanced: AdvanceResult, want: int) -> bool:
    """Return whether a claim reached one of its limits, so that another lane may find more work."""
    return not advanced.idle and (advanced.turn is not None or len(advanced.work) >= want > 0)
