"""The audit log of a project."""

from datetime import timedelta

import pytest

from engine.store.maintenance.retention import KINDS
from tests.integration.nested.test_lifecycle import FILES, nested
from tests.support.changes import until_deleted
from tests.support.full_stack import until_delivered
from tests.support.program import Http, Json, Program, resource
from tests.support.purging import purge_now

INSERT_STACK = "5b2ad3a3-0f6e-4a5c-8f0e-2f2b3c1d4e5f"
RULE: Json = {"at": "*", "on": ["pre-create"]}
HOOKS: Json = {"hooks": [RULE]}
NESTED: Json = {"hooks": [RULE, {"at": "web/one", "on": "pre-create"}]}


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


async def decisions(run: Http, query: str = "") -> list[Json]:
    status, response = await run.call("GET", f"/decisions?{query}")
    assert status == 200, response
    assert response["next"] is None
    return list(response["decisions"])


async def answer_hooks(run: Program, name: str, *by: str) -> None:
    """Answer the hooks of a stack by one principal after the other."""
    for one in by:
        (hook,) = await run.waiting_hooks(name)
        await run.signal(hook, user=one, reason=f"by {one}")
    await run.until_ended(name)


async def test_the_project_log_is_newest_first(running: Program) -> None:
    await running.create("s", {"web": nested()}, files=FILES, environment=NESTED)
    await answer_hooks(running, "s", "ann", "bob")
    other = await running.create("t", {"a": resource()}, environment=HOOKS)
    await answer_hooks(running, "t", "ann")
    await running.stack_request("POST", "t", "/breakpoints", {"breakpoints": ["a:pre-update"]})
    found = await decisions(running)
    assert [(one["by"], one["kind"], one["path"], one["point"]) for one in found] == [
        ("anonymous", "breakpoint-added", "", None), ("ann", "continue", "a", "pre-create"),
        ("bob", "continue", "web/one", "pre-create"), ("ann", "continue", "web", "pre-create"),
    ]  # fmt: skip
    assert [one["at"] for one in found] == sorted((one["at"] for one in found), reverse=True)
    own = (await running.stack_request("GET", "t", "/decisions"))["decisions"]
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


async def test_the_project_log_has_purged_stacks(running: Program) -> None:
    stack = await running.create("s", {"a": resource()}, environment=HOOKS)
    await answer_hooks(running, "s", "ann")
    await running.stack_request("DELETE", "s")
    await until_deleted(running, "s")
    (before,) = await decisions(running)
    assert before["stack_name"] == "s"
    await until_delivered(running)
    await purge_now(
        running.database, {kind: timedelta(0) for kind in KINDS if kind != "audit_logs"}
    )
    (found,) = await decisions(running, f"stack={stack}")
    assert found["stack_name"] is None and found["hash"] == before["hash"]


async def test_the_project_log_has_no_other_project(running: Program) -> None:
    stack = await running.create("s", {"a": resource()}, environment=HOOKS)
    await answer_hooks(running, "s", "ann")
    other = Http(running.session, running.url, "q")
    assert await decisions(other) == []
    assert await decisions(other, f"stack={stack}") == []
    assert (await other.call("GET", "/decisions?stack=s"))[0] == 404


@pytest.mark.parametrize(
    "query",
    ["marker=x", "marker=2026-01-01T00:00:00Z_x_1", f"marker=2026-01-01T00:00:00_{INSERT_STACK}_1",
     f"marker=2026-01-01T00:00:00Z_{INSERT_STACK}_99999999999", "limit=x"],
)  # fmt: skip
async def test_an_invalid_query_is_refused(running: Program, query: str) -> None:
    status, response = await running.call("GET", f"/decisions?{query}")
    assert status == 400 and response["error"]["place"] == query.split("=")[0]


async def test_entries_of_an_earlier_version_are_listed(running: Program) -> None:
    stack = await running.create("s", {"a": resource()})
    await running.until_ended("s")
    async with running.database.connection() as conn:
        await conn.execute(
            "insert into decision (stack_id, number, kind, by, channel, address, reason, digest, data,"
            " at, hash) values ($1, 1, 'refused', 'eve', 'api', '', '', '', 'null', now(), $2)",
            stack, "0" * 64,
        )  # fmt: skip
    assert [one["by"] for one in await decisions(running)] == ["eve"]
