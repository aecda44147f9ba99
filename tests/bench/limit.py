"""The limit of this machine: the least that a database must do to execute a graph durably.

It shares no code and no table with Headgate: a slow statement of Headgate does not lower it. One
statement per batch completes resources and claims the next ones: it writes the state of each node,
each resource and two events for it, wakes the resources that depend on them, and commits.
There is no template, no API, no plan, no hook, no lease and no operation.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg

from tests.bench.machine import process_tree_cpu
from tests.bench.server import BenchPostgres

#: Nodes of one statement.
BATCH = 1000
#: Of a node. A node without unfinished requirements is ready.
WAITING, READY, CLAIMED, DONE = range(4)
SCHEMA = f"""
create schema bench;
create table bench.node (
    graph integer not null, id integer not null, state smallint not null,
    waits integer not null, dependents integer[] not null, primary key (graph, id)
) with (fillfactor = 50);
create index ready on bench.node (graph, id) where state = {READY};
create table bench.resource (
    graph integer not null, id integer not null, value text not null, primary key (graph, id)
);
create table bench.event (
    position bigint generated always as identity primary key,
    graph integer not null, id integer not null, kind smallint not null,
    at timestamptz not null default now()
);
-- Completes p_done, whose resources get p_values, and claims up to p_limit nodes.
create function bench.complete_and_claim(p_graph integer, p_done integer[], p_values text[],
                                       p_limit integer) returns integer[]
language plpgsql as $$
declare
    v_claimed integer[];
begin
    if cardinality(p_done) > 0 then
        insert into bench.resource (graph, id, value)
        select p_graph, d.id, d.value from unnest(p_done, p_values) d (id, value);
        insert into bench.event (graph, id, kind)
        select p_graph, d.id, {DONE} from unnest(p_done) d (id);
        with completed as (
            update bench.node set state = {DONE}
             where graph = p_graph and id = any (p_done) and state = {CLAIMED}
            returning dependents
        ), woken as (
            select id, count(*)::integer as finished
              from completed, unnest(dependents) id group by id
        )
        update bench.node n
           set waits = n.waits - w.finished,
               state = case when n.waits = w.finished then {READY} else n.state end
          from woken w
         where n.graph = p_graph and n.id = w.id;
    end if;
    with claimed as (
        update bench.node set state = {CLAIMED}
         where graph = p_graph and id = any (array(
               select r.id from bench.node r
                where r.graph = p_graph and r.state = {READY} order by r.id limit p_limit))
        returning id
    ), recorded as (
        insert into bench.event (graph, id, kind)
        select p_graph, id, {CLAIMED} from claimed
    )
    select array_agg(id) into v_claimed from claimed;
    return coalesce(v_claimed, '{{}}');
end;
$$;
"""
STEP = "select bench.complete_and_claim($1, $2, $3, $4)"
COUNTS = f"""
select (select count(*) from bench.node where graph = $1 and state = {DONE}),
       (select count(*) from bench.resource where graph = $1),
       (select count(*) from bench.event where graph = $1)
"""

Graph = list[tuple[int, list[int]]]


@dataclass(frozen=True, slots=True)
class LimitRun:
    """rate: resources per second, with storing the graph. execute_rate: without it. cpu: seconds of
    PostgreSQL. commits: of the run."""

    rate: float
    execute_rate: float
    cpu: float
    commits: int


class LimitStore:
    """The limit on a database of its own. url: of that database."""

    def __init__(self, postgres: BenchPostgres, conn: asyncpg.Connection, url: str) -> None:
        self._postgres, self.connection, self._url = postgres, conn, url
        self._graphs = itertools.count(1)

    @classmethod
    @asynccontextmanager
    async def open(cls, postgres: BenchPostgres) -> AsyncIterator["LimitStore"]:
        async with postgres.new_database() as url, postgres.connection(url) as conn:
            await conn.execute(SCHEMA)
            yield cls(postgres, conn, url)

    async def run(self, resources: Mapping[str, Any], batch: int = BATCH) -> LimitRun:
        """Execute the graph of these resources of a template."""
        graph = next(self._graphs)
        nodes, values = graph_of(resources), values_of(resources)
        used, started = process_tree_cpu(self._postgres.pid), time.perf_counter()
        await store(self.connection, graph, nodes)
        stored = time.perf_counter()
        commits = await execute(self.connection, graph, values, batch) + 1
        ended, used = time.perf_counter(), process_tree_cpu(self._postgres.pid) - used
        count = len(nodes)
        await self._check(graph, count)
        return LimitRun(count / (ended - started), count / (ended - stored), used, commits)

    async def run_many(self, resources: Mapping[str, Any], count: int, connections: int) -> float:
        """Resources per second of many equal graphs at once, each in transactions of its own."""
        nodes, values = graph_of(resources), values_of(resources)
        graphs = [next(self._graphs) for _ in range(count)]
        left = iter(graphs)

        async def run_graphs() -> None:
            async with self._postgres.connection(self._url) as conn:
                for graph in left:
                    await store(conn, graph, nodes)
                    await execute(conn, graph, values, BATCH)

        started = time.perf_counter()
        await asyncio.gather(*(run_graphs() for _ in range(connections)))
        elapsed = time.perf_counter() - started
        await self._check(graphs[-1], len(nodes))
        return count * len(nodes) / elapsed

    async def _check(self, graph: int, count: int) -> None:
        counts = await self.connection.fetchrow(COUNTS, graph)
        assert counts and tuple(counts) == (count, count, 2 * count), counts


async def store(conn: asyncpg.Connection, graph: int, nodes: Graph) -> None:
    await conn.copy_records_to_table(
        "node",
        schema_name="bench",
        records=[
            (graph, number, WAITING if waits else READY, waits, dependents)
            for number, (waits, dependents) in enumerate(nodes)
        ],
    )


async def execute(conn: asyncpg.Connection, graph: int, values: list[str], batch: int) -> int:
    """The number of commits."""
    commits, claimed = 0, list[int]()
    while True:
        done = [values[number] for number in claimed]
        claimed = await conn.fetchval(STEP, graph, claimed, done, batch)
        commits += 1
        if not claimed:
            return commits


def values_of(resources: Mapping[str, Any]) -> list[str]:
    return [str(resource["properties"]["value"]) for resource in resources.values()]


def graph_of(resources: Mapping[str, Any]) -> Graph:
    """For each resource, the number of its requirements and the positions of its dependents."""
    position = {name: number for number, name in enumerate(resources)}
    dependents: list[list[int]] = [[] for _ in resources]
    waits = []
    for name, resource in resources.items():
        required = resource.get("depends_on", [])
        required = {required} if isinstance(required, str) else set(required)
        waits.append(len(required))
        for other in required:
            dependents[position[other]].append(position[name])
    return list(zip(waits, dependents, strict=True))
