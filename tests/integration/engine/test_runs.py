"""Runs: nodes whose operations only compute are executed together with those that wait for them."""

import asyncio
import math
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from engine.service import StackRequest
from engine.store.database import Database
from engine.store.traversals.advance import AdvanceResult, advance
from engine.types.value import Value
from engine.work.nodes import worker
from engine.work.nodes.runs import LaterNodes, Runs
from tests.model.replay import RETRYING
from tests.support.idle_engine import idle_engine, make_registry
from tests.support.manual_worker import LEASE, ONE_DAY, expire_leases_and_timers
from tests.support.program import Json, Program, template

#: One for each transaction, because `now()` is its start.
TRANSACTIONS = """
select count(distinct e.time) from event e join stack s on s.id = e.stack_id where s.name = $1
"""
NODES = """
select n.name, n.state, n.pending_dependencies, n.operation_key::text as key, r.physical_id
  from node n join resource r on r.stack_id = n.stack_id and r.id = n.resource_id
 order by n.id
"""


def value(content: Json, **more: Json) -> Json:
    return {"type": "OS::Heat::Value", "properties": {"value": content, **more}}


def of(name: str) -> Json:
    return {"get_attr": [name, "value"]}


def chain(count: int) -> Json:
    """Each value reads the one before."""
    first: Json = {"r0": value("0")}
    return first | {f"r{n}": value(of(f"r{n - 1}")) for n in range(1, count)}


@pytest.fixture(autouse=True)
def no_time_limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs do not end early on a loaded machine."""
    monkeypatch.setattr(worker, "RUN_SECONDS", math.inf)
    yield


@pytest.fixture
def run(in_own_project: Program) -> Program:
    return in_own_project


@pytest.mark.parametrize(("count", "runs"), [(1, 1), (100, 1), (101, 1), (102, 2), (250, 3)])
async def test_a_chain_of_values_is_a_few_commits(run: Program, count: int, runs: int) -> None:
    """The request, the first claim, one commit for each run, which claims the next, and the end. A
    run has the claimed node and 100 later ones."""
    await run.create("s", chain(count))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    async with run.database.connection() as conn:
        assert await conn.fetchval(TRANSACTIONS, "s") == 3 + runs


async def test_every_node_is_written_as_if_it_had_been_claimed(run: Program) -> None:
    await run.create("s", chain(30))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    async with run.database.connection() as conn:
        nodes = await conn.fetch(NODES)
    assert {(row["state"], row["pending_dependencies"]) for row in nodes} == {("done", 0)}
    assert [row["physical_id"] for row in nodes] == [row["key"] for row in nodes]
    assert len({row["key"] for row in nodes}) == 30
    events = [
        (one["resource_name"], one["resource_status"])
        for one in await run.events("s")
        if one["resource_name"] != "s"
    ]
    assert sorted(events) == sorted(EVENTS)
    assert events in (EVENTS, EVENTS[::-1])


#: Of the chain: the next one starts when the one before has completed.
EVENTS = [
    (f"r{n}", status) for n in range(30) for status in ("CREATE_IN_PROGRESS", "CREATE_COMPLETE")
]

#: Values that the database changes when it stores them: the order of keys, and numbers.
VALUES: Json = {
    "a": value('{"zz": 1, "b": [true, null, {"yy": "1", "x": 2}], "": "ä", "€": 3}', type="json"),
    "b": value(of("a")),
    "c": value({"str_replace": {"template": "<$x>", "params": {"$x": of("b")}}}),
    "d": value({"list_join": ["/", [of("c"), {"get_resource": "b"}]]}),
    "e": value("1e17", type="number"),
    "f": value(of("e")),
    "g": value({"str_replace": {"template": "<$x>", "params": {"$x": of("f")}}}),
    "h": value([of("c"), of("g")]),
    "p": value({"yaql": {"expression": "$.data.keys()", "data": of("b")}}),
    "i": {"type": "OS::Heat::None", "depends_on": ["h"]},
    "j": {"type": "OS::Heat::TestResource", "properties": {"value": of("c")}},
    "k": value({"get_attr": ["j", "output"]}),
    "l": value(of("k")),
    "n": value(of("c"), type="number"),
    "o": value(of("n")),
}


async def test_a_run_has_the_same_result_as_single_nodes(
    run: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run.create("runs", VALUES)
    assert await run.until_ended("runs") == "CREATE_FAILED"
    in_runs = await observed(run, "runs")
    async with run.database.connection() as conn:
        in_commits = await conn.fetchval(TRANSACTIONS, "runs")
    monkeypatch.setattr(Value, "computes_only", False)
    await run.create("single", VALUES)
    assert await run.until_ended("single") == "CREATE_FAILED"
    assert await observed(run, "single") == in_runs
    async with run.database.connection() as conn:
        assert await conn.fetchval(TRANSACTIONS, "single") > in_commits


async def observed(run: Program, name: str) -> Json:
    """The resources and the events of each, without IDs and times."""
    found = {}
    for one in await run.resources(name):
        stack = await run.stack(name)
        path = f"/stacks/{name}/{stack['id']}/resources/{one}"
        shown = (await run.call("GET", path))[1]["resource"]
        kept = {
            key: shown.get(key)
            for key in ("attributes", "resource_status", "resource_status_reason")
        }
        found[one] = re.sub("[0-9a-f-]{36}", "ID", str(kept))
    events = [
        (one["resource_name"], one["resource_status"], one["resource_status_reason"])
        for one in await run.events(name)
        if one["resource_name"] in found
    ]
    order = {one: [event[1:] for event in events if event[0] == one] for one in found}
    return found, order


class Claims:
    """A worker that a test moves by hand, with a chain of values."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.registry = make_registry()
        self.engine = idle_engine(database)
        self.runs = Runs(self.registry, RETRYING, lambda _: 1_000_000, uuid4, ONE_DAY)

    async def create(self, resources: Json) -> Any:
        request = StackRequest(name="s", template=template(resources))
        return (await self.engine.stacks.create("p", request)).id

    async def claim(self, want: int = 10) -> AdvanceResult:
        types = self.registry.computing_types()
        async with self.database.connection() as conn:
            return await advance(conn, "w", LEASE, want, [], run_types=types)


