"""Workers moved by hand, one step at a time, on a real database: nothing runs unless told."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from engine.node.inputs import Superseded
from engine.store.advance import Advanced, Claim, RefusedStep, advance
from engine.store.database import Database
from engine.types.contract import Outcome
from engine.types.registry import Registry
from engine.words import Json
from engine.work.job import Job, NodeInput, prepare_claim, settle, settle_superseded
from engine.work.operation_call import RunNestedOperation, judge, start
from tests.support.front import NO_PAUSE

LEASE = timedelta(hours=1)
A_DAY = timedelta(days=1)

OVERDUE = """
update node set wake_at = clock_timestamp() - interval '1 second'
 where state in ('running', 'parked') and wake_at is not null and stack_id = $1
"""
LOOK = """
update traversal set wake_at = clock_timestamp() - interval '1 second'
 where stack_id = $1 and (wake_at is not null or state = 'ending')
"""


@dataclass
class Hands:
    """jobs: nodes whose operation is to be called. steps: decided, and not yet written. decided:
    upon what, by claim. refused: how many steps the store has refused.

    settled: what was written before, to be said again by a worker that has lost its lease.
    """

    database: Database
    registry: Registry
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
        """Claim nodes; write what was decided with it. Returns how much was done."""
        steps, self.steps = self.steps, []
        async with self.database.connection() as conn:
            got = await advance(conn, "hand", LEASE, want, steps)
        self.settled = [*self.settled, *steps][-20:]
        for one in got.refused:
            self._decide_again(one)
        await self._take(got)
        return len(steps) + len(got.work) + len(got.ends)

    def _decide_again(self, one: RefusedStep) -> None:
        self.refused += 1
        step = settle_superseded(
            *self.decided[one.key],
            Superseded(reason=one.reason),
            new_id=self.new_id,
            default_timeout=A_DAY,
        )
        assert step is not None and step["hook"] is None
        self.steps.append(step)

    async def _take(self, got: Advanced) -> None:
        for ended in got.ends:
            self.ends += 1
            await self.end(ended)  # type: ignore[misc]
        for work in got.work:
            job, said = prepare_claim(work, self.registry)
            if said is None:
                self.jobs.append(job)
            else:
                self._decide(job, said)

    def operate(self, index: int) -> Job:
        """Call the operation of a job; what it says is written with the next claim."""
        job = self.jobs.pop(index % len(self.jobs))
        assert job.prepared is not None
        outcome = start(job.prepared)
        assert isinstance(outcome, Outcome)
        self._decide(job, judge(job.prepared, outcome, NO_PAUSE))
        return job

    async def carry_out(self, index: int) -> Job:
        """Call the operation of a job, also one that makes a stack inside."""
        job = self.jobs.pop(index % len(self.jobs))
        assert job.prepared is not None
        outcome = start(job.prepared, run_nested=self.run_nested)
        said = outcome if isinstance(outcome, Outcome) else await outcome
        self._decide(job, judge(job.prepared, said, NO_PAUSE))
        return job

    def _decide(self, job: Job, said: NodeInput) -> None:
        self.decided[job.work.key] = (job, said)
        step = settle(job, said, new_id=self.new_id, default_timeout=A_DAY)
        if step is not None:
            self.steps.append(step)

    def crash(self) -> None:
        """Die: what was not written is lost, and what was done stays done."""
        self.jobs.clear()
        self.steps.clear()

    async def repeat(self) -> None:
        """Say again what was said before, as a worker would that was asleep meanwhile."""
        async with self.database.connection() as conn:
            await advance(conn, "late hand", LEASE, 0, self.settled)


async def time_passes(database: Database, stack_id: object) -> None:
    """Every lease is over and every timer is due."""
    async with database.connection() as conn:
        await conn.execute(OVERDUE, stack_id)
        await conn.execute(LOOK, stack_id)
