"""Resources whose creation the observer completes, and their observers."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine.work.completion_observer import CompletionObserver
from tests.support.http_things import HTTP_SETTINGS, Things, thing
from tests.support.program import Json, Program, eventually, program

WAITING = "select count(*) from completion where result is null"
PARKED = "select count(*) from node where state = 'parked' and phase = 'execute'"
DUE = "update completion_request set next_at = now() - interval '1s'"


def building(things: Things, *, state: str = "building", size: int = 1, **more: Json) -> Json:
    """An object that the service only begins to build; the list says when it is ready."""
    body = {"size": size, "state": state}
    properties: Json = {
        "create": {"url": "/things", "body": body},
        "update": {"url": "/things/${id}", "body": body},
        "read": None,
        "attributes": {"address": "$.address"},
        "interval": 1,
        "ready": {
            "source": "list", "path": "$.state", "values": ["ready"], "failed": ["broken"],
        },
    }  # fmt: skip
    found = thing(things, size=size)
    merged = {**found["properties"], **properties, **more}
    present = {name: value for name, value in merged.items() if value is not None}
    return {**found, "properties": present}


@asynccontextmanager
async def unobserved_program(
    url: str, monkeypatch: pytest.MonkeyPatch, overrides: Mapping[str, Any] | None = None
) -> AsyncIterator[tuple[Program, CompletionObserver]]:
    """A program whose observer does not run, and that observer, for tests to run."""
    observers: list[CompletionObserver] = []

    async def keep(self: CompletionObserver, stop: asyncio.Event) -> None:
        observers.append(self)
        await stop.wait()

    monkeypatch.setattr(CompletionObserver, "run", keep)
    async with program(url, {**HTTP_SETTINGS, **(overrides or {})}) as run:
        async with asyncio.timeout(30):
            while not observers:
                await asyncio.sleep(0.01)
        yield run, observers[0]


async def until_waiting(run: Program, count: int) -> None:
    """Until so many operations wait for the observer, and their nodes are parked."""

    async def reached() -> bool:
        pool = run.database.pool
        return bool(await pool.fetchval(WAITING) == count == await pool.fetchval(PARKED))

    await eventually(reached)


async def send_now(run: Program, observer: CompletionObserver) -> None:
    """Send all requests now, whenever they are due."""
    await run.database.pool.execute(DUE)
    await observer.send_due()


def finish(things: Things, state: str = "ready") -> None:
    for one in things.objects.values():
        one |= {"state": state, "address": f"10.0.0.{one['id'][1:]}"}
