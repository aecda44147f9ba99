"""The graphs of traversals that are over, when their nodes are gone."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from engine.store.invariants import breaches
from engine.types.contract import Done, Failed
from tests.integration.nested.test_lives import FILES, nested
from tests.support.changes import FAR, begun, gone, put, thing
from tests.support.program import Json, Program, eventually, program
from tests.support.purging import purge_now
from tests.support.things import Thing, World
from tests.support.whole_life import value

#: What is kept of a node.
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


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def run(database_url: str, world: World) -> AsyncIterator[Program]:
    async with program(database_url, {"engine.poll": "1s"}, types=[Thing(world)]) as made:
        yield made
        async with made.database.connection() as conn:
            assert await breaches(conn) == {}


async def graph(run: Program, name: str, query: str = "") -> Json:
    return await run.at("GET", name, f"/graph?{query}")


def shape(found: Json) -> Json:
    nodes = [{key: node[key] for key in SHAPE} for node in found["nodes"]]
    return {"nodes": nodes, "edges": found["edges"], "traversal": found["traversal"]}


async def test_a_graph_stays_as_it_ended(run: Program, world: World) -> None:
    """Also one that failed; one that is replaced; one in which there was nothing to do."""
    seen: dict[int, Json] = {}

    async def keep() -> None:
        found = await graph(run, "s")
        seen[found["traversal"]["number"]] = shape(found)

    chain = {"a": thing(), "b": thing(depends_on="a"), "c": thing(depends_on=["a", "b"])}
    await run.create("s", chain)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await keep()
    world.will("update", "b", Failed("no room"))
    await put(
        run,
        "s",
        {"a": thing(2), "b": thing(2, depends_on="a"), "c": thing(place="there", depends_on="b")},
    )
    assert await run.until_ended("s") == "UPDATE_FAILED"
    await keep()
    for resources in ({"a": thing(2)}, {"a": thing(2)}, {"a": thing(2, place="there")}):
        await put(run, "s", resources)
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        await keep()
    assert [number for number in seen if not seen[number]["nodes"]] == [4]
    assert {node["reason"] for node in seen[2]["nodes"] if node["state"] == "failed"} == {"no room"}
    for number, found in seen.items():
        assert shape(await graph(run, "s", f"traversal={number}")) == found
    stored = "select count(*) from node n join stack s on s.id = n.stack_id where n.traversal < s.traversal"
    assert await value(run, stored) == 0
    stack = await run.stack("s")
    await run.at("DELETE", "s")
    await gone(run, "s")
    for number, found in seen.items():
        assert shape(await graph(run, stack["id"], f"traversal={number}")) == found
    last = await graph(run, stack["id"])
    assert [node["operation"] for node in last["nodes"]] == ["delete"]
    assert last == await graph(run, stack["id"], f"traversal={len(seen) + 1}")


async def test_what_still_acted_when_it_was_superseded_is_in_its_graph(
    run: Program, world: World
) -> None:
    world.will("create", "a", FAR, Done("late"))
    await run.create("s", {"a": thing(), "b": thing(depends_on="a")})
    await begun(world, "create", "a")
    await put(run, "s", {"a": thing(), "c": thing()})
    await eventually(lambda: is_done(run, "c"))
    found = await graph(run, "s", "traversal=1")
    states = {node["resource_name"]: node["state"] for node in found["nodes"]}
    assert states == {"a": "parked", "b": "dropped"}
    assert found["edges"] == [[0, 1]]
    await run.at("POST", "s", "/resources/a/signal", {})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await put(run, "s", {"a": thing()})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    found = await graph(run, "s", "traversal=1")
    states = {node["resource_name"]: node["state"] for node in found["nodes"]}
    assert states == {"a": "done", "b": "dropped"} and found["edges"] == [[0, 1]]
    assert found["traversal"]["state"] == "superseded"


async def is_done(run: Program, name: str) -> bool:
    nodes = (await graph(run, "s"))["nodes"]
    return any(node["resource_name"] == name and node["state"] == "done" for node in nodes)


async def test_with_those_of_stacks_inside_that_it_began(run: Program) -> None:
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
    assert {one["operation"] for one in second["stacks"][1]["nodes"]} == {"update", "delete"}


async def test_no_value_of_anything_is_kept(run: Program) -> None:
    key = {"key": {"type": "string", "hidden": True}}
    for turn in ("hush-1", "hush-2", "hush-3"):
        body: Json = {
            "template": {"heat_template_version": "2018-08-31", "parameters": key,
                         "resources": {"a": thing({"get_param": "key"}), "b": thing("open-secret")}},
            "parameters": {"key": turn},
        }  # fmt: skip
        await (run.update("s", "PUT", **body) if turn != "hush-1" else run.create("s", {}, **body))
        assert (await run.until_ended("s")).endswith("COMPLETE")
    kept = await value(run, "select jsonb_agg(to_jsonb(p))::text from past_graph p")
    assert '"a"' in kept and "hush" not in kept and "open-secret" not in kept


async def test_what_is_not_kept_is_said_with_what_to_do(run: Program) -> None:
    stack = await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await put(run, "s", {"a": thing(2)})
    await run.until_ended("s")
    at = f"/stacks/s/{stack}/graph"
    for number in (0, 3, 999_999_999):
        status, said = await run.call("GET", f"{at}?traversal={number}")
        assert (status, said["error"]["type"]) == (404, "TraversalNotFound")
    async with run.database.connection() as conn:  # an earlier version has forgotten it
        await conn.execute("delete from past_graph")
    status, said = await run.call("GET", f"{at}?traversal=1")
    assert (status, said["error"]["type"]) == (404, "TraversalNotFound")
    assert "has been purged" in said["error"]["message"] and "/history" in said["error"]["remedy"]
    assert (await run.call("GET", f"{at}?traversal=2"))[0] == 200
    for wrong in ("x", "-1", ""):
        status, said = await run.call("GET", f"{at}?traversal={wrong}")
        assert status == 400 and said["error"]["place"] == "traversal"


async def test_an_abandoned_stack_has_its_graphs(run: Program) -> None:
    stack = await run.create("s", {"a": thing()})
    await run.until_ended("s")
    before = shape(await graph(run, "s"))
    await run.at("DELETE", "s", "/abandon")
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
    await purge_now(run.database, {"traversals": timedelta(days=365)})
    status, said = await run.call("GET", f"/stacks/s/{stack}/graph?traversal=1")
    assert (status, said["error"]["type"]) == (404, "TraversalNotFound")
    assert "no traversal 1" in said["error"]["message"]
    assert await value(run, "select array_agg(traversal) from past_graph") == [2]
