"""Guards of loops: what an error costs, and what it does not."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from engine import loop_guard
from engine.errors import TimedOut, Unavailable
from engine.loop_guard import BatchSize, Fault, Supervisor
from engine.work.purge import PurgeLoop

GUARD = Supervisor(new_id=lambda: "abc").guard("loop", first=0.001, max_pause=0.002)


async def test_a_loop_continues_after_every_kind_of_error() -> None:
    stop, turns = asyncio.Event(), 0
    errors: list[Exception] = [
        Unavailable("away"),
        ValueError("planted-secret"),
        ExceptionGroup("", [Unavailable("away"), KeyError("planted-secret")]),
        ExceptionGroup("", [Unavailable("all away")]),
    ]

    async def turn() -> None:
        nonlocal turns
        turns += 1
        if errors:
            raise errors.pop(0)
        stop.set()

    with capture_logs() as logs:
        await GUARD.run(turn, stop)
    assert turns == 5
    assert [one["event"] for one in logs] == [
        "loop.unavailable", "loop.failed", "loop.failed", "loop.unavailable",
    ]  # fmt: skip
    assert [one.get("error") for one in logs] == [None, "ValueError", "KeyError", None]
    assert "in turn" in logs[1]["where"]
    assert "planted-secret" not in repr(logs)


async def test_a_cancelled_loop_ends() -> None:
    begun = asyncio.Event()

    async def turn() -> None:
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(GUARD.run(turn, asyncio.Event()))
    await begun.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that loops have waited for; a wait ends at once, because the loop is stopped."""
    seconds: list[float] = []

    async def wait(event: asyncio.Event, longest: float) -> bool:
        seconds.append(longest)
        event.set()
        return True

    monkeypatch.setattr(loop_guard, "wait_at_most", wait)
    return seconds


async def test_the_first_turn_can_be_delayed(waits: list[float]) -> None:
    turns: list[None] = []

    async def turn() -> None:
        turns.append(None)

    await GUARD.run(turn, asyncio.Event(), after=5.0)
    assert (waits, turns) == ([5.0], [])


@pytest.mark.parametrize(
    ("every", "expected"), [(timedelta(hours=1), 5.0), (timedelta(seconds=1), 1.0)]
)
async def test_a_purge_is_not_the_first_work_of_a_process(
    waits: list[float], every: timedelta, expected: float
) -> None:
    """It would fail here: there is no database."""
    with capture_logs() as logs:
        loop = PurgeLoop(cast(Any, None), {}, every=every, record=lambda *_: None)
        await loop.run(asyncio.Event())
    assert (waits, logs) == ([expected], [])


async def test_an_internal_error_of_a_unit_is_returned_and_counted() -> None:
    counted: list[str] = []

    async def broken() -> None:
        raise ValueError

    async def away() -> None:
        raise Unavailable("away")

    guard = Supervisor(new_id=lambda: "abc", failed=counted.append).guard("loop")
    with capture_logs() as logs:
        fault = await guard.attempt(broken(), unit=7)
    assert isinstance(fault, Fault)
    assert (str(fault), counted) == ("internal error abc (see the server's log)", ["loop"])
    assert (logs[0]["unit"], logs[0]["error_id"]) == (7, "abc")
    with pytest.raises(Unavailable):
        await guard.attempt(away())


class Batch:
    """Numbers to be done; some raise an error, also where they are ended."""

    def __init__(self, broken: dict[int, Exception], endless: Sequence[int] = ()) -> None:
        self.done: list[int] = []
        self.ended: list[int] = []
        self._broken = broken
        self._endless = endless

    async def work(self, part: Sequence[int]) -> None:
        for one in part:
            if one in self._broken:
                raise self._broken[one]
        self.done += part

    async def fail(self, one: int, _: Fault) -> None:
        if one in self._endless:
            raise KeyError
        self.ended.append(one)

    async def split(self, count: int) -> None:
        await GUARD.split(range(count), self.work, self.fail, lambda one: {"unit": one})


async def test_a_batch_is_split_down_to_the_failing_units() -> None:
    batch = Batch({3: ValueError(), 8: ValueError()})
    await batch.split(10)
    assert (batch.done, batch.ended) == ([0, 1, 2, 4, 5, 6, 7, 9], [3, 8])


async def test_a_unit_that_times_out_alone_is_skipped_and_the_others_complete() -> None:
    batch = Batch({3: TimedOut("slow")})
    with pytest.raises(TimedOut):
        await batch.split(10)
    assert (batch.done, batch.ended) == ([0, 1, 2, 4, 5, 6, 7, 8, 9], [])


async def test_a_unit_that_cannot_be_failed_is_skipped_and_the_others_complete() -> None:
    batch = Batch({3: ValueError(), 5: ValueError()}, endless=[3])
    with pytest.raises(KeyError):
        await batch.split(10)
    assert (batch.done, batch.ended) == ([0, 1, 2, 4, 6, 7, 8, 9], [5])


async def test_a_batch_is_not_split_while_the_database_is_unavailable() -> None:
    batch = Batch({3: Unavailable("away")})
    with pytest.raises(Unavailable):
        await batch.split(10)
    assert (batch.done, batch.ended) == ([], [])


async def test_a_statement_that_fails_with_every_unit_fails_none() -> None:
    undefined, limit = KeyError("no such function"), KeyError("limit")
    undefined.sqlstate, limit.sqlstate = "42883", "54000"  # type: ignore[attr-defined]
    batch = Batch({3: undefined})
    with pytest.raises(KeyError):
        await batch.split(10)
    assert (batch.done, batch.ended) == ([], [])
    batch = Batch({3: limit})
    await batch.split(4)
    assert (batch.done, batch.ended) == ([0, 1, 2], [3])


def test_an_ordered_batch_is_halved_down_to_the_failing_unit() -> None:
    size = BatchSize(4)
    assert [size.shrink(ValueError()) for _ in range(3)] == [False, False, True]
    size.grow()
    size.grow()
    size.grow()
    assert size.now == 4
    with pytest.raises(Unavailable):
        size.shrink(Unavailable("away"))
    assert not size.shrink(TimedOut("slow"))
    size.now = 1
    with pytest.raises(TimedOut):
        size.shrink(TimedOut("slow"))
