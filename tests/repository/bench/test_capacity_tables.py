"""The tables of the page on capacity are those of its figures."""

import pytest

from tests.bench import figures
from tests.bench.capacity_tables import ENGINES, measured_costs, tables
from tests.bench.figures import Figures

ABOUT = {
    "date": "2026-01-02T03:04:05+00:00", "commit": "c", "changed": False,
    "machine": {"processor": "One", "cores": 2, "postgresql": "18.4", "commit_ms": 2.0},
}  # fmt: skip


def document(*, webhooks: bool = True, scale: bool = False) -> figures.Json:
    found = Figures()
    for engines, engine, postgres in ((1, 200, 400), (8, 400, 800)):
        found.add(
            "capacity", "engine, a resource", engines,
            server_cpu=engine, postgres_cpu=postgres, commits=0.1, load=engines,
        )  # fmt: skip
        found.add("capacity", "API, a resource of a new stack", engines, server_cpu=250)
        found.add("capacity", "API, show a stack", engines, server_cpu=500, postgres_cpu=125)
        found.add("capacity", "engine, idle", engines, core=0.5)
        found.add("capacity", "PostgreSQL, idle", engines, core=1.6)
    if webhooks:
        found.add("deliver", "webhook", 19_200, server_cpu=625, postgres_cpu=50)
    if scale:
        for size in (10_000, 1_000_000):
            found.add(
                "million-tree", "create", size,
                rate=2_000, bytes=4_000, server_cpu=250, postgres_cpu=400, memory=90, load=3,
            )  # fmt: skip
            found.add("million-tree", "show", size, median=2, server_cpu=900, postgres_cpu=300)
            found.add("million-tree", "start", size, seconds=1.5)
    return figures.document(found, ABOUT)


def test_a_core_carries_the_inverse_of_its_cost() -> None:
    lines = tables(document()).splitlines()
    assert "| 1 | 200 | 400 | 0.1 | 5,000/s | 2,500/s |" in lines
    assert "| 8 | 400 | 800 | 0.1 | 2,500/s | 1,200/s |" in lines
    assert "| API: a resource of a new stack | 250 |  | 4,000/s |" in lines
    assert "| API: show a stack | 500 | 125 | 2,000/s |" in lines
    assert "| dispatcher: a webhook | 625 | 50.0 | 1,600/s |" in lines
    assert "| an idle engine, of a core | 0.5 % | 0.2 % | |" in lines


def test_what_was_not_measured_is_left_out() -> None:
    assert "dispatcher" not in tables(document(webhooks=False))


def test_the_simulation_has_the_measured_costs() -> None:
    costs = measured_costs(document())
    assert costs.engine == {1: 200e-6, 8: 400e-6} and costs.database == {1: 400e-6, 8: 800e-6}
    assert (costs.batch, costs.flush) == (10.0, 0.002) and costs.idle == pytest.approx(0.002)


def test_each_number_of_engines_has_a_row() -> None:
    rows = [line for line in tables(document()).splitlines() if "(engines " in line]
    assert [row.split(" | ")[0] for row in rows] == [f"| {number:,}" for number in ENGINES]
    # A thousand engines on one database with 16 cores wait for it; on 64 databases, they do not.
    assert "database (" in rows[-1].split(" | ")[1] and "database" not in rows[0].split(" | ")[3]


def test_each_size_of_the_largest_installations_has_a_row() -> None:
    lines = tables(document(scale=True)).splitlines()
    for size in ("10,000", "1,000,000"):
        costs = f"| a tree: create | {size} | 2,000/s | 250 | 400 | 2,500/s | 4,000 | 90.0 MB |"
        assert costs in lines
        assert f"| a tree: show | {size} | 2.00 ms | 900 | 300 |" in lines
        assert f"| a tree: start | {size} | 1.50 s | | |" in lines
    # The load is that of each part.
    assert sum("load 3.00 to 3.00" in line for line in lines) == 1
    assert not any("a tree" in line for line in tables(document()).splitlines())
