"""The worker: claim, decide, settle, act. Any number of them work on one database.

A lane is a loop around one call of the store: it hands in what was decided since (`steps`), and
gets back the nodes it is to carry on with. Operations that compute are called right there;
operations that do I/O run as tasks, bounded in number, and hand their outcome to whichever lane
comes round next. While a node waits, for a hook, a timer or another node, nothing of it is here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog
from structlog.contextvars import bound_contextvars
from structlog.typing import FilteringBoundLogger

from engine.errors import Unavailable
from engine.store.advance import (
    BATCH_BYTES,
    UNREAD,
    Advanced,
    End,
    advance,
    next_due,
    release,
    renew,
)
from engine.store.database import Database
from engine.store.encryption import Sealer
from engine.store.error_blame import Blame, blame
from engine.store.fault_points import reach
from engine.tracing import Tracer
from engine.types.registry import Registry
from engine.types.signal_urls import SignalUrls
from engine.words import Json
from engine.work.internal_error import report
from engine.work.measures import Measures
from engine.work.node_runner import NodeRunner, Surroundings
from engine.work.operation_call import Carry, Exchange
from engine.work.retries import Retrying
from engine.work.step_queue import StepQueue, WaitingStep

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds until a loop that has failed is restarted.
BACK_OFF = 1.0
#: What one resource may compute, where no quota says so.
RESOURCE_BYTES = 4_194_304
#: Seconds. What is not given back counts as if its process had died.
RELEASE_TIMEOUT = 2.0
#: How often a step that is written alone may run into the statement timeout.
TRIES = 2


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """batch: nodes a lane claims at once. operations: operations with I/O under way at once."""

    batch: int
    lanes: int
    lease: timedelta
    poll: timedelta
    operations: int
    drain: timedelta
    default_timeout: timedelta
    retrying: Retrying


class Worker:
    def __init__(
        self,
        database: Database,
        registry: Registry,
        settings: WorkerSettings,
        *,
        name: str,
        new_id: Callable[[], UUID],
        end: Callable[[End], Awaitable[None]],
        fail_end: Callable[[End, str], Awaitable[None]] | None = None,
        sealer: Sealer | None = None,
        exchange: Exchange = str,
        carry: Carry | None = None,
        doors: SignalUrls | None = None,
        resource_bytes: Callable[[str], int] = lambda _: RESOURCE_BYTES,
        measures: Measures | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        """end: ends a traversal of which nothing is left, or whose time is over. fail_end: ends
        one for which that raises, with a reason. sealer, exchange: open credentials. carry: for
        resources that hold a stack of their own. doors: where data is sent to resources.
        resource_bytes: how much one resource of a project may compute."""
        self._end = end
        self._fail_end = fail_end
        self._database = database
        self._settings = settings
        self._name = name
        self._new_id = new_id
        self._wake = asyncio.Event()
        self._served = ""
        self._does_io = True  # until the last batch has shown that it only computes
        self._queue = StepQueue(settings.batch)
        self._singly = 0  # so many claims are still of one node, since a larger one failed
        self._unread = False  # the next claim reads no documents
        self._claims_suspects = False  # a lane's claim under way may return such nodes
        self._runner = NodeRunner(
            Surroundings(
                registry=registry,
                retrying=settings.retrying,
                default_timeout=settings.default_timeout,
                resource_bytes=resource_bytes,
                new_id=new_id,
                sealer=sealer,
                exchange=exchange,
                carry=carry,
                doors=doors,
                measures=measures or Measures(),
                tracer=tracer or Tracer(),
            ),
            self._queue,
            wake=self.wake,
        )

    def wake(self) -> None:
        """Look for work now: something became ready."""
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until told to stop, then let what runs end, a bounded time.

        What is cut off is taken up again, by any worker, when its lease has run out. After an error
        that no guard of a lane or of a node has kept it may be called again: steps that wait are
        written then. Other nodes keep their lease and count as lost, as if the process had died,
        so that one that ends its worker each time is failed. Raises such an error.
        """
        try:
            await self._run(stop)
        except BaseException:
            waiting = {one.claim for one in self._queue}
            self._runner.forget(waiting)
            raise
        with suppress(Exception):
            async with asyncio.timeout(RELEASE_TIMEOUT), self._database.connection() as conn:
                await release(conn, [*self._runner.held])

    async def _run(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            renewing = group.create_task(self._renew_leases())
            lanes = [
                group.create_task(self._lane(group, stop)) for _ in range(self._settings.lanes)
            ]
            await stop.wait()
            self._wake.set()
            await asyncio.wait(lanes, timeout=self._settings.drain.total_seconds())
            renewing.cancel()
            for task in (*lanes, *self._runner.running()):
                task.cancel()

    async def _lane(self, group: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        while True:
            self._wake.clear()
            batch, alone = self._queue.take()
            want = 0 if alone or stop.is_set() else self._room()
            try:
                busy = bool(batch or want) and await self._round(group, batch, want)
            except Exception as error:
                self._recover(batch, want, error)
                await asyncio.sleep(BACK_OFF)
                continue
            if busy or self._queue:
                continue
            if stop.is_set() and not self._runner.held:
                self._wake.set()  # this lane may have taken what was to wake another
                return
            await self._rest()

    def _recover(self, batch: Sequence[WaitingStep], want: int, error: Exception) -> None:
        """Nothing of the batch is written: keep it as it is, or find out which step, or which of
        the nodes to be claimed, is at fault."""
        how = blame(error)
        if isinstance(error, Unavailable):
            log.warning("worker.unavailable", reason=str(error), steps=len(batch))
        elif how is not Blame.CERTAIN or len(batch) != 1:
            report(error, self._new_id(), f"batch of {len(batch)} steps, {want} nodes to claim")
        if not batch and how is not Blame.NONE:
            self._unread, self._singly = want == 1, self._settings.batch
        if how is Blame.NONE or not batch:
            self._queue.put_back(batch)
        elif len(batch) > 1:
            self._queue.set_apart(batch)
        else:
            self._recover_one(batch[0], error, how)

    def _recover_one(self, one: WaitingStep, error: Exception, how: Blame) -> None:
        one.tries += 1
        if how is Blame.POSSIBLE and one.tries < TRIES:
            self._queue.set_apart([one])
        else:
            self._runner.refused(one, error)

    def _room(self) -> int:
        """How many nodes to claim: a batch of what computes, but of what does I/O only as many as
        may be under way; the rest is for other processes."""
        free = max(0, self._settings.operations - len(self._runner.running()))
        if self._singly:
            return min(1, free)
        if free and not self._does_io:
            return self._settings.batch
        return min(self._settings.batch, free)

    async def _round(
        self, group: asyncio.TaskGroup, batch: Sequence[WaitingStep], want: int
    ) -> bool:
        """Settle and claim, and carry on with what came back; False when nothing did.

        Raises only when nothing of the batch is written.
        """
        began = asyncio.get_running_loop().time()
        had_last_try = self._runner.has_last_try
        with self._may_claim_suspects(want) as suspects:
            got = await self._advance([one.step for one in batch], want, suspects=suspects)
            refused = {one.key: one for one in got.refused}
            for one in batch:
                if one.claim in refused:
                    self._runner.superseded(one, refused[one.claim])
                else:
                    self._runner.written(one)
            for ended in got.ends:
                with bound_contextvars(stack_id=str(ended.stack_id), traversal=ended.traversal):
                    await self._finish(ended)
            self._carry_on(group, got, began)
        if had_last_try and not self._runner.has_last_try:
            self.wake()  # other suspects may be claimed now
        return bool(got.work or got.ends or got.unread or self._queue)

    def _carry_on(self, group: asyncio.TaskGroup, got: Advanced, began: float) -> None:
        before = len(self._runner.running())
        for work in got.unread:
            self._runner.give_up(work)
        for work in got.work:
            if self._too_late(began):
                break
            self._runner.carry_on(group, work, began)
        if got.work:
            self._does_io = len(self._runner.running()) > before

    @contextmanager
    def _may_claim_suspects(self, want: int) -> Iterator[bool]:
        """Whether this claim may return nodes that ended their workers: one claim at a time, and
        none while such a node makes its last try."""
        allowed = want > 0 and not self._claims_suspects and not self._runner.has_last_try
        self._claims_suspects |= allowed
        try:
            yield allowed
        finally:
            if allowed:
                self._claims_suspects = False

    async def _advance(self, steps: Sequence[Json], want: int, *, suspects: bool) -> Advanced:
        reach("advance.before")
        most = UNREAD if self._unread else BATCH_BYTES
        async with self._database.connection() as conn:
            got = await advance(
                conn, self._name, self._settings.lease, want, steps, self._served, most,
                suspects=suspects,
            )  # fmt: skip
        reach("advance.after")
        if want:
            self._unread, self._singly = False, max(0, self._singly - 1)
        self._served = got.turn or self._served
        return got

    def _too_late(self, began: float) -> bool:
        """Whether a lease taken then may be over: somebody else may have the nodes by now.

        So it is for a process that was stopped, or starved; it leaves them alone.
        """
        late = asyncio.get_running_loop().time() - began >= self._settings.lease.total_seconds()
        if late:
            log.warning("lease.over", remedy="Nothing; whoever has the nodes now carries them on.")
        return late

    async def _finish(self, ended: End) -> None:
        """What goes wrong here fails this traversal, or is tried again when its lease is over;
        nothing else of this worker may suffer from it."""
        try:
            reach("worker.end")
            await self._end(ended)
        except Unavailable as error:
            log.warning("worker.unavailable", reason=str(error))
        except Exception as error:
            reason = report(error, self._new_id(), "end")
            if self._fail_end is not None and blame(error) is not Blame.NONE:
                await self._finish_failed(self._fail_end(ended, reason))

    async def _finish_failed(self, failing: Awaitable[None]) -> None:
        try:
            await failing
        except Exception as error:
            report(error, self._new_id(), "end")

    async def _rest(self) -> None:
        """Sleep until woken, until the next timer or lease is due, or for a poll interval."""
        longest = self._settings.poll.total_seconds()
        due = await self._next_due()
        seconds = longest if due is None else min(longest, max(due, 0.02))
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _next_due(self) -> float | None:
        try:
            reach("worker.rest")
            async with self._database.connection() as conn:
                return await next_due(conn)
        except Unavailable as error:
            log.warning("worker.unavailable", reason=str(error))
        except Exception as error:
            report(error, self._new_id(), "rest")
        return BACK_OFF

    async def _renew_leases(self) -> None:
        """Keep what runs ours; cut off what somebody else has taken over meanwhile."""
        while True:
            await asyncio.sleep(self._settings.lease.total_seconds() / 3)
            try:
                await self._renew()
            except Unavailable as error:
                log.warning("worker.unavailable", reason=str(error))
            except Exception as error:
                report(error, self._new_id(), "renew")

    async def _renew(self) -> None:
        """Also the leases of what waits to be written; a step that is being written is left alone,
        because its row is locked."""
        reach("worker.renew")
        held = self._runner.held
        running = [claim for claim, task in held.items() if task is not None]
        claims = {*running, *(one.claim for one in self._queue)}
        async with self._database.connection() as conn:
            kept = await renew(conn, self._settings.lease, sorted(claims))
        for claim in running:
            task = held.get(claim)
            if claim not in kept and task is not None:
                log.warning("lease.lost", stack_id=str(claim.stack_id), node=claim.node)
                task.cancel()
                del held[claim]
