"""Operator rules hold the repair of drift like any other change."""

from collections.abc import AsyncIterator

import pytest

from tests.support.changes import observed
from tests.support.http_things import HTTP_SETTINGS, Things, serve_things, thing
from tests.support.program import program


@pytest.fixture
async def things() -> AsyncIterator[Things]:
    async with serve_things() as service:
        yield service


@pytest.mark.parametrize(
    ("point", "missing"),
    [("pre-stack-update", True), ("pre-create", True), ("pre-update", False)],
)
async def test_a_rule_holds_converge(
    database_url: str, things: Things, point: str, missing: bool
) -> None:
    """Also a rule that was added after the stack was created."""
    async with program(database_url, HTTP_SETTINGS) as run:
        await run.create("s", {"a": thing(things)})
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        (name,) = things.objects
        if missing:
            del things.objects[name]
        else:
            things.objects[name]["size"] = 7
        assert (await observed(run))["resources"] != []
    things.requests.clear()
    rule = {"on": [point]} | ({} if "stack" in point else {"at": "*", "types": ["Headgate::HTTP"]})
    async with program(database_url, HTTP_SETTINGS | {"hooks.rules": [rule]}) as run:
        await run.update("s", converge=True)
        (hook,) = await run.waiting_hooks("s")
        assert hook["point"] == point
        assert things.requests["create"] == things.requests["update"] == 0
        await run.signal(hook, "reject")
        assert await run.until_ended("s") == "UPDATE_FAILED"
        assert things.requests["create"] == things.requests["update"] == 0
