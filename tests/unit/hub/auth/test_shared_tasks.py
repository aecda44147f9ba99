"""Concurrent callers share a task."""

import asyncio

import pytest

from hub.auth.shared_tasks import SharedTasks


class Work:
    """Counts its starts, and ends when it may. fails: with an error."""

    def __init__(self, *, fails: bool = False) -> None:
        self.starts, self.may_end, self._fails = 0, asyncio.Event(), fails

    async def run(self) -> str:
        self.starts += 1
        await self.may_end.wait()
        if self._fails:
            raise ValueError("refused")
        return f"result {self.starts}"


async def test_callers_with_the_same_key_share_a_result() -> None:
    tasks, work = SharedTasks[str](), Work()
    callers = [asyncio.create_task(tasks.run("a", work.run)) for _ in range(5)]
    other = asyncio.create_task(tasks.run("b", work.run))
    await asyncio.sleep(0)
    work.may_end.set()
    assert len(set(await asyncio.gather(*callers))) == 1
    await other
    assert work.starts == 2
    await tasks.run("a", work.run)
    assert work.starts == 3


async def test_all_callers_get_the_error_and_the_next_one_tries_again() -> None:
    tasks, work = SharedTasks[str](), Work(fails=True)
    work.may_end.set()
    results = await asyncio.gather(
        *(tasks.run("a", work.run) for _ in range(3)), return_exceptions=True
    )
    assert [str(one) for one in results] == ["refused"] * 3 and work.starts == 1
    with pytest.raises(ValueError, match="refused"):
        await tasks.run("a", work.run)
    assert work.starts == 2


async def test_a_cancelled_caller_does_not_end_the_task() -> None:
    tasks, work = SharedTasks[str](), Work()
    first = asyncio.create_task(tasks.run("a", work.run))
    await asyncio.sleep(0)
    second = asyncio.create_task(tasks.run("a", work.run))
    await asyncio.sleep(0)
    first.cancel()
    work.may_end.set()
    assert await second == "result 1"
    with pytest.raises(asyncio.CancelledError):
        await first
