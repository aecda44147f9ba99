"""Turns are taken fairly between keys, bounded, and given back."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from hub.auth.address_blocks import block_of
from hub.auth.fair_queue import FairQueue, QueueFull


class Turns:
    """Tasks that hold their turn until they are released."""

    def __init__(self, queue: FairQueue) -> None:
        self.queue = queue
        self.begun: list[str] = []
        self.most = 0
        self._running = 0
        self._releases: list[asyncio.Event] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def start(self, *keys: str) -> None:
        for key in keys:
            self.tasks.append(asyncio.create_task(self._hold(key)))
        await settle()

    async def _hold(self, key: str) -> None:
        async with self.queue.turn(key):
            self.begun.append(key)
            self._running += 1
            self.most = max(self.most, self._running)
            release = asyncio.Event()
            self._releases.append(release)
            try:
                await release.wait()
            finally:
                self._running -= 1

    async def release(self) -> None:
        self._releases.pop(0).set()
        await settle()

    async def finish(self) -> None:
        while self._releases:
            await self.release()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def queue(at_once: int = 2, each: int = 1, waiting: int = 5, total: int = 8) -> FairQueue:
    return FairQueue(at_once=at_once, each=each, waiting=waiting, total=total)


async def test_one_key_leaves_room_for_another() -> None:
    turns = Turns(queue())
    await turns.start("a", "a", "a", "a")
    assert turns.begun == ["a"]
    await turns.start("b")
    assert turns.begun == ["a", "b"]
    await turns.finish()
    assert turns.begun == ["a", "b", "a", "a", "a"] and turns.most == 2


async def test_keys_are_served_in_turn() -> None:
    turns = Turns(queue(at_once=1))
    await turns.start("a", "a", "a", "b", "b", "c")
    await turns.finish()
    assert turns.begun == ["a", "a", "b", "c", "a", "b"] and turns.most == 1


@pytest.mark.parametrize(
    ("keys", "full"), [(["a"] * 6, "a"), (["a", "b"] + ["c"] * 4 + ["d"] * 4, "e")]
)
async def test_as_many_wait_as_may(keys: list[str], full: str) -> None:
    turns = Turns(queue())
    await turns.start(*keys)
    with pytest.raises(QueueFull):
        async with turns.queue.turn(full):
            pass
    await turns.finish()
    assert len(turns.begun) == len(keys)
    async with turns.queue.turn(full):
        pass


async def test_one_that_is_cancelled_holds_nothing_up() -> None:
    async def while_it_waits(turns: Turns) -> None:
        turns.tasks[1].cancel()
        await settle()

    async def as_it_is_admitted(turns: Turns) -> None:
        turns._releases[0].set()
        await asyncio.sleep(0)
        turns.tasks[1].cancel()
        await settle()

    async def just_before_it_is_admitted(turns: Turns) -> None:
        turns.tasks[1].cancel()
        turns._releases[0].set()
        await settle()

    ways: list[Callable[[Turns], Awaitable[None]]] = [
        while_it_waits, as_it_is_admitted, just_before_it_is_admitted,
    ]  # fmt: skip
    for cancel in ways:
        turns = Turns(queue(at_once=1))
        await turns.start("a", "a", "b")
        await cancel(turns)
        await turns.finish()
        assert turns.begun[-1] == "b", cancel.__name__
        async with asyncio.timeout(5):
            await turns.start("a")
        await turns.finish()
        assert not turns.queue._queues and not turns.queue._running


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
