"""Figures: their document, their table, and how they are compared."""

from pathlib import Path
from typing import Any

import pytest

from tests.bench import compare
from tests.bench.figures import (
    MEASURES,
    BadDocument,
    Better,
    Figures,
    Key,
    derive,
    document,
    figures_of,
    format_value,
    growth,
    read,
    significant,
    table,
    write,
)

Json = Any
ABOUT: Json = {
    "date": "2026-01-02T03:04:05+00:00",
    "commit": "0123456789ab",
    "changed": False,
    "machine": {"processor": "One", "cores": 2, "commit_ms": 1.5},
}
RATE = Key("create", "wide", 1000, "rate")


def measured(**values: float) -> Figures:
    figures = Figures()
    figures.add("create", "wide", 1000, **values)
    return figures


def test_value_is_the_median_of_its_runs() -> None:
    figures = Figures()
    for rate in (10, 1000, 30):
        figures.add("create", "wide", 1000, rate=rate)
    assert figures.value(RATE) == 30
    cases = document(figures, ABOUT)["parts"]["create"]["cases"]
    assert cases == {"wide": {"1000": {"rate": {"value": 30.0, "runs": [10.0, 1000.0, 30.0]}}}}


def test_unknown_measure_is_refused() -> None:
    with pytest.raises(KeyError, match="speed"):
        measured(speed=1)


def test_document_is_read_as_it_was_written(tmp_path: Path) -> None:
    path, content = tmp_path / "new" / "a.json", document(measured(rate=1, load=2), ABOUT)
    write(path, content)
    assert read(path) == content
    assert document(figures_of(read(path)), ABOUT) == content


@pytest.mark.parametrize("text", ["{}", '{"format": 2}', "[]", "no JSON"], ids=str)
def test_other_documents_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(BadDocument, match=r"a\.json"):
        read(path)


def test_value_that_is_not_the_median_is_refused(tmp_path: Path) -> None:
    path, content = tmp_path / "a.json", document(measured(rate=1), ABOUT)
    content["parts"]["create"]["cases"]["wide"]["1000"]["rate"]["value"] = 2.0
    write(path, content)
    with pytest.raises(BadDocument, match="create is not the median"):
        read(path)


def test_other_parts_of_the_same_machine_are_kept_with_their_commit() -> None:
    old = Figures()
    old.add("read", "show", 1, rate=5)
    old.add("create", "chain", 1, rate=5)
    about = ABOUT | {"commit": "f", "machine": ABOUT["machine"] | {"commit_ms": 9}}
    parts = document(measured(rate=1), ABOUT, previous=document(old, about))["parts"]
    assert {name: part["commit"] for name, part in parts.items()} == {
        "read": "f",
        "create": ABOUT["commit"],
    }
    assert set(parts["create"]["cases"]) == {"wide"}


def test_parts_of_another_machine_are_not_kept() -> None:
    old = Figures()
    old.add("read", "show", 1, rate=5)
    other = document(old, ABOUT | {"machine": {"processor": "Two"}})
    with pytest.raises(BadDocument, match="another machine"):
        document(measured(rate=1), ABOUT, previous=other)


def test_share_is_that_of_the_limit() -> None:
    found = derive(measured(rate=50, limit=200))
    assert found.value(RATE._replace(measure="share")) == 25
    assert RATE._replace(measure="share") not in derive(measured(rate=50))


@pytest.mark.parametrize(("measure", "large", "times"), [("rate", 50, 4), ("server_cpu", 50, 0.25)])
def test_growth_is_that_of_the_cost(measure: str, large: float, times: float) -> None:
    figures = Figures()
    for size, value in ((10_000, large), (1_000, 200), (100, 999)):
        figures.add("create", "wide", size, **{measure: value})
    assert growth(figures, "create", "wide", measure) == (1_000, 10_000, times)
    assert f"x {times:.2f}" in table(figures, "create").splitlines()[-1]


def test_growth_needs_two_sizes() -> None:
    assert growth(measured(rate=1), "create", "wide", "rate") is None
    assert len(table(measured(rate=1), "create").splitlines()) == 2


def test_growth_of_nothing_is_unknown() -> None:
    figures = measured(median=0)
    figures.add("create", "wide", 10_000, median=5)
    assert growth(figures, "create", "wide", "median") is None


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.01234, "0.0123"), (0.9996, "1.00"), (6.126, "6.13"), (9.87, "9.87"),
     (99.62, "99.6"), (99.95, "100"), (1234.5, "1,230"), (21_250, "21,200")],
)  # fmt: skip
def test_three_digits_are_shown(value: float, text: str) -> None:
    assert significant(value) == text


def test_units_are_shown() -> None:
    assert [
        format_value("rate", 4120),
        format_value("median", 6.1),
        format_value("share", 41.2),
    ] == [
        "4,120/s",
        "6.10 ms",
        "41.2%",
    ]


def test_table_has_a_row_for_each_size_and_a_column_for_each_measure() -> None:
    heading, row = table(measured(rate=1500, postgres_cpu=130), "create").splitlines()
    assert heading.split() == ["create", "size", "rate", "/s", "PostgreSQL", "CPU", "µs"]
    assert row.split() == ["wide", "1,000", "1,500", "130"]


@pytest.mark.parametrize(
    ("better", "times", "verdict"),
    [(Better.HIGHER, 2, "better"), (Better.HIGHER, 0.5, "worse"), (Better.LOWER, 2, "worse"),
     (Better.LOWER, 0.5, "better"), (Better.LOWER, 1.05, ""), (Better.HIGHER, 0.95, ""),
     (Better.NEITHER, 9, "")],
    ids=str,
)  # fmt: skip
def test_verdict(better: Better, times: float, verdict: str) -> None:
    assert compare.verdict(better, times) == verdict


def test_comparison_has_every_figure_of_both() -> None:
    before = document(measured(rate=100, server_cpu=300), ABOUT)
    after = document(measured(rate=400, memory=5), ABOUT | {"changed": True})
    lines = compare.table(before, after).splitlines()
    assert lines[0].startswith("before: commit 0123456789ab, 2026")
    assert lines[1].startswith("after:  commit 0123456789ab with changes, 2026")
    assert lines[5:] == [
        "| create | wide | 1,000 | rate /s | 100 | 400 | 4.00 | better |",
        "| create | wide | 1,000 | server CPU µs | 300 | - | - |  |",
        "| create | wide | 1,000 | memory MB | - | 5.00 | - |  |",
    ]


def test_comparison_of_a_bad_file_ends_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"missing\.json"):
        compare.main([str(tmp_path / "missing.json")] * 2)
    with pytest.raises(SystemExit, match="usage"):
        compare.main([])


def test_costs_should_not_grow() -> None:
    assert {name for name, measure in MEASURES.items() if measure.grows} >= {
        "rate",
        "server_cpu",
        "postgres_cpu",
    }
