"""A signal wakes one lane; a signal without a waiting lane is not lost."""

import asyncio

from engine.work.nodes.lane_signal import LaneSignal

FOREVER = 3600.0


async def waiting(signal: LaneSignal, count: int) -> list["asyncio.Task[bool]"]:
    """Lanes that have begun to wait."""
    lanes = [asyncio.create_task(signal.wait(FOREVER)) for _ in range(count)]
    await turns()
    return lanes


async def turns() -> None:
    """Let every task run until it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


async def end(lanes: list["asyncio.Task[bool]"]) -> None:
    for lane in lanes:
        lane.cancel()
    await asyncio.wait(lanes)


async def test_one_lane_wakes_for_each_signal() -> None:
    signal = LaneSignal()
    lanes = await waiting(signal, 3)
    signal.set()
    await turns()
    assert sum(lane.done() for lane in lanes) == 1
    signal.set()
    await turns()
    assert sum(lane.done() for lane in lanes) == 2
    await end(lanes)


async def test_a_signal_before_the_wait_ends_it_at_once() -> None:
    signal = LaneSignal()
    signal.set()
    assert await asyncio.wait_for(signal.wait(FOREVER), 10)
    signal.clear()
    (lane,) = await waiting(signal, 1)
    assert not lane.done()
    await end([lane])


async def test_all_lanes_wake_at_a_stop() -> None:
    signal = LaneSignal()
    lanes = await waiting(signal, 3)
    signal.set_all()
    await asyncio.wait(lanes, timeout=10)
    assert all(lane.done() for lane in lanes)
    await asyncio.wait_for(signal.wait(FOREVER), 10)


async def test_a_lane_that_gives_up_takes_no_signal() -> None:
    signal = LaneSignal()
    assert not await signal.wait(0.0)
    cancelled = await waiting(signal, 1)
    await end(cancelled)
    (lane,) = await waiting(signal, 1)
    signal.set()
    await asyncio.wait([lane], timeout=10)
    assert lane.done()
