"""The benchmark at a small size: what it runs, and what its figures are made of."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from tests.bench import create, figures, hooks, machine, reads, scale
from tests.bench import run as run_module
from tests.bench.change import change
from tests.bench.client import Client
from tests.bench.figures import Figures, Key
from tests.bench.run import Run
from tests.bench.server import BenchPostgres, Server, running_postgres


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench_postgres() -> AsyncIterator[BenchPostgres]:
    async with running_postgres() as postgres:
        yield postgres


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_parts_measure_every_size(
    bench_postgres: BenchPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, value in (
        (create, "STACKS", 2), (hooks, "STACK", 5), (hooks, "SIGNALS", 2), (hooks, "STACKS", 2),
        (machine, "SAMPLES", 1), (run_module, "WARM", 1),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    run = Run(bench_postgres, rounds=1, sizes=(10, 20), largest=30)
    async with run.server() as started:

        @asynccontextmanager
        async def shared(_: Run) -> AsyncIterator[tuple[Server, Client]]:
            yield started

        monkeypatch.setattr(Run, "server", shared)
        for part in (create.create, change, hooks.hooks):
            await part(run)
    result = figures.derive(run.figures)
    costs = {"rate", "server_cpu", "postgres_cpu", "load"}
    for shape in create.SHAPES:
        for size in run.sizes:
            assert costs | {"limit", "share", "accept"} <= measures(result, "create", shape, size)
    for size in (10, 20, 30):
        assert costs | {"memory"} <= measures(result, "change", "create", size)
        assert costs | {"memory"} <= measures(result, "change", "delete", size)
        assert costs <= measures(result, "change", "update all", size)
        assert {"median", "server_cpu"} <= measures(result, "change", "update one", size)
    for size in (0, 5, 30):
        assert {"p99", "memory"} <= measures(result, "hook", "signal to operation", size)
    assert "bytes" in measures(result, "hook", "signal to operation", 30)
    assert {"rate", "p99"} <= measures(result, "hook", "answer, one stack", 5)
    assert {"rate", "p99"} <= measures(result, "hook", "answer, many stacks", 10)
    assert all(
        result.value(key) > 0 for key in result if key.measure in ("rate", "server_cpu", "share")
    )


async def test_requests_are_measured_for_fewer_stacks_than_are_created_one_by_one(
    bench_postgres: BenchPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, value in (
        (reads, "SECONDS", 0.05), (machine, "SAMPLES", 1), (run_module, "WARM", 1),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    run = Run(bench_postgres, rounds=1, sizes=(4, 20), largest=20)
    assert max(run.sizes) < reads.SINGLE
    await reads.reads(run)
    result = figures.derive(run.figures)
    for size in run.sizes:
        assert {"median", "limit_ms"} <= measures(result, "read", "accept, one client", size)
        for case in ("accept a stack of one", "show", "list 20, first page"):
            assert {"rate", "p99", "share"} <= measures(result, "read", case, size)


async def test_large_installations_are_measured(
    bench_postgres: BenchPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("DIVISORS", (2,)), ("MEMBERS", 5), ("STACK", 5), ("SIGNALS", 2), ("REQUESTS", 2),
        ("RESOURCES", 2), ("STACKS_OF_PROJECT", 2), ("PAUSE", 0.05),
    ):  # fmt: skip
        monkeypatch.setattr(scale, name, value)
    monkeypatch.setattr(run_module, "WARM", 1)
    run = Run(bench_postgres, rounds=1, largest=40)
    changes = {
        scale.million_tree: ("create", "delete"),
        scale.million_hooks: ("until they wait",),
        scale.million_stacks: ("create",),
    }
    requests = {"million-tree": "show", "million-hooks": "20 of a stack",
                "million-stacks": "20 of all projects"}  # fmt: skip
    for (measure, cases), (part, request) in zip(changes.items(), requests.items(), strict=True):
        await measure(run)
        for case in cases:
            found = measures(run.figures, part, case, 20)
            assert {"rate", "bytes", "server_cpu", "postgres_cpu", "memory"} <= found
            assert 0 < run.figures.value(Key(part, case, 20, "memory")) < 1_000
        assert {"median", "server_cpu"} <= measures(run.figures, part, request, 20)
        assert "seconds" in measures(run.figures, part, "start", 20)


def measures(figures_: Figures, part: str, case: str, size: int) -> set[str]:
    return {key.measure for key in figures_ if key == Key(part, case, size, key.measure)}
