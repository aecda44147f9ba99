"""Rows are found by key: the number of rows read per resource does not grow with the stack, also
without table statistics, as in a new installation.
"""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from engine.service import StackRequest
from engine.store.connection import Connection, connect
from engine.store.database import open_database
from engine.store.traversals.advance import advance
from tests.support.idle_engine import idle_engine
from tests.support.postgres import TestServer
from tests.support.program import Json, Program, eventually, program, resource, template
from tests.support.rows_read import rows_read_so_far, without_statistics

SMALL, LARGE = 250, 1_000
#: For all tables together, per resource that is created, updated and deleted.
PER_RESOURCE = 150
TOLERANCE = {"quotas.template_bytes": 8_000_000}


def wide(count: int, value: str) -> Json:
    return {f"r{n}": resource(value) for n in range(count)}


def layered(count: int, value: str) -> Json:
    """Each resource reads one of the previous layer, and depends on another one."""
    size = count // 10
    return {
        f"r{n}": resource(
            {"get_attr": [f"r{n - size}", "output"]} if n >= size else value,
            **({"depends_on": f"r{(n // size - 1) * size + (n + 1) % size}"} if n >= size else {}),
        )
        for n in range(count)
    }


SHAPES = {"wide": wide, "layered": layered}


async def run_stack(url: str, name: str, shape: str, count: int) -> None:
    """Create a stack, update each of its resources, and delete it."""
    make = SHAPES[shape]
    async with program(url, TOLERANCE) as run:
        await run.create(name, make(count, "x"))
        assert await run.until_ended(name) == "CREATE_COMPLETE"
        await run.update(name, "PUT", template=template(make(count, "y")))
        assert await run.until_ended(name) == "UPDATE_COMPLETE"
        await run.stack_request("DELETE", name)
        await eventually(lambda: is_gone(run, name))


async def is_gone(run: Program, name: str) -> bool:
    status, _ = await run.call("GET", f"/stacks/{name}")
    return status == 404


async def rows_read(postgres: TestServer, shape: str, count: int, analysed: bool) -> Counter[str]:
    """The rows that one run of the program reads; PostgreSQL counts them when its sessions end."""
    async with postgres.new_database() as url:
        async with outside(url) as conn:
            await without_statistics(conn)
        if analysed:
            await run_stack(url, "before", shape, count)
            async with outside(url) as conn:
                await conn.execute("analyze")
        async with outside(url) as conn:
            before = await rows_read_so_far(conn)
        await run_stack(url, "s", shape, count)
        async with outside(url) as conn:
            return await rows_read_so_far(conn) - before


@asynccontextmanager
async def outside(url: str) -> AsyncIterator[Connection]:
    conn = await connect(url)
    try:
        yield conn
    finally:
        await conn.close()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("analysed", [False, True], ids=["never analysed", "analysed"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_rows_read_per_resource_do_not_grow_with_the_stack(
    postgres: TestServer, shape: str, analysed: bool
) -> None:
    small = await rows_read(postgres, shape, SMALL, analysed)
    large = await rows_read(postgres, shape, LARGE, analysed)
    each = {SMALL: small.total() / SMALL, LARGE: large.total() / LARGE}
    assert each[LARGE] < PER_RESOURCE, large.most_common(5)
    assert each[LARGE] < 1.5 * each[SMALL], (each, small.most_common(5), large.most_common(5))


#: Traversals that wait for a timer, and as many that have ended.
PLANNED = """
insert into traversal (stack_id, number, project, action, version, state, reason, digest,
                       active_nodes, requested_by, wake_at)
select gen_random_uuid(), 1, 'p' || n % 100, 'CREATE', 1,
       case n % 2 when 0 then 'running' else 'complete' end, '', 'd', n % 2, 'o',
       case n % 2 when 0 then clock_timestamp() + interval '1 day' end
  from generate_series(1, $1) n
"""


async def rows_of_an_empty_claim(postgres: TestServer, planned: int, analysed: bool) -> int:
    async with postgres.new_database() as url:
        async with outside(url) as conn:
            await without_statistics(conn)
            await conn.execute(PLANNED, planned)
            if analysed:
                await conn.execute("analyze")
        async with outside(url) as conn:
            before = await rows_read_so_far(conn)
        database = await open_database(url)
        async with database.connection() as conn:
            for _ in range(10):
                assert (await advance(conn, "w", timedelta(minutes=1), 250, [])).due_in
        await database.close()
        async with outside(url) as conn:
            return (await rows_read_so_far(conn) - before).total()


@pytest.mark.parametrize("analysed", [False, True], ids=["never analysed", "analysed"])
async def test_an_empty_claim_reads_no_planned_work(postgres: TestServer, analysed: bool) -> None:
    few = await rows_of_an_empty_claim(postgres, 20, analysed)
    many = await rows_of_an_empty_claim(postgres, 10_000, analysed)
    assert many <= few + 10, (few, many)


async def rows_of_claims(postgres: TestServer, due: int, analysed: bool) -> int:
    """The rows of nodes that claims of 100 of these nodes read, which are all due at one time."""
    async with postgres.new_database() as url:
        async with outside(url) as conn:
            await without_statistics(conn)
        database = await open_database(url)
        try:
            request = StackRequest(name="s", template=template(wide(due, "x")))
            await idle_engine(database).stacks.create("p", request)
            async with outside(url) as conn:
                if analysed:
                    await conn.execute("analyze")
                before = await rows_read_so_far(conn)
            async with database.connection() as conn:
                for _ in range(10):
                    claimed = await advance(conn, "w", timedelta(minutes=1), 10, [])
                    assert len(claimed.work) == 10
        finally:
            await database.close()
        async with outside(url) as conn:
            return (await rows_read_so_far(conn) - before)["node"]


@pytest.mark.parametrize("analysed", [False, True], ids=["never analysed", "analysed"])
async def test_a_claim_reads_few_of_the_nodes_that_are_due(
    postgres: TestServer, analysed: bool
) -> None:
    few = await rows_of_claims(postgres, 120, analysed)
    many = await rows_of_claims(postgres, 4_000, analysed)
    assert many <= few + 10, (few, many)
