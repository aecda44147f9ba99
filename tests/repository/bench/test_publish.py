"""The published figures: the tables and charts are those of the document, and the document is not
older than the hot path."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.bench import figures, hot_path, plots, publish, summary
from tests.bench.__main__ import PARTS
from tests.bench.figures import MEASURES, BadDocument, Figures
from tests.bench.publish import ROOT, Places
from tests.bench.summary import BEGIN, END, ROWS, cells

Json = Any
HOT = "engine/node/machine.py"
REMEDY = """
docs/figures.json is older than these files of the hot path. Measure again:
    make bench ARGS="create change hook read language --rounds 2 --largest 0"
    make bench ARGS="deliver --rounds 2 --add"
    make figures
or, if the change cannot affect the figures, record why they are kept:
    python -m tests.bench.publish --keep "REASON"
"""


def test_published_figures_are_not_older_than_the_hot_path() -> None:
    document = figures.read(Places(ROOT).document)
    assert hot_path.changed(document, hot_path.digests(ROOT)) == [], REMEDY


def test_pages_and_charts_show_the_published_document() -> None:
    places = Places(ROOT)
    expected = publish.generated(places, figures.read(places.document))
    differing = [
        str(path)
        for path, text in expected.items()
        if not path.exists() or path.read_text() != text
    ]
    assert differing == [], "run `make figures`; edit no generated table or chart by hand"


def test_every_kept_file_has_a_reason() -> None:
    kept = json.loads(Places(ROOT).document.read_text()).get("kept", {})
    assert [path for path, one in kept.items() if not one["reason"].strip()] == []


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A checkout with one file of the hot path, and a published document."""
    places = Places(tmp_path)
    for page in places.pages:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"before\n{BEGIN}\n{END}\nafter\n")
    (tmp_path / HOT).parent.mkdir(parents=True)
    (tmp_path / HOT).write_text("a = 1\n")
    shutil.copy(Places(ROOT).document, places.document)
    document = json.loads(places.document.read_text())
    document |= {"hot_path": hot_path.digests(tmp_path)}
    document.pop("kept", None)
    figures.write(places.document, document)
    return places


def test_publishing_writes_the_measured_document_pages_and_charts(places: Places) -> None:
    document = json.loads(places.document.read_text())
    document["parts"]["create"]["commit"] = "0123456789ab"
    figures.write(places.measured, document)
    publish.main([], places.root)
    assert figures.read(places.document) == document
    for page in places.pages:
        text = page.read_text()
        assert text.startswith("before\n") and text.endswith("\nafter\n")
    assert "0123456789ab" in (places.root / "README.md").read_text()
    assert len(list(places.charts.glob("*.svg"))) == 6


def test_kept_figures_record_the_reason_for_each_changed_file(places: Places) -> None:
    (places.root / HOT).write_text("a = 2\n")
    publish.main(["--keep", "a constant"], places.root)
    document = figures.read(places.document)
    kept = document["kept"][HOT]
    assert kept["reason"] == "a constant" and kept["date"]
    assert hot_path.changed(document, hot_path.digests(places.root)) == []
    (places.root / HOT).write_text("a = 3\n")
    assert hot_path.changed(document, hot_path.digests(places.root)) == [HOT]