@pytest.fixture
def claims(database: Database) -> Claims:
    return Claims(database)


async def test_a_claim_returns_later_nodes_in_their_order(claims: Claims) -> None:
    await claims.create(chain(150))
    claimed = await claims.claim()
    assert [work.name for work in claimed.work] == ["r0"]
    assert [work.name for work in claimed.later] == [f"r{n}" for n in range(1, 101)]
    assert [work.run_after for work in claimed.later] == [
        work.key.node for work in (*claimed.work, *claimed.later[:-1])
    ]


async def test_what_ended_a_worker_is_executed_alone(claims: Claims) -> None:
    """A later node that ends the process does not count as a failure of the first one for long."""
    stack = await claims.create(chain(5))
    assert (await claims.claim()).later
    await expire_leases_and_timers(claims.database, stack)
    again = await claims.claim()
    assert [work.name for work in again.work] == ["r0"]
    assert again.later == []


async def test_only_types_that_compute_are_in_runs(claims: Claims) -> None:
    resources = chain(3)
    resources["r2"] = {
        "type": "OS::Heat::TestResource", "properties": {"value": of("r1")},
    }  # fmt: skip
    resources["r3"] = value({"get_attr": ["r2", "output"]})
    await claims.create(resources)
    assert [work.name for work in (await claims.claim()).later] == ["r1"]


async def test_secrets_are_not_in_runs(run: Program) -> None:
    """Encrypted values are written and read as they always are."""
    resources: Json = {
        "a": {"type": "OS::Heat::RandomString"},
        "b": value(of("a")),
        "c": value(of("b")),
        "d": value("open"),
        "e": value({"list_join": ["", [of("d"), {"get_param": "key"}]]}),
        "f": value(of("e")),
    }
    parameters = {"key": {"type": "string", "hidden": True, "default": "s3cret-value"}}
    body = {
        "stack_name": "s", "template": template(resources, parameters=parameters),
    }  # fmt: skip
    assert (await run.call("POST", "/stacks", body))[0] == 201
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    async with run.database.connection() as conn:
        rows = await conn.fetch("select name, attributes::text from resource order by name")
        transactions = await conn.fetchval(TRANSACTIONS, "s")
    assert [row["name"] for row in rows if "$sealed" in row["attributes"]] == list("abcef")
    assert transactions == 3 + 3  # a and d, b and e, c and f


async def test_a_run_ends_when_its_time_is_over(
    run: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "RUN_SECONDS", -1)
    await run.create("s", chain(20))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    async with run.database.connection() as conn:
        assert await conn.fetchval(TRANSACTIONS, "s") == 3 + 20


@pytest.mark.parametrize(("size", "transactions"), [(10, 5), (50_000, 6)])
async def test_large_values_are_not_read_for_runs(
    run: Program, size: int, transactions: int
) -> None:
    """b reads t and a. Its run with a would read t before a limit applies."""
    resources: Json = {
        "t": {"type": "OS::Heat::TestResource", "properties": {"value": "x" * size}},
        "a": {**value("a"), "depends_on": ["t"]},
        "b": value([of("a"), {"get_attr": ["t", "output"]}]),
    }
    await run.create("s", resources)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    async with run.database.connection() as conn:
        assert await conn.fetchval(TRANSACTIONS, "s") == transactions


async def test_an_executed_run_is_lost_with_its_worker(claims: Claims) -> None:
    """Nothing of it is stored before it is written."""
    stack = await claims.create(chain(3))
    claimed = await claims.claim()
    nodes = LaterNodes(claimed.later, asyncio.get_running_loop().time() + 60)
    assert len(list(nodes.after(claimed.work[0]))) == 1
    await expire_leases_and_timers(claims.database, stack)
    assert [work.name for work in (await claims.claim()).work] == ["r0"]
