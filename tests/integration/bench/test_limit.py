"""The limit that benchmarks compare with, and the CPU time that they measure."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.bench.limit import CLAIMED, DONE, LimitStore, graph_of
from tests.bench.machine import cpu, process_tree_cpu
from tests.bench.server import BenchPostgres, running_postgres
from tests.bench.shapes import chain, layered, wide
from tests.support.receiver import until

EVENTS = "select position, id, kind from bench.event where graph = 1 order by position"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench_postgres() -> AsyncIterator[BenchPostgres]:
    async with running_postgres() as postgres:
        yield postgres


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("make", [wide, layered, chain])
@pytest.mark.parametrize("batch", [3, 1000])
async def test_limit_claims_a_node_when_all_its_requirements_are_done(
    bench_postgres: BenchPostgres, make: object, batch: int
) -> None:
    """The nodes are stored in reverse order, so that their IDs do not sort them."""
    assert callable(make)
    resources = dict(reversed(make(40).items()))
    async with LimitStore.open(bench_postgres) as store:
        result = await store.run(resources, batch=batch)
        rows = await store.connection.fetch(EVENTS)
    positions = {(row["id"], row["kind"]): row["position"] for row in rows}
    assert len(positions) == 2 * len(resources)
    for number, (_, dependents) in enumerate(graph_of(resources)):
        assert positions[number, CLAIMED] < positions[number, DONE]
        for dependent in dependents:
            assert positions[number, DONE] < positions[dependent, CLAIMED]
    assert result.rate < result.execute_rate and result.cpu > 0


async def test_cpu_time_is_that_of_another_process(bench_postgres: BenchPostgres) -> None:
    """A query that computes for a while uses CPU time of PostgreSQL, and little of this process."""
    own, other, idle = (
        time.process_time(),
        process_tree_cpu(bench_postgres.pid),
        cpu(bench_postgres.pid),
    )
    async with bench_postgres.connection() as conn:
        await conn.execute("select sum(sqrt(n)) from generate_series(1, 2000000) n")
        used, backend = process_tree_cpu(bench_postgres.pid) - other, conn.get_server_pid()
    assert time.process_time() - own < used
    assert cpu(bench_postgres.pid) - idle < used, "the backend is a child"
    await until(lambda: not Path(f"/proc/{backend}").exists())
    assert process_tree_cpu(bench_postgres.pid) - other > used / 2, (
        "it still counts when it has ended"
    )
