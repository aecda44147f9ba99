"""A process dies at every commit boundary; accepted work still completes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.store.fault_points import POINTS
from tests.fault.load import (
    NEST,
    Effects,
    FaultCounts,
    RetryingClient,
    check,
    new_client,
    new_folder,
    run_stack,
)
from tests.support.program import PATIENCE, ServerProcess, eventually
from tests.support.receiver import Receiver, running_receiver

#: Fault points, and the pass of each at which the process dies: during a create, later, during an
#: update.
Deaths = list[tuple[str, int]]
DEATHS: Deaths = [(point, 1) for point in POINTS] + [
    (point, 3) for point in POINTS if point.startswith(("accept", "advance", "publish"))
]


@pytest.fixture
def folder() -> Iterator[Path]:
    with new_folder() as found:
        yield found


async def restart_after_death(server: ServerProcess, counts: FaultCounts) -> None:
    """Wait until the process is dead, then restart it."""

    async def is_dead() -> bool:
        return not server.is_running

    await eventually(is_dead)
    counts.kills += 1
    await asyncio.to_thread(server.start)


async def die_each(
    server: ServerProcess, effects: Effects, counts: FaultCounts, deaths: Deaths
) -> None:
    async with running_receiver() as receiver, new_client(server.url, counts) as http:
        await asyncio.to_thread(server.start)
        await subscribe(http, receiver)
        for point, times in deaths:
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(server.start, fault=f"{point}:{times}:kill")
            async with asyncio.timeout(2 * PATIENCE), asyncio.TaskGroup() as group:
                group.create_task(restart_after_death(server, counts))
                group.create_task(run_stack(http, effects, fault_id(point, times)))
            check(effects, counts, fault_id(point, times))
        await all_events_delivered(receiver, deaths)


async def test_a_death_at_any_commit_loses_and_repeats_no_operation(folder: Path) -> None:
    """Two servers with separate databases share the deaths, to save time."""
    effects, counts = Effects(folder), FaultCounts()
    servers = []
    try:
        async with asyncio.TaskGroup() as group:
            for half in (0, 1):
                (own := folder / str(half)).mkdir(mode=0o711)
                servers.append(ServerProcess(own, settings=effects.settings))
                group.create_task(die_each(servers[-1], effects, counts, DEATHS[half::2]))
    finally:
        for server in servers:
            server.stop()
    print(counts)
    assert (counts.lost, counts.doubled) == (0, 0), counts.notes
    assert counts.kills == len(DEATHS)


def fault_id(point: str, times: int) -> str:
    return f"{point.replace('.', '-')}-{times}"


async def subscribe(http: RetryingClient, receiver: Receiver) -> None:
    body = {"channel": "webhook", "target": f"{receiver.url}/", "events": ["headgate.stack.*"]}
    status, response = await http.request("POST", "/subscriptions", body)
    assert status == 201, response


async def all_events_delivered(receiver: Receiver, deaths: Deaths) -> None:
    """The end of every stack is delivered, at least once, with the same ID each time."""

    async def all_delivered() -> bool:
        ends = {event["source"].split("/")[4] for event in receiver.events
                if event["type"] == "headgate.stack.delete.completed"}  # fmt: skip
        names = {fault_id(point, times) for point, times in deaths}
        inside = {name.rpartition(f"-{NEST}-")[0] for name in ends - names}
        return ends >= names == inside

    await eventually(all_delivered)
    ids: dict[tuple[str, int], set[str]] = {}
    for event in receiver.events:
        ids.setdefault((event["source"], event["sequence"]), set()).add(event["id"])
    assert all(len(one) == 1 for one in ids.values())
