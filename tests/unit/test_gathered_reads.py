"""Reads that are requested at the same time share one statement."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from engine.store.gathered_reads import MAX_KEYS, GatheredReads


class Statements:
    """Records the keys of each statement; it ends when `release` is set."""

    def __init__(self) -> None:
        self.keys: list[list[int]] = []
        self.release = asyncio.Event()
        self.error: Exception | None = None

    async def read(self, keys: Sequence[int]) -> Mapping[int, str]:
        self.keys.append(list(keys))
        await self.release.wait()
        if self.error is not None:
            raise self.error
        return {key: str(key) for key in keys if key >= 0}


async def start(reads: GatheredReads[int, str], *keys: int) -> list["asyncio.Task[str | None]"]:
    """Tasks that read these keys, the first of which has begun."""
    tasks = [asyncio.create_task(reads.get(key)) for key in keys]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def test_keys_that_arrive_during_a_statement_are_read_by_the_next_one() -> None:
    statements = Statements()
    reads = GatheredReads(statements.read)
    first = await start(reads, 1)
    others = await start(reads, 2, 3, 2, -1)
    statements.release.set()
    assert await asyncio.gather(*first, *others) == ["1", "2", "3", "2", None]
    assert statements.keys == [[1], [2, 3, -1]]


async def test_a_statement_has_a_limited_number_of_keys() -> None:
    statements = Statements()
    statements.release.set()
    tasks = await start(GatheredReads(statements.read), *range(MAX_KEYS + 1))
    await asyncio.gather(*tasks)
    assert [len(keys) for keys in statements.keys] == [MAX_KEYS, 1]


async def test_a_failed_statement_fails_its_keys_only() -> None:
    statements = Statements()
    reads = GatheredReads(statements.read)
    first = await start(reads, 1)
    statements.error = ValueError("no")
    statements.release.set()
    with pytest.raises(ValueError, match="no"):
        await first[0]
    statements.error = None
    assert await reads.get(2) == "2"


async def test_a_cancelled_reader_does_not_fail_the_others() -> None:
    statements = Statements()
    reads = GatheredReads(statements.read)
    first, second = await start(reads, 1, 1)
    first.cancel()
    statements.release.set()
    assert await second == "1"
    with pytest.raises(asyncio.CancelledError):
        await first
