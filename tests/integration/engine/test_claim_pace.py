"""A worker that shares its database with other engines claims less often, and writes as soon."""

import asyncio
from collections import Counter
from datetime import timedelta
from uuid import UUID

import pytest

from engine.service import StackRequest
from engine.store.database import Database
from engine.store.maintenance.processes import Process, report
from engine.store.schema.upgrade import own_program
from engine.types.contract import Call, Done, Outcome
from engine.work.nodes import claim_pace
from engine.work.nodes.claim_pace import ClaimPace
from tests.support.changes import thing
from tests.support.idle_engine import idle_engine
from tests.support.program import eventually, program, resource, template
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
    counts: set[tuple[int, int]] = set()
    record = ClaimPace.record_claim

    def record_count(self: ClaimPace, began: float, ended: float) -> None:
        counts.add((self.other_engines, self.earlier_engines))
        record(self, began, ended)

    monkeypatch.setattr(ClaimPace, "record_claim", record_count)
    async with program(database_url, {"engine.poll": "1s"}):

        async def is_known() -> bool:
            return (2, 2) in counts

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

        await create_elsewhere(run.database, "other")
        await waits.wait()
        slow.ends.set()
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        monkeypatch.undo()


#: One lane, which claims when it is woken and hardly ever else.
ONE_LANE = {"engine.workers": 1, "engine.poll": "10m"}


async def create_elsewhere(database: Database, name: str) -> None:
    """Accept a stack as another process does: its engines get a notification of it."""
    request = StackRequest(name=name, template=template({"a": resource()}))
    await idle_engine(database).stacks.create("p", request)


def count_claims(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Claims of workers by the number of earlier engines that they know."""
    counts: Counter[int] = Counter()
    record = ClaimPace.record_claim

    def count(self: ClaimPace, began: float, ended: float) -> None:
        counts[self.earlier_engines] += 1
        record(self, began, ended)

    monkeypatch.setattr(ClaimPace, "record_claim", count)
    return counts


async def test_a_claim_that_finds_all_due_work_is_not_repeated(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One claims the node of a stack, and one writes its step: notifications of what was done, also
    by this process, cause none."""
    counts = count_claims(monkeypatch)
    async with program(database_url, ONE_LANE) as run:
        await create_elsewhere(database, "first")
        assert await run.until_ended("first") == "CREATE_COMPLETE"
        before = counts.total()
        for number in range(10):
            await create_elsewhere(database, f"s{number}")
            assert await run.until_ended(f"s{number}") == "CREATE_COMPLETE"
        assert counts.total() - before == 20


async def test_a_later_engine_claims_nothing_while_the_earlier_one_does(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn of the later one lasts long enough here; it needs no claim to notice that all is
    done."""
    counts = count_claims(monkeypatch)
    monkeypatch.setattr(claim_pace, "TURN", 3600.0)
    monkeypatch.setattr(claim_pace, "MAX_TURN", 3600.0)
    async with program(database_url, ONE_LANE) as first, program(database_url, ONE_LANE):

        async def knows_the_earlier_one() -> bool:
            return counts[1] > 0

        await eventually(knows_the_earlier_one)
        before = counts.copy()
        for number in range(10):
            await create_elsewhere(database, f"s{number}")
            assert await first.until_ended(f"s{number}") == "CREATE_COMPLETE"
        assert counts[1] == before[1]
        assert counts[0] >= before[0] + 10


async def test_a_later_engine_claims_what_earlier_ones_leave(
    database: Database, database_url: str
) -> None:
    """They are listed for a while after they have crashed."""
    async with database.connection() as conn:
        for number in range(1, 6):
            crashed = Process(
                UUID(int=number), "h", ("engine",), timedelta(minutes=10), own_program("1.0.0")
            )
            await report(conn, crashed)
    async with program(database_url, ONE_LANE) as later:
        for number in range(3):
            await create_elsewhere(database, f"s{number}")
            assert await later.until_ended(f"s{number}") == "CREATE_COMPLETE"
