"""The worker: claim, decide, settle, act. Any number of them work on one database.

A lane is a loop around one call of the store: it hands in what was decided since (`steps`), and
gets back the nodes it is to carry on with. Operations that compute are called right there;
operations that do I/O run as tasks, bounded in number, and hand their outcome to whichever lane
comes round next. While a node waits, for a hook, a timer or another node, nothing of it is here.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from inspect import isawaitable
from typing import NamedTuple
from uuid import UUID

import structlog
from structlog.contextvars import bound_contextvars
from structlog.typing import FilteringBoundLogger

from engine.errors import Unavailable
from engine.store.advance import Claim, End, Work, advance, next_due, renew
from engine.store.database import Database
from engine.store.faults import reach
from engine.store.sealing import Sealer
from engine.tracing import Span, Tracer
from engine.types.contract import Outcome
from engine.types.registry import Registry
from engine.types.signal_doors import SignalDoors
from engine.words import Json
from engine.work.act import Carry, Exchange, judge, start
from engine.work.job import Job, Said, settle, take_up
from engine.work.measures import Measures
from engine.work.prepare import Prepared
from engine.work.retrying import Retrying
from engine.work.told import outcome_of, tell_step

log: FilteringBoundLogger = structlog.get_logger()


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


class _Call(NamedTuple):
    """A type's operation that runs. began: by the loop's clock."""

    began: float
    span: Span


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
        sealer: Sealer | None = None,
        exchange: Exchange = str,
        carry: Carry | None = None,
        doors: SignalDoors | None = None,
        measures: Measures | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        """end: ends a traversal of which nothing is left, or whose time is over. sealer, exchange:
        open credentials. carry: for resources that hold a stack of their own. doors: where data is
        sent to resources."""
        self._carry = carry
        self._sealer = sealer
        self._exchange = exchange
        self._doors = doors
        self._measures = measures or Measures()
        self._tracer = tracer or Tracer()
        self._end = end
        self._database = database
        self._registry = registry
        self._settings = settings
        self._name = name
        self._new_id = new_id
        self._wake = asyncio.Event()
        self._served = ""
        self._does_io = True  # until the last batch has shown that it only computes
        self._steps: deque[Json] = deque()
        self._held: dict[Claim, asyncio.Task[None] | None] = {}

    def wake(self) -> None:
        """Look for work now: something became ready."""
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until told to stop, then let what runs end, a bounded time.

        What is cut off is taken up again, by whoever, when its lease has run out.
        """
        async with asyncio.TaskGroup() as group:
            renewing = group.create_task(self._renew_leases())
            lanes = [
                group.create_task(self._lane(group, stop)) for _ in range(self._settings.lanes)
            ]
            await stop.wait()
            self._wake.set()
            await asyncio.wait(lanes, timeout=self._settings.drain.total_seconds())
            renewing.cancel()
            for task in (*lanes, *self._running()):
                task.cancel()

    def _running(self) -> list[asyncio.Task[None]]:
        return [task for task in self._held.values() if task is not None]

    async def _lane(self, group: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        while True:
            self._wake.clear()
            steps = self._take_steps()
            want = 0 if stop.is_set() else self._room()
            try:
                if steps or want:
                    busy = await self._round(group, steps, want)
                    if busy:
                        continue
                if self._steps:
                    continue
                if stop.is_set() and not self._held:
                    self._wake.set()  # this lane may have taken what was to wake another
                    return
                await self._rest()
            except Unavailable as error:
                self._steps.extendleft(reversed(steps))
                log.warning("worker.unavailable", reason=str(error))
                await asyncio.sleep(1)

    def _take_steps(self) -> list[Json]:
        return [self._steps.popleft() for _ in range(min(len(self._steps), self._settings.batch))]

    def _room(self) -> int:
        """How many nodes to claim: a batch of what computes, but of what does I/O only as many as
        may be under way; the rest is for other processes."""
        free = max(0, self._settings.operations - len(self._running()))
        if free and not self._does_io:
            return self._settings.batch
        return min(self._settings.batch, free)

    async def _round(self, group: asyncio.TaskGroup, steps: list[Json], want: int) -> bool:
        """Settle and claim, and carry on with what came back; False when nothing did."""
        began = asyncio.get_running_loop().time()
        reach("advance.before")
        async with self._database.connection() as conn:
            got = await advance(conn, self._name, self._settings.lease, want, steps, self._served)
        reach("advance.after")
        self._served = got.turn or self._served
        for step in steps:
            claim = Claim(step["stack_id"], step["traversal"], step["node"], step["claim"])
            self._held.pop(claim, None)
            tell_step(step, self._measures)
        for ended in got.ends:
            with bound_contextvars(stack_id=str(ended.stack_id), traversal=ended.traversal):
                await self._finish(ended)
        before = len(self._running())
        for work in got.work:
            if self._too_late(began):
                break
            self._held[work.key] = None
            with _named(work):
                self._carry_on(group, work, began)
        if got.work:
            self._does_io = len(self._running()) > before
        return bool(got.work or got.ends or self._steps)

    def _too_late(self, began: float) -> bool:
        """Whether a lease taken then may be over: somebody else may have the nodes by now.

        So it is for a process that was stopped, or starved; it leaves them alone.
        """
        late = asyncio.get_running_loop().time() - began >= self._settings.lease.total_seconds()
        if late:
            log.warning("lease.over", remedy="Nothing; whoever has the nodes now carries them on.")
        return late

    async def _finish(self, ended: End) -> None:
        """What goes wrong here is tried again when the traversal's lease is over; nothing else of
        this worker may suffer from it."""
        try:
            await self._end(ended)
        except Unavailable:
            raise
        except Exception as error:
            log.error("end.bug", exc_info=error)

    def _carry_on(self, group: asyncio.TaskGroup, work: Work, claimed_at: float) -> None:
        """Decide the next step of a node; call its operation if that is where it is."""
        job, said = take_up(work, self._registry)
        if said is not None:
            self._settle(job, said)
        elif job.prepared is not None:
            self._measures.claimed(asyncio.get_running_loop().time() - claimed_at)
            self._act(group, job, job.prepared)

    def _act(self, group: asyncio.TaskGroup, job: Job, prepared: Prepared) -> None:
        call = self._begun(job.work)
        outcome = start(prepared, self._sealer, self._exchange, self._carry, self._doors)
        if isawaitable(outcome):
            task = group.create_task(self._await(job, prepared, outcome, call))
            self._held[job.work.key] = task
        else:
            self._settle(job, self._judged(job, prepared, outcome, call))

    def _begun(self, work: Work) -> _Call:
        span = self._tracer.begin(
            f"{work.operation} {work.type}", work.traceparent or "",
            stack_id=str(work.key.stack_id), traversal=work.key.traversal, resource=work.name,
        )  # fmt: skip
        return _Call(asyncio.get_running_loop().time(), span)

    def _judged(self, job: Job, prepared: Prepared, outcome: Outcome, call: _Call) -> Said:
        said = judge(prepared, outcome, self._settings.retrying)
        seconds, word = asyncio.get_running_loop().time() - call.began, outcome_of(said.input)
        self._measures.operated(job.work.type, job.work.operation, word, seconds)
        call.span.end(outcome=word)
        return said

    async def _await(
        self, job: Job, prepared: Prepared, outcome: Awaitable[Outcome], call: _Call
    ) -> None:
        said = self._judged(job, prepared, await outcome, call)
        self._held[job.work.key] = None
        self._settle(job, said)
        self._wake.set()

    def _settle(self, job: Job, said: Said) -> None:
        step = settle(
            job, said, new_id=self._new_id, default_timeout=self._settings.default_timeout
        )
        if step is None:
            self._held.pop(job.work.key, None)
        else:
            self._steps.append(step)

    async def _rest(self) -> None:
        """Sleep until woken, until the next timer or lease is due, or for a poll interval."""
        async with self._database.connection() as conn:
            due = await next_due(conn)
        longest = self._settings.poll.total_seconds()
        seconds = longest if due is None else min(longest, max(due, 0.02))
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _renew_leases(self) -> None:
        """Keep what runs ours; cut off what somebody else has taken over meanwhile."""
        while True:
            await asyncio.sleep(self._settings.lease.total_seconds() / 3)
            claims = [claim for claim, task in self._held.items() if task is not None]
            try:
                async with self._database.connection() as conn:
                    kept = await renew(conn, self._settings.lease, claims)
            except Unavailable as error:
                log.warning("worker.unavailable", reason=str(error))
                continue
            for claim in claims:
                task = self._held.get(claim)
                if claim not in kept and task is not None:
                    log.warning("lease.lost", stack_id=str(claim.stack_id), node=claim.node)
                    task.cancel()
                    del self._held[claim]


def _named(work: Work) -> AbstractContextManager[object]:
    """In every line of the log, also of tasks that are begun within: which node it is about."""
    return bound_contextvars(
        stack_id=str(work.key.stack_id), traversal=work.key.traversal, resource=work.name
    )