def test_publishing_the_published_document_again_keeps_its_reasons(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    (places.root / HOT).write_text("a = 2\n")
    publish.main(["--keep", "a constant"], places.root)
    document = figures.read(places.document)
    monkeypatch.chdir(places.root)
    publish.main(["--from", "docs/figures.json"], places.root)
    assert figures.read(places.document) == document


def test_a_reason_ends_when_the_file_is_as_it_was_measured(places: Places) -> None:
    (places.root / HOT).write_text("a = 2\n")
    publish.main(["--keep", "a constant"], places.root)
    (places.root / HOT).write_text("a = 1\n")
    publish.main(["--keep", "as it was"], places.root)
    assert figures.read(places.document)["kept"] == {}


def document_of(places: Places, *parts: str, **more: Json) -> Json:
    """The published document with these parts alone."""
    document = json.loads(places.document.read_text()) | more
    return document | {"parts": {part: document["parts"][part] for part in parts}}


def test_parts_that_were_not_measured_again_stay_published(places: Places) -> None:
    published = figures.read(places.document)
    (places.root / HOT).write_text("a = 2\n")
    publish.main(["--keep", "a constant"], places.root)
    document = document_of(places, "hook", hot_path=hot_path.digests(places.root))
    document["parts"]["hook"]["commit"] = "0123456789ab"
    figures.write(places.measured, document)
    publish.main([], places.root)
    result = figures.read(places.document)
    assert {name: part["commit"] for name, part in result["parts"].items()} == {
        name: "0123456789ab" if name == "hook" else part["commit"]
        for name, part in published["parts"].items()
    }
    assert result["parts"]["create"] == published["parts"]["create"]
    assert result["kept"][HOT]["reason"] == "a constant", "the other parts are of the earlier file"
    assert hot_path.changed(result, hot_path.digests(places.root)) == []


def test_parts_that_stay_published_need_a_reason_if_the_hot_path_has_changed(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    (places.root / HOT).write_text("a = 2\n")
    publish.main(["--keep", "a constant"], places.root)
    (places.root / HOT).write_text("a = 3\n")
    document = document_of(places, "hook", hot_path=hot_path.digests(places.root))
    figures.write(places.measured, document)
    publish.main([], places.root)
    assert f"{HOT} has changed since" in capsys.readouterr().err
    now = hot_path.digests(places.root)
    assert hot_path.changed(figures.read(places.document), now) == [HOT]
    publish.main(["--keep", "another constant"], places.root)
    assert hot_path.changed(figures.read(places.document), now) == []


def test_no_reason_stays_when_every_part_was_measured_again(places: Places) -> None:
    parts = list(figures.read(places.document)["parts"])
    (places.root / HOT).write_text("a = 2\n")
    publish.main(["--keep", "a constant"], places.root)
    document = document_of(places, *parts, hot_path=hot_path.digests(places.root))
    document.pop("kept")
    figures.write(places.measured, document)
    publish.main([], places.root)
    assert figures.read(places.document) == document


def test_parts_of_another_machine_are_published_alone_on_request(places: Places) -> None:
    other = json.loads(places.document.read_text())["machine"] | {"cores": 64}
    document = document_of(places, "hook", machine=other)
    figures.write(places.measured, document)
    before = places.document.read_text()
    with pytest.raises(SystemExit, match=r"\(.*create.*\) were measured on another machine"):
        publish.main([], places.root)
    assert places.document.read_text() == before
    charted = ("create", "change", "hook", "read")
    figures.write(places.measured, document_of(places, *charted, machine=other))
    publish.main(["--alone"], places.root)
    assert tuple(figures.read(places.document)["parts"]) == charted


def test_a_page_without_markers_is_refused(places: Places) -> None:
    (places.root / "README.md").write_text("nothing")
    with pytest.raises(SystemExit, match="README"):
        publish.main([], places.root)


def test_text_with_an_unmeasured_figure_is_left_out() -> None:
    found = Figures()
    found.add("create", "wide", 1000, rate=4120)
    assert cells(found, "{create/wide/1000/rate}") == "4,120/s"
    assert cells(found, "{create/wide/1000/rate}[ ({create/wide/1000/limit})]") == "4,120/s"
    assert cells(found, "{create/wide/1000/rate}, {create/wide/10/rate}") == ""


def test_rows_name_parts_and_measures_that_exist() -> None:
    for _, text in ROWS:
        for one in summary.FIGURE.findall(text):
            key = summary.key_of(one)
            assert key.part in PARTS and key.measure in MEASURES


def test_growth_is_that_between_the_sizes() -> None:
    found = Figures()
    found.add("create", "wide", 1000, rate=100, server_cpu=10, load=1)
    found.add("create", "wide", 10_000, rate=50, server_cpu=11, load=1)
    table = summary.growth_table(figures.document(found, ABOUT))
    (row,) = [line for line in table.splitlines() if "wide" in line]
    assert row == "| create: wide | 1,000 → 10,000 | 2.00 | 1.10 |  |  |"


ABOUT = {"date": "2026-01-02T03:04:05+00:00", "commit": "c", "changed": False, "machine": {}}


def test_a_document_with_the_figures_of_no_chart_is_refused() -> None:
    with pytest.raises(BadDocument, match="no figures"):
        plots.draw_all(Figures())


def test_limits_are_beside_what_was_measured_at_the_largest_size() -> None:
    found = Figures()
    found.add("create", "wide", 100, rate=10, limit=20)
    found.add("create", "wide", 1000, rate=50, limit=200)
    found.add("create", "wide", 10_000, rate=5)
    found.add("change", "update one", 1000, median=30, limit_ms=20)
    found.add("read", "show", 1000, rate=5)
    rows = summary.limits_table(figures.document(found, ABOUT)).splitlines()[2:]
    assert [row.rpartition(" | ")[0] for row in rows] == [
        "| create: wide | 1,000 | 50.0/s | 200/s | 25 %",
        "| change: update one | 1,000 | 30.0 ms | 20.0 ms | 1.5 times",
    ]


def test_without_limits_there_is_no_table_of_them() -> None:
    found = Figures()
    found.add("create", "wide", 1000, rate=50)
    assert "limits" not in summary.performance(figures.document(found, ABOUT)).partition("aims")[0]
    assert summary.limits_table(figures.document(found, ABOUT)) == ""


def test_aims_are_beside_what_was_measured_and_what_the_cores_allow() -> None:
    found = Figures()
    cpu = {"server_cpu": 300.0, "postgres_cpu": 150.0, "client_cpu": 50.0}
    found.add("create", "wide", 1000, rate=3000, **cpu)
    found.add("create", "chain", 1000, rate=900)
    found.add("change", "create", 10_000, rate=500)
    found.add("change", "delete", 10_000, rate=400, memory=301)
    found.add("hook", "signal to operation", 10_000, median=4, p99=30)
    about = ABOUT | {"machine": {"cores": 2}}
    rows = summary.aims_table(figures.document(found, about)).splitlines()[2:]
    assert [row.rpartition(" | ")[0] for row in rows] == [
        "| create: wide | 1,000 | 12,000/s | 3,000/s | 0.25 times the aim | 4,000/s",
        "| create: chain | 1,000 | 800/s | 900/s | yes | ",
        "| change: delete | 10,000 | 500/s | 400/s | 0.80 times the aim | ",
        "| hook: signal to operation | 10,000 | 5.00 ms | 4.00 ms | yes | ",
        "| hook: signal to operation, p99 | 10,000 | 15.0 ms | 30.0 ms | 2.00 times the aim | ",
        "| change: delete, memory | 10,000 | 300 MB | 301 MB | 1.00 times the aim | ",
    ]


def test_aims_name_parts_and_measures_that_exist() -> None:
    for text, aim, _ in summary.AIMS:
        for one in (text, aim) if isinstance(aim, str) else (text,):
            key = summary.key_of(one)
            assert key.part in PARTS and key.measure in MEASURES
            assert key in figures.figures_of(figures.read(Places(ROOT).document)), one


def test_the_table_of_openstack_has_a_row_for_each_case_and_number_of_servers() -> None:
    found = Figures()
    for count, seconds in ((50, 80), (10, 20)):
        found.add("openstack", "create: Headgate", count, seconds=seconds, nova=31, load=2)
    found.add("openstack", "create: bare client", 10, seconds=15, load=4)
    lines = summary.openstack(figures.document(found, ABOUT | {"machine": MACHINE})).splitlines()
    assert lines[0].startswith("Measured on 2026-01-02 at commit `c`: 2 cores of One, load 2.00 to")
    assert lines[-3:] == [
        "| create: Headgate | 10 | 20.0 s |  |  |  |  | 31 |  |  |  |",
        "| create: bare client | 10 | 15.0 s |  |  |  |  |  |  |  |  |",
        "| create: Headgate | 50 | 80.0 s |  |  |  |  | 31 |  |  |  |",
    ]


def test_publishing_writes_the_table_of_openstack(places: Places) -> None:
    places.comparison.parent.mkdir(parents=True, exist_ok=True)
    places.comparison.write_text(f"before\n{BEGIN}\n{END}\nafter\n")
    found = Figures()
    found.add("openstack", "create: Heat", 10, seconds=20, load=2)
    figures.write(places.openstack, figures.document(found, ABOUT | {"machine": MACHINE}))
    publish.main([], places.root)
    assert "| create: Heat | 10 | 20.0 s |" in places.comparison.read_text()


MACHINE = {"processor": "One", "cores": 2}
