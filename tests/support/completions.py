"""Resources whose creation the observer completes, and their observers."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine.work.observer.completion_observer import CompletionObserver
from tests.support.http_things import Things, thing
from tests.support.program import Json, Program, eventually

WAITING = "select count(*) from completion where result is null"
PARKED = "select count(*) from node where state = 'parked' and phase = 'execute'"
DUE = "update completion_request set next_at = now() - interval '1s'"
_run = CompletionObserver.run


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


@contextmanager
def pause_completion_observers() -> Iterator[list[CompletionObserver]]:
    """The observers of programs that start in this context do not run, so that tests run them."""
    observers: list[CompletionObserver] = []

    async def pause(self: CompletionObserver, stop: asyncio.Event) -> None:
        observers.append(self)
        await stop.wait()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompletionObserver, "run", pause)
        yield observers


@contextmanager
def run_completion_observers() -> Iterator[None]:
    """Observers that run in this context do so, also if those of programs are paused."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompletionObserver, "run", _run)
        yield


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
