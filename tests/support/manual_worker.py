"""A worker that a test moves one step at a time, on a real database."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from engine.store.database import Database
from engine.store.traversals.advance import AdvanceResult, Claim, RefusedStep, advance
from engine.types.contract import Outcome
from engine.types.registry import TypeRegistry
from engine.words import Json
from engine.work.nodes.job import Job, NodeInput, decide_again, decide_step, prepare_claim
from engine.work.nodes.operation_call import RunNestedOperation, judge, start
from tests.support.idle_engine import NO_BACK_OFF

LEASE = timedelta(hours=1)
ONE_DAY = timedelta(days=1)

EXPIRE_NODES = """
update node set wake_at = clock_timestamp() - interval '1 second'
 where state in ('running', 'parked') and wake_at is not null and stack_id = $1
"""
EXPIRE_TRAVERSALS = """
update traversal set wake_at = clock_timestamp() - interval '1 second'
 where stack_id = $1 and (wake_at is not null or state = 'ending')
"""


@dataclass
class ManualWorker:
    """jobs: nodes whose operation is to be called. steps: decided, but not yet written. decided:
    the input of each decision, by claim. refused: the number of steps that the store has refused.

    settled: the last steps that were written, for a worker that repeats them after it lost its
    lease.
    """

    database: Database
    registry: TypeRegistry
    end: Callable[..., object]
    new_id: Callable[[], UUID]
    run_nested: RunNestedOperation | None = None
    jobs: list[Job] = field(default_factory=list)
    steps: list[Json] = field(default_factory=list)
    settled: list[Json] = field(default_factory=list)
    decided: dict[Claim, tuple[Job, NodeInput]] = field(default_factory=dict)
    ends: int = 0
    refused: int = 0

    async def claim(self, want: int) -> int:
        """Claim nodes and write the decided steps in the same call. Returns the number of items
        processed.
        """
        steps, self.steps = self.steps, []
        async with self.database.connection() as conn:
            batch = await advance(conn, "manual", LEASE, want, steps)
        self.settled = [*self.settled, *steps][-20:]
        for one in batch.refused:
            self._decide_again(one)
        await self._prepare(batch)
        return len(steps) + len(batch.work) + len(batch.ends)

    def _decide_again(self, one: RefusedStep) -> None:
        self.refused += 1
        step = decide_again(
            *self.decided[one.key],
            one,
            new_id=self.new_id,
            default_timeout=ONE_DAY,
        )
        assert step is not None
        assert one.traversal_state == "running" or step["hook"] is None
        self.steps.append(step)

    async def _prepare(self, batch: AdvanceResult) -> None:
        for ended in batch.ends:
            self.ends += 1
            await self.end(ended)  # type: ignore[misc]
        for work in batch.work:
            job, claim = prepare_claim(work, self.registry)
            if claim is None:
                self.jobs.append(job)
            else:
                self._decide(job, claim)

    def operate(self, index: int) -> Job:
        """Call the operation of a job; the next claim writes its outcome."""
        job = self.jobs.pop(index % len(self.jobs))
        assert job.prepared is not None
        outcome = start(job.prepared)
        assert isinstance(outcome, Outcome)
        self._decide(job, judge(job.prepared, outcome, NO_BACK_OFF))
        return job

    async def operate_nested(self, index: int) -> Job:
        """Call the operation of a job, also one that starts a nested stack."""
        job = self.jobs.pop(index % len(self.jobs))
        assert job.prepared is not None
        outcome = start(job.prepared, run_nested=self.run_nested)
        result = outcome if isinstance(outcome, Outcome) else await outcome
        self._decide(job, judge(job.prepared, result, NO_BACK_OFF))
        return job

    def _decide(self, job: Job, node_input: NodeInput) -> None:
        self.decided[job.work.key] = (job, node_input)
        step = decide_step(job, node_input, new_id=self.new_id, default_timeout=ONE_DAY)
        if step is not None:
            self.steps.append(step)

    async def until_job(self) -> None:
        """Claim until a job is ready."""
        while not self.jobs:
            assert await self.claim(10)

    async def work(self) -> None:
        """Claim and operate until there is no work."""
        while self.jobs or await self.claim(10):
            while self.jobs:
                self.operate(0)

    def crash(self) -> None:
        """Lose the decided steps; effects of operations stay."""
        self.jobs.clear()
        self.steps.clear()

    async def repeat_steps(self) -> None:
        """Send the written steps again, as a worker does that was suspended meanwhile."""
        async with self.database.connection() as conn:
            await advance(conn, "late manual", LEASE, 0, self.settled)


async def expire_leases_and_timers(database: Database, stack_id: object) -> None:
    """Expire all leases and timers."""
    async with database.connection() as conn:
        await conn.execute(EXPIRE_NODES, stack_id)
        await conn.execute(EXPIRE_TRAVERSALS, stack_id)
