"""Objects by a prefix of their ID."""

from uuid import UUID

import pytest

from engine.store.projects.id_prefixes import MAX_MATCHES, range_of_ids, read_ids_with_prefix
from tests.integration.nested.test_lifecycle import FILES, nested
from tests.support.changes import until_deleted
from tests.support.program import Json, Program, eventually, resource

WAITING = {"hooks": [{"at": "web/two", "on": ["pre-create"]}]}


async def found(run: Program, prefix: str, query: str = "") -> list[Json]:
    status, document = await run.call("GET", f"/ids?prefix={prefix}{query}")
    assert status == 200, document
    ids: list[Json] = document["ids"]
    return ids


async def test_a_stack_is_found_by_any_prefix_also_a_deleted_one(in_own_project: Program) -> None:
    run = in_own_project
    await run.create("shop", {"a": resource()})
    await run.until_ended("shop")
    stack_id = (await run.stack("shop"))["id"]
    expected = {"kind": "stack", "id": stack_id, "name": "shop"}
    for prefix in (stack_id[:4], stack_id[:8].upper(), stack_id[:9], stack_id[:35], stack_id):
        assert await found(run, prefix) == [expected]
    assert await found(run, stack_id[:8], "&kind=hook") == []
    await run.stack_request("DELETE", "shop")
    await until_deleted(run, "shop")
    assert await found(run, stack_id[:8], "&kind=stack") == [expected]
    run.project = f"{run.project}-other"
    assert await found(run, stack_id) == []


async def test_a_hook_is_found_with_its_place_also_an_answered_one(in_own_project: Program) -> None:
    run = in_own_project
    await run.create("tree", {"web": nested()}, files=FILES, environment=WAITING)
    (hook,) = await run.waiting_hooks("tree")
    expected = {"kind": "hook", "id": hook["id"], "name": "tree:web/two:pre-create"}
    assert await found(run, hook["id"][:8], "&kind=hook") == [expected]
    await run.signal(hook)
    await run.until_ended("tree")
    assert await found(run, hook["id"][:8]) == [expected]
    run.project = f"{run.project}-other"
    assert await found(run, hook["id"]) == []


async def test_a_subscription_and_its_deliveries_are_found(in_own_project: Program) -> None:
    run = in_own_project
    body = {"target": "http://127.0.0.1:9/", "types": ["OS::*"]}
    status, subscription = await run.call("POST", "/subscriptions", body)
    assert status == 201, subscription
    expected = {"kind": "subscription", "id": subscription["id"], "name": "webhook"}
    assert await found(run, subscription["id"][:8]) == [expected]
    await run.create("shop", {"a": resource()})

    async def deliveries() -> list[Json]:
        _, page = await run.call("GET", f"/subscriptions/{subscription['id']}/deliveries")
        return list(page["deliveries"])

    (delivery, *_) = await eventually(deliveries)
    expected = {"kind": "delivery", "id": delivery["id"], "name": delivery["type"]}
    assert await found(run, delivery["id"][:8]) == [expected]
    assert await found(run, delivery["id"], "&kind=subscription") == []
    run.project = f"{run.project}-other"
    assert await found(run, delivery["id"]) == await found(run, subscription["id"]) == []


@pytest.mark.parametrize(
    "prefix", ["3f2", "shop", "3f2a-", "3f2a1b4c0", "3f2a1b4c--", "%20%20%20%20"]
)
async def test_what_no_id_begins_with_is_refused(in_own_project: Program, prefix: str) -> None:
    status, document = await in_own_project.call("GET", f"/ids?prefix={prefix}")
    assert status == 400 and document["error"]["findings"][0]["place"] == "prefix"


async def test_few_matches_are_read(in_own_project: Program) -> None:
    insert = """
    insert into stack (id, project, name, owner, version, traversal)
    select ('3f2a' || lpad(n::text, 28, '0'))::uuid, $1, 'n' || n, 'o', 1, 1 from generate_series(1, 50) n
    """
    ids = range_of_ids("3f2a")
    assert ids is not None
    async with in_own_project.database.connection() as conn:
        await conn.execute(insert, in_own_project.project)
        matches = await read_ids_with_prefix(conn, in_own_project.project, "stack", ids)
    assert [one.name for one in matches] == [f"n{n}" for n in range(1, MAX_MATCHES + 1)]


def test_the_range_of_a_prefix_has_all_ids_that_begin_with_it() -> None:
    first, last = UUID("3f2a1" + "0" * 27), UUID("3f2a1" + "f" * 27)
    assert range_of_ids("3F2a1") == (first, last)
    assert range_of_ids(str(first)) == (first, first)
