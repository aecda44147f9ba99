"""Reading from cells with a bound."""

import asyncio
import gc
import warnings

import pytest

from engine.errors import Unavailable
from hub.program.cells import cell_states
from hub.program.cells.cell_states import read_in_time


async def test_what_a_cell_returns_is_read() -> None:
    async def read() -> str:
        return "moves"

    assert await read_in_time(read) == "moves"


async def test_a_cell_that_is_away_or_hangs_returns_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cell_states, "READ_TIMEOUT", 0.01)

    async def fail() -> str:
        raise Unavailable("away", place="[cells] databases", remedy="Wait.")

    async def hang() -> str:
        await asyncio.Event().wait()
        return "late"

    assert await read_in_time(fail) is None
    assert await read_in_time(hang) is None


async def test_reads_that_are_cancelled_before_they_start_are_not_created() -> None:
    """A coroutine that is created and never awaited is a warning at its end."""
    started: list[str] = []

    async def read() -> str:
        started.append("read")
        return "moves"

    async def read_all() -> None:
        await asyncio.gather(*(read_in_time(read) for _ in range(2)))

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        reading = asyncio.create_task(read_all())
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        gc.collect()
    assert started == []
    assert [str(one.message) for one in found] == []
