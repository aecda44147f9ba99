"""What it costs that processes come and go: a rolling restart, and the death of an engine."""

import asyncio
import statistics
import time
from datetime import datetime
from pathlib import Path

from tests.bench.shapes import layered
from tests.fault.load import Stubborn
from tests.fault.test_many import House, a_house
from tests.support.postgres import TestServer
from tests.support.program import Json, ServerProcess, template

COUNT, LAYERS = 5_000, 100
#: Seconds each operation takes, so that the create lasts longer than the restarts.
PAUSE = 0.05
TURNS = 3
#: [engine] lease of the processes measured, in seconds; see tests/fault/load.py.
LEASE = 1.0


async def rolling_restart(postgres: TestServer) -> None:
    """Two engines, exchanged one by one while they make a stack; by the database's clock."""
    calm, restarted, within = [], [], 0
    for _ in range(TURNS):
        async with a_house(postgres) as (house, http):
            engines = [await house.engine(), await house.engine()]
            calm.append(await created(http, "calm"))
            making = asyncio.create_task(created(http, "restarted"))
            await begun(http, "restarted")
            for old in engines:
                await asyncio.to_thread(old.stop)
                await house.engine()
                within += not making.done()
            restarted.append(await making)
    usual, slower = statistics.median(calm), statistics.median(restarted)
    print(f"create of {COUNT:,} in {LAYERS} layers, {PAUSE * 1000:.0f} ms each, by two engines;"
          f" medians of {TURNS}")  # fmt: skip
    print(f"  left alone                 {usual:>8.2f} s")
    print(f"  both restarted meanwhile   {slower:>8.2f} s, {slower / usual - 1:+.0%}"
          f" ({within} of {2 * TURNS} restarts were over before the create was)\n")  # fmt: skip


async def created(http: Stubborn, name: str) -> float:
    body = {"stack_name": name, "template": template(paced())}
    status, said = await http.ask("POST", "/stacks", body)
    assert status == 201, said
    while (await traversal(http, name))["state"] != "complete":
        await asyncio.sleep(0.1)
    ended = await traversal(http, name)
    return (moment(ended["ended_at"]) - moment(ended["started_at"])).total_seconds()


def paced() -> Json:
    resources = layered(COUNT, LAYERS)
    for one in resources.values():
        one["properties"]["wait_secs"] = PAUSE
    return resources


async def begun(http: Stubborn, name: str) -> None:
    while (await http.ask("GET", f"/stacks/{name}"))[0] != 200:
        await asyncio.sleep(0.005)


async def traversal(http: Stubborn, name: str) -> Json:
    stack = await http.stack(name)
    path = f"/stacks/{name}/{stack['id']}/versions"
    return (await http.ask("GET", path))[1]["traversals"][0]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def recovery(postgres: TestServer) -> None:
    """From the death of the engine that runs an operation to the next one's call of it."""
    took = []
    async with a_house(postgres) as (house, http):
        for turn in range(TURNS):
            engines = [one for one in house.engines if one.runs]
            engines += [await house.engine() for _ in range(2 - len(engines))]
            took.append(await one_death(house, http, f"s{turn}"))
    print(f"operation of a killed engine taken up again, medians of {TURNS}")
    print(f"  after {statistics.median(took):.2f} s, at a lease of {LEASE:.0f} s\n")


async def one_death(house: House, http: Stubborn, name: str) -> float:
    go = house.folder / f"go-{name}"
    body = {"stack_name": name, "template": template({"a": house.effects.resource(until=str(go))})}
    assert (await http.ask("POST", "/stacks", body))[0] == 201
    holder = await whoever_runs(house)
    holder.kill()
    began = time.perf_counter()
    await whoever_runs(house)
    took = time.perf_counter() - began
    go.touch()
    await http.reaches(name, "CREATE_COMPLETE")
    return took


async def whoever_runs(house: House) -> ServerProcess:
    """The engine that has an operation's process as its child."""
    while True:
        for one in house.engines:
            if one.runs and Path(f"/proc/{one.pid}/task/{one.pid}/children").read_text().split():
                return one
        await asyncio.sleep(0.005)
