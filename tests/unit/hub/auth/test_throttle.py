"""The queue that limits concurrent work per key: fair, bounded, and released after use."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from hub.auth.throttle import QueueFull, TooManyRequests, TurnQueue, block_of


class Turns:
    """Tasks that hold their turn until they are released."""

    def __init__(self, queue: TurnQueue) -> None:
        self.queue = queue
        self.started: list[str] = []
        self.peak = 0
        self._running = 0
        self._releases: list[asyncio.Event] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def start(self, *keys: str) -> None:
        for key in keys:
            self.tasks.append(asyncio.create_task(self._hold(key)))
        await run_pending_tasks()

    async def _hold(self, key: str) -> None:
        async with self.queue.turn(key):
            self.started.append(key)
            self._running += 1
            self.peak = max(self.peak, self._running)
            release = asyncio.Event()
            self._releases.append(release)
            try:
                await release.wait()
            finally:
                self._running -= 1

    async def release(self) -> None:
        self._releases.pop(0).set()
        await run_pending_tasks()

    async def finish(self) -> None:
        while self._releases:
            await self.release()


async def run_pending_tasks() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def queue(at_once: int = 2, each: int = 1, waiting: int = 5, total: int = 8) -> TurnQueue:
    return TurnQueue(at_once=at_once, each=each, waiting=waiting, total=total)


async def test_a_key_does_not_use_all_turns() -> None:
    turns = Turns(queue())
    await turns.start("a", "a", "a", "a")
    assert turns.started == ["a"]
    await turns.start("b")
    assert turns.started == ["a", "b"]
    await turns.finish()
    assert turns.started == ["a", "b", "a", "a", "a"] and turns.peak == 2


async def test_keys_take_turns() -> None:
    turns = Turns(queue(at_once=1))
    await turns.start("a", "a", "a", "b", "b", "c")
    await turns.finish()
    assert turns.started == ["a", "a", "b", "c", "a", "b"] and turns.peak == 1


@pytest.mark.parametrize(
    ("keys", "full"), [(["a"] * 6, "a"), (["a", "b"] + ["c"] * 4 + ["d"] * 4, "e")]
)
async def test_the_number_of_waiting_tasks_is_limited(keys: list[str], full: str) -> None:
    turns = Turns(queue())
    await turns.start(*keys)
    with pytest.raises(QueueFull):
        async with turns.queue.turn(full):
            pass
    await turns.finish()
    assert len(turns.started) == len(keys)
    async with turns.queue.turn(full):
        pass


async def test_a_cancelled_task_blocks_no_other() -> None:
    async def while_waiting(turns: Turns) -> None:
        turns.tasks[1].cancel()
        await run_pending_tasks()

    async def when_admitted(turns: Turns) -> None:
        turns._releases[0].set()
        await asyncio.sleep(0)
        turns.tasks[1].cancel()
        await run_pending_tasks()

    async def just_before_admission(turns: Turns) -> None:
        turns.tasks[1].cancel()
        turns._releases[0].set()
        await run_pending_tasks()

    ways: list[Callable[[Turns], Awaitable[None]]] = [
        while_waiting, when_admitted, just_before_admission,
    ]  # fmt: skip
    for cancel in ways:
        turns = Turns(queue(at_once=1))
        await turns.start("a", "a", "b")
        await cancel(turns)
        await turns.finish()
        assert turns.started[-1] == "b", cancel.__name__
        async with asyncio.timeout(5):
            await turns.start("a")
        await turns.finish()
        assert not len(turns.queue._queue) and not turns.queue._queue._of_group


@pytest.mark.parametrize(
    ("address", "block"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("no address", "no address"),
    ],
)
def test_the_block_of_an_address(address: str, block: str) -> None:
    assert block_of(address) == block


def test_the_wait_is_reported_in_whole_seconds() -> None:
    assert [TooManyRequests("", "", wait).wait for wait in (0.01, 1.0, 1.2)] == [1, 1, 2]
