"""Rows are found by key: what is read for a resource grows neither with its stack nor without
statistics, which no table of a new installation has."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from engine.store.connection import Connection, connect
from tests.support.postgres import TestServer
from tests.support.program import Json, Program, eventually, program, resource, template
from tests.support.rows_read import rows_read_so_far, without_statistics

SMALL, LARGE = 250, 1_000
#: Of every table together, for each resource: created, updated and deleted.
PER_RESOURCE = 150
ROOM = {"quotas.template_bytes": 8_000_000}


def wide(count: int, value: str) -> Json:
    return {f"r{n}": resource(value) for n in range(count)}


def layered(count: int, value: str) -> Json:
    """Each resource reads one of the layer before, and depends on another."""
    size = count // 10
    return {
        f"r{n}": resource(
            {"get_attr": [f"r{n - size}", "output"]} if n >= size else value,
            **({"depends_on": f"r{(n // size - 1) * size + (n + 1) % size}"} if n >= size else {}),
        )
        for n in range(count)
    }


SHAPES = {"wide": wide, "layered": layered}


async def life(url: str, name: str, shape: str, count: int) -> None:
    """A stack is created, updated in each of its resources, and deleted."""
    make = SHAPES[shape]
    async with program(url, ROOM) as run:
        await run.create(name, make(count, "x"))
        assert await run.until_ended(name) == "CREATE_COMPLETE"
        await run.update(name, "PUT", template=template(make(count, "y")))
        assert await run.until_ended(name) == "UPDATE_COMPLETE"
        await run.at("DELETE", name)
        await eventually(lambda: is_gone(run, name))


async def is_gone(run: Program, name: str) -> bool:
    status, _ = await run.call("GET", f"/stacks/{name}")
    return status == 404


async def rows_read(postgres: TestServer, shape: str, count: int, analysed: bool) -> Counter[str]:
    """For one life. A program's sessions have ended when it has, and all they read is counted."""
    async with postgres.new_database() as url:
        async with outside(url) as conn:
            await without_statistics(conn)
        if analysed:
            await life(url, "before", shape, count)
            async with outside(url) as conn:
                await conn.execute("analyze")
        async with outside(url) as conn:
            before = await rows_read_so_far(conn)
        await life(url, "s", shape, count)
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
async def test_they_do_not_grow_with_the_stack(
    postgres: TestServer, shape: str, analysed: bool
) -> None:
    small = await rows_read(postgres, shape, SMALL, analysed)
    large = await rows_read(postgres, shape, LARGE, analysed)
    each = {SMALL: small.total() / SMALL, LARGE: large.total() / LARGE}
    assert each[LARGE] < PER_RESOURCE, large.most_common(5)
    assert each[LARGE] < 1.5 * each[SMALL], (each, small.most_common(5), large.most_common(5))
