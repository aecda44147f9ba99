"""Who decided what, over all stacks of a project."""

from datetime import timedelta

import pytest

from engine.store.retention import OLD
from tests.integration.nested.test_lives import FILES, nested
from tests.support.changes import gone
from tests.support.program import Http, Json, Program, resource
from tests.support.purging import purge_now
from tests.support.whole_life import settled

A_STACK = "5b2ad3a3-0f6e-4a5c-8f0e-2f2b3c1d4e5f"
RULE: Json = {"at": "*", "on": ["pre-create"]}
HELD: Json = {"hooks": [RULE]}
INSIDE: Json = {"hooks": [RULE, {"at": "web/one", "on": "pre-create"}]}


async def decisions(run: Http, query: str = "") -> list[Json]:
    status, said = await run.call("GET", f"/decisions?{query}")
    assert status == 200, said
    assert said["next"] is None
    return list(said["decisions"])


async def decided(run: Program, name: str, *by: str) -> None:
    """Each hook of a stack, by one after the other."""
    for one in by:
        (hook,) = await run.waiting(name)
        await run.signal(hook, user=one, reason=f"by {one}")
    await run.until_ended(name)


async def test_of_every_stack_newest_first(running: Program) -> None:
    await running.create("s", {"web": nested()}, files=FILES, environment=INSIDE)
    await decided(running, "s", "ann", "bob")
    other = await running.create("t", {"a": resource()}, environment=HELD)
    await decided(running, "t", "ann")
    await running.at("POST", "t", "/breakpoints", {"breakpoints": ["a:pre-update"]})
    found = await decisions(running)
    assert [(one["by"], one["kind"], one["path"], one["point"]) for one in found] == [
        ("anonymous", "breakpoint-added", "", None), ("ann", "continue", "a", "pre-create"),
        ("bob", "continue", "web/one", "pre-create"), ("ann", "continue", "web", "pre-create"),
    ]  # fmt: skip
    assert [one["at"] for one in found] == sorted((one["at"] for one in found), reverse=True)
    own = (await running.at("GET", "t", "/decisions"))["decisions"]
    more = ("stack_name", "path", "point")
    assert [{key: one[key] for key in one if key not in more} for one in found[:2]] == own[::-1]
    assert [one["path"] for one in await decisions(running, "by=ann")] == ["a", "web"]
    assert [one["path"] for one in await decisions(running, "stack=s")] == ["web/one", "web"]
    assert [one["path"] for one in await decisions(running, "stack=s&by=bob")] == ["web/one"]
    assert await decisions(running, f"stack={other}") == found[:2]
    paged: list[Json] = []
    marker = ""
    for _ in found:
        _, page = await running.call("GET", f"/decisions?limit=1{marker}")
        paged += page["decisions"]
        marker = f"&marker={page['next']}"
    assert paged == found and marker.endswith("None")


async def test_of_stacks_that_are_gone_even_from_the_database(running: Program) -> None:
    stack = await running.create("s", {"a": resource()}, environment=HELD)
    await decided(running, "s", "ann")
    await running.at("DELETE", "s")
    await gone(running, "s")
    (before,) = await decisions(running)
    assert before["stack_name"] == "s"
    await settled(running)
    await purge_now(running.database, {kind: timedelta(0) for kind in OLD if kind != "trails"})
    (found,) = await decisions(running, f"stack={stack}")
    assert found["stack_name"] is None and found["hash"] == before["hash"]


async def test_of_another_project_there_is_nothing(running: Program) -> None:
    stack = await running.create("s", {"a": resource()}, environment=HELD)
    await decided(running, "s", "ann")
    other = Http(running.session, running.url, "q")
    assert await decisions(other) == []
    assert await decisions(other, f"stack={stack}") == []
    assert (await other.call("GET", "/decisions?stack=s"))[0] == 404


@pytest.mark.parametrize(
    "query",
    ["marker=x", "marker=2026-01-01T00:00:00Z_x_1", f"marker=2026-01-01T00:00:00_{A_STACK}_1",
     f"marker=2026-01-01T00:00:00Z_{A_STACK}_99999999999", "limit=x"],
)  # fmt: skip
async def test_what_cannot_be_asked(running: Program, query: str) -> None:
    status, said = await running.call("GET", f"/decisions?{query}")
    assert status == 400 and said["error"]["place"] == query.split("=")[0]


async def test_what_an_earlier_version_writes_meanwhile_is_there(running: Program) -> None:
    stack = await running.create("s", {"a": resource()})
    await running.until_ended("s")
    async with running.database.connection() as conn:
        await conn.execute(
            "insert into decision (stack_id, number, kind, by, door, address, reason, digest, data,"
            " at, hash) values ($1, 1, 'refused', 'eve', 'api', '', '', '', 'null', now(), $2)",
            stack, "0" * 64,
        )  # fmt: skip
    assert [one["by"] for one in await decisions(running)] == ["eve"]
