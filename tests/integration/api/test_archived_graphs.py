"""Graphs of ended traversals, whose nodes are deleted."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest_asyncio

from engine.loop_guard import Supervisor
from engine.principal import principal_of_name
from engine.service import StackRequest
from engine.service.reads.graphs import read_graphs
from engine.store.database import Database
from engine.store.maintenance.invariants import find_violations
from engine.store.traversals.graph_archive import FIRST, archive_page
from engine.types.contract import Done, Failed
from engine.work.archive import archive_graphs
from tests.integration.nested.test_lifecycle import FILES, nested
from tests.support.changes import LONG_WAIT, put, thing, until_deleted, until_started
from tests.support.full_stack import value
from tests.support.idle_engine import idle_engine
from tests.support.program import Json, Program, eventually, resource, template
from tests.support.purging import purge_now
from tests.support.scripted_type import World

#: The archived keys of a node.
SHAPE = (
    "id",
    "resource_name",
    "path",
    "type",
    "operation",
    "direction",
    "state",
    "phase",
    "reason",
)


@pytest_asyncio.fixture(loop_scope="session")
async def run(things_in_own_project: Program) -> AsyncIterator[Program]:
    yield things_in_own_project
    async with things_in_own_project.database.connection() as conn:
        assert await find_violations(conn) == {}


async def graph(run: Program, name: str, query: str = "") -> Json:
    return await run.stack_request("GET", name, f"/graph?{query}")


def shape(found: Json) -> Json:
    nodes = [{key: node[key] for key in SHAPE} for node in found["nodes"]]
    return {"nodes": nodes, "edges": found["edges"], "traversal": found["traversal"]}


async def test_the_graph_of_an_ended_traversal_is_kept(run: Program, world: World) -> None:
    """Also of failed traversals, of replacements, and of traversals without nodes."""
    seen: dict[int, Json] = {}

    async def remember_graph() -> None:
        found = await graph(run, "s")
        seen[found["traversal"]["number"]] = shape(found)

    chain = {"a": thing(), "b": thing(depends_on="a"), "c": thing(depends_on=["a", "b"])}
    await run.create("s", chain)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await remember_graph()
    world.script("update", "b", Failed("no room"))
    await put(
        run,
        "s",
        {"a": thing(2), "b": thing(2, depends_on="a"), "c": thing(place="there", depends_on="b")},
    )
    assert await run.until_ended("s") == "UPDATE_FAILED"
    await remember_graph()
    for resources in ({"a": thing(2)}, {"a": thing(2)}, {"a": thing(2, place="there")}):
        await put(run, "s", resources)
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        await remember_graph()
    assert [number for number in seen if not seen[number]["nodes"]] == [4]
    assert {node["reason"] for node in seen[2]["nodes"] if node["state"] == "failed"} == {"no room"}
    for number, found in seen.items():
        assert shape(await graph(run, "s", f"traversal={number}")) == found
    await archive_graphs(run.database)
    for number, found in seen.items():
        assert shape(await graph(run, "s", f"traversal={number}")) == found
    stored = "select count(*) from node n join stack s on s.id = n.stack_id where n.traversal < s.traversal"
    assert await value(run, stored) == 0
    stack = await run.stack("s")
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")
    for number, found in seen.items():
        assert shape(await graph(run, stack["id"], f"traversal={number}")) == found
    last = shape(await graph(run, stack["id"]))
    assert [node["operation"] for node in last["nodes"]] == ["delete"]
    await archive_graphs(run.database)
    assert await value(run, "select count(*) from node") == 0
    for number, found in {**seen, len(seen) + 1: last}.items():
        assert shape(await graph(run, stack["id"], f"traversal={number}")) == found
    assert shape(await graph(run, stack["id"])) == last


async def test_a_graph_is_archived_in_parts_and_complete_in_between(database: Database) -> None:
    """Also if the process ends between two parts, or in the middle of one."""
    engine, names = idle_engine(database), [f"r{number}" for number in range(7)]
    request = StackRequest(name="s", template=template({name: resource() for name in names}))
    stack = await engine.stacks.create("p", request)
    await engine.stacks.stop("p", stack.id, principal_of_name("ann"))
    await engine.stacks.update("p", stack.id, replace(request, template=template({})))
    for archived in (0, 2, 4, 6, 7, 7):
        async with database.rollback_only() as conn:
            await archive_page(conn, FIRST, 2)
        async with database.snapshot() as conn:
            (found,) = await read_graphs(conn, stack.id, 1, nested=False)
            left = await conn.fetchval("select count(*) from node where traversal = 1")
            assert await find_violations(conn) == {}
        assert [node.resource_name for node in found.nodes] == names
        assert {node.state for node in found.nodes} == {"dropped"} and left == 7 - archived
        async with database.transaction() as conn:
            await archive_page(conn, FIRST, 2)
    async with database.connection() as conn:
        assert await archive_page(conn) is None
        parts = await conn.fetch("select cardinality(ids) as size from archived_graph")
    assert sorted(row["size"] for row in parts) == [1, 2, 2, 2]


async def test_a_stack_that_is_being_changed_is_archived_later(database: Database) -> None:
    engine, request = idle_engine(database), StackRequest(template=template({"a": resource()}))
    for name in ("s", "t"):
        stack = await engine.stacks.create("p", replace(request, name=name))
        await engine.stacks.update("p", stack.id, replace(request, template=template({})))
    async with database.transaction() as conn:
        await conn.execute("select from stack where name = 's' for no key update")
        assert await archive_graphs(database) == 1
    assert await archive_graphs(database) == 1
    assert await archive_graphs(database) == 0


async def test_a_superseded_graph_has_nodes_that_ended_later(run: Program, world: World) -> None:
    world.script("create", "a", LONG_WAIT, Done("late"))
    await run.create("s", {"a": thing(), "b": thing(depends_on="a")})
    await until_started(world, "create", "a")
    await put(run, "s", {"a": thing(), "c": thing()})
    await eventually(lambda: until_complete(run, "c"))
    found = await graph(run, "s", "traversal=1")
    states = {node["resource_name"]: node["state"] for node in found["nodes"]}
    assert states == {"a": "parked", "b": "dropped"}
    await archive_graphs(run.database)
    assert shape(await graph(run, "s", "traversal=1")) == shape(found)
    assert await value(run, "select array_agg(name) from node where traversal = 1") == ["a"]
    assert found["edges"] == [[0, 1]]
    await run.stack_request("POST", "s", "/resources/a/signal", {})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    for _ in range(2):
        found = await graph(run, "s", "traversal=1")
        states = {node["resource_name"]: node["state"] for node in found["nodes"]}
        assert states == {"a": "done", "b": "dropped"} and found["edges"] == [[0, 1]]
        await archive_graphs(run.database)
    assert await value(run, "select count(*) from node where traversal = 1") == 0
    assert found["traversal"]["state"] == "superseded"


async def until_complete(run: Program, name: str) -> bool:
    nodes = (await graph(run, "s"))["nodes"]
    return any(node["resource_name"] == name and node["state"] == "done" for node in nodes)


async def test_archived_graphs_of_nested_stacks(run: Program) -> None:
    await run.create("s", {"web": nested("x", "outer.yaml"), "a": thing()}, files=FILES)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    first = await graph(run, "s", "nested=true")
    await put(run, "s", {"web": nested("y", "outer.yaml"), "a": thing()}, files=FILES)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await put(run, "s", {"a": thing()})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    found = await graph(run, "s", "nested=true&traversal=1")
    assert [one["path"] for one in found["stacks"]] == ["web", "web/inner"]
    assert [shape(one) for one in found["stacks"]] == [shape(one) for one in first["stacks"]]
    assert "stacks" not in await graph(run, "s", "traversal=1")
    second = await graph(run, "s", "nested=true&traversal=2")
    assert [one["traversal"]["action"] for one in second["stacks"]] == ["UPDATE", "UPDATE"]
    assert {one["operation"] for one in second["stacks"][1]["nodes"]} == {"update"}


async def test_archived_graphs_contain_no_values(run: Program) -> None:
    key = {"key": {"type": "string", "hidden": True}}
    for turn in ("hush-1", "hush-2", "hush-3"):
        body: Json = {
            "template": {"heat_template_version": "2018-08-31", "parameters": key,
                         "resources": {"a": thing({"get_param": "key"}), "b": thing("open-secret")}},
            "parameters": {"key": turn},
        }  # fmt: skip
        await (run.update("s", "PUT", **body) if turn != "hush-1" else run.create("s", {}, **body))
        assert (await run.until_ended("s")).endswith("COMPLETE")
    await archive_graphs(run.database)
    kept = await value(run, "select jsonb_agg(to_jsonb(p))::text from archived_graph p")
    assert '"a"' in kept and "hush" not in kept and "open-secret" not in kept


async def test_a_missing_graph_is_reported_with_a_remedy(run: Program) -> None:
    stack = await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await put(run, "s", {"a": thing(2)})
    await run.until_ended("s")
    at = f"/stacks/s/{stack}/graph"
    for number in (3, 999_999_999):
        status, response = await run.call("GET", f"{at}?traversal={number}")
        assert (status, response["error"]["type"]) == (404, "TraversalNotFound")
    async with run.database.connection() as conn:  # as an earlier version left it
        await archive_graphs(run.database)
        await conn.execute("delete from archived_graph")
    status, response = await run.call("GET", f"{at}?traversal=1")
    assert (status, response["error"]["type"]) == (404, "TraversalNotFound")
    assert (
        "has been purged" in response["error"]["message"]
        and "/history" in response["error"]["remedy"]
    )
    assert (await run.call("GET", f"{at}?traversal=2"))[0] == 200
    for wrong in ("x", "0", "-1", ""):
        status, response = await run.call("GET", f"{at}?traversal={wrong}")
        assert status == 400 and response["error"]["place"] == "traversal"


async def test_an_abandoned_stack_has_its_graphs(run: Program) -> None:
    stack = await run.create("s", {"a": thing()})
    await run.until_ended("s")
    before = shape(await graph(run, "s"))
    await run.stack_request("DELETE", "s", "/abandon")
    assert shape(await graph(run, stack)) == before


async def test_a_graph_is_purged_with_its_traversal(run: Program) -> None:
    stack = await run.create("s", {"a": thing()})
    await run.until_ended("s")
    for size in (2, 3):
        await put(run, "s", {"a": thing(size)})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
    async with run.database.connection() as conn:
        await conn.execute("delete from template where version < 3")
        await conn.execute(
            "update traversal set ended_at = ended_at - interval '2y' where number = 1"
        )
    await archive_graphs(run.database)
    await purge_now(run.database, {"traversals": timedelta(days=365)})
    status, response = await run.call("GET", f"/stacks/s/{stack}/graph?traversal=1")
    assert (status, response["error"]["type"]) == (404, "TraversalNotFound")
    assert "no traversal 1" in response["error"]["message"]
    assert await value(run, "select array_agg(traversal) from archived_graph") == [2]


async def test_a_graph_that_cannot_be_archived_delays_no_other(database: Database) -> None:
    engine, request = idle_engine(database), StackRequest(template=template({"a": resource()}))
    stacks = []
    for name in ("s", "t", "u"):
        stack = await engine.stacks.create("p", replace(request, name=name))
        await engine.stacks.stop("p", stack.id, principal_of_name("ann"))
        await engine.stacks.update("p", stack.id, replace(request, template=template({})))
        stacks.append(stack.id)
    first, *others = sorted(stacks)
    async with database.connection() as conn:
        await conn.execute(
            "create function refuse() returns trigger language plpgsql as "
            f"$$ begin if old.stack_id = '{first}' then raise exception 'no'; end if; "
            "return old; end $$"
        )
        await conn.execute(
            "create trigger refuse before delete on node for each row execute function refuse()"
        )
    failed: list[str] = []
    guard = Supervisor(failed=failed.append).guard("archive")
    assert await archive_graphs(database, guard=guard) == len(others)
    async with database.connection() as conn:
        queued = await conn.fetch("select stack_id from archive_queue")
    assert [row["stack_id"] for row in queued] == [first] and failed == ["archive"]
