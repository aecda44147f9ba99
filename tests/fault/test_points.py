"""A process that dies at every commit boundary, one after the other; and what was accepted ends."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.store.fault_points import POINTS
from tests.fault.load import NEST, Effects, Stubborn, Tally, a_client, a_folder, check, live
from tests.support.program import PATIENCE, ServerProcess, eventually
from tests.support.receiver import Receiver, receiving

#: Points, and at which passing of each the process dies: in a create, later, in an update.
Deaths = list[tuple[str, int]]
DEATHS: Deaths = [(point, 1) for point in POINTS] + [
    (point, 3) for point in POINTS if point.startswith(("accept", "advance", "publish"))
]


@pytest.fixture
def folder() -> Iterator[Path]:
    with a_folder() as found:
        yield found


async def died_and_back(server: ServerProcess, tally: Tally) -> None:
    """Wait until the process is dead, then start it anew."""

    async def dead() -> bool:
        return not server.runs

    await eventually(dead)
    tally.kills += 1
    await asyncio.to_thread(server.start)


async def die_each(server: ServerProcess, effects: Effects, tally: Tally, deaths: Deaths) -> None:
    async with receiving() as receiver, a_client(server.url, tally) as http:
        await asyncio.to_thread(server.start)
        await subscribe(http, receiver)
        for point, times in deaths:
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(server.start, fault=f"{point}:{times}:kill")
            async with asyncio.timeout(2 * PATIENCE), asyncio.TaskGroup() as group:
                group.create_task(died_and_back(server, tally))
                group.create_task(live(http, effects, named(point, times)))
            check(effects, tally, named(point, times))
        await all_told(receiver, deaths)


async def test_dying_at_any_commit_loses_nothing_and_doubles_nothing(folder: Path) -> None:
    """Two servers, each with a database of its own, share the deaths: half the time."""
    effects, tally = Effects(folder), Tally()
    servers = []
    try:
        async with asyncio.TaskGroup() as group:
            for half in (0, 1):
                (own := folder / str(half)).mkdir(mode=0o711)
                servers.append(ServerProcess(own, settings=effects.settings))
                group.create_task(die_each(servers[-1], effects, tally, DEATHS[half::2]))
    finally:
        for server in servers:
            server.stop()
    print(tally)
    assert (tally.lost, tally.doubled) == (0, 0), tally.notes
    assert tally.kills == len(DEATHS)


def named(point: str, times: int) -> str:
    return f"{point.replace('.', '-')}-{times}"


async def subscribe(http: Stubborn, receiver: Receiver) -> None:
    body = {"channel": "webhook", "target": f"{receiver.url}/", "events": ["headgate.stack.*"]}
    status, said = await http.ask("POST", "/subscriptions", body)
    assert status == 201, said


async def all_told(receiver: Receiver, deaths: Deaths) -> None:
    """Every stack's end came to the subscriber, too: at least once, with the same id each time."""

    async def told() -> bool:
        ends = {event["source"].split("/")[4] for event in receiver.events
                if event["type"] == "headgate.stack.delete.completed"}  # fmt: skip
        names = {named(point, times) for point, times in deaths}
        inside = {name.rpartition(f"-{NEST}-")[0] for name in ends - names}
        return ends >= names == inside

    await eventually(told)
    ids: dict[tuple[str, int], set[str]] = {}
    for event in receiver.events:
        ids.setdefault((event["source"], event["sequence"]), set()).add(event["id"])
    assert all(len(one) == 1 for one in ids.values())
