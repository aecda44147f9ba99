"""A worker that shares its database with other engines claims less often, and writes as soon."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from engine.store.database import Database
from engine.store.maintenance.processes import Process, report
from engine.store.schema.upgrade import own_program
from engine.types.contract import Call, Done, Outcome
from engine.work.claim_pace import ClaimPace
from tests.support.changes import thing
from tests.support.program import eventually, program
from tests.support.scripted_type import Thing, World


class SlowThing(Thing):
    """A thing whose creation ends when `ends` is set."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.begun, self.ends = asyncio.Event(), asyncio.Event()

    async def create(self, call: Call) -> Outcome:  # type: ignore[override]
        self.begun.set()
        await self.ends.wait()
        return Done("slow", {})


async def test_the_worker_knows_how_many_other_engines_there_are(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = own_program("1.0.0")
    async with database.connection() as conn:
        for number in (1, 2):
            other = Process(UUID(int=number), "h", ("engine",), timedelta(minutes=1), version)
            await report(conn, other)
    counts: set[int] = set()
    record = ClaimPace.record_claim

    def record_count(self: ClaimPace, began: float, ended: float) -> None:
        counts.add(self.other_engines)
        record(self, began, ended)

    monkeypatch.setattr(ClaimPace, "record_claim", record_count)
    async with program(database_url, {"engine.poll": "1s"}):

        async def is_known() -> bool:
            return 2 in counts

        await eventually(is_known)


async def test_steps_do_not_wait_for_other_engines(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operation ends while the only worker leaves its time to others, here without end."""
    slow, waits = SlowThing(World()), asyncio.Event()

    def wait_long(self: ClaimPace, now: float) -> float:
        waits.set()
        return 3600.0

    async with program(database_url, {"engine.workers": 1}, types=[slow]) as run:
        await run.create("s", {"a": thing()})
        await slow.begun.wait()
        monkeypatch.setattr(ClaimPace, "seconds_to_claim", wait_long)

        async def is_waiting() -> bool:
            await run.database.pool.execute("notify headgate_work")
            return waits.is_set()

        await eventually(is_waiting)
        slow.ends.set()
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        monkeypatch.undo()
