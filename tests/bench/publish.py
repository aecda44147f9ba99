"""Publishes figures: docs/figures.json, the tables of README and docs, and the charts.

``python -m tests.bench.publish``: the document that `make bench` wrote last, or the published one.
Published parts that this document does not have are kept; ``--alone``: they are left out.
``--keep REASON``: keeps the published figures although the hot path has changed since, for a reason
that is recorded in docs/figures.json.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench import capacity_tables, figures, hot_path, plots, summary
from tests.bench.figures import BadDocument

Json = Any
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Places:
    """The files of a checkout that are read and written."""

    root: Path

    @property
    def measured(self) -> Path:
        return self.root / "build" / "bench.json"

    @property
    def document(self) -> Path:
        return self.root / "docs" / "figures.json"

    @property
    def openstack(self) -> Path:
        """The figures on a real OpenStack."""
        return self.root / "docs" / "figures-openstack.json"

    @property
    def comparison(self) -> Path:
        """The page with these figures."""
        return self.root / "docs" / "explanation" / "comparison.md"

    @property
    def capacity(self) -> Path:
        """The figures of many engines on one database."""
        return self.root / "docs" / "figures-capacity.json"

    @property
    def capacity_page(self) -> Path:
        """The page with these figures."""
        return self.root / "docs" / "explanation" / "capacity.md"

    @property
    def own_documents(self) -> Sequence[tuple[Path, Path, summary.Block]]:
        """Documents of figures that are measured by themselves, each with its page and its
        block."""
        return (
            (self.openstack, self.comparison, summary.openstack),
            (self.capacity, self.capacity_page, capacity_tables.tables),
        )

    @property
    def charts(self) -> Path:
        return self.root / "docs" / "images" / "figures"

    @property
    def pages(self) -> dict[Path, summary.Block]:
        """Pages with a generated block."""
        return {
            self.root / "README.md": summary.readme,
            self.root / "docs" / "explanation" / "performance.md": summary.performance,
        }


def main(arguments: Sequence[str], root: Path = ROOT) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.publish", description=__doc__)
    parser.add_argument("--keep", metavar="REASON", help="why the figures are still right")
    parser.add_argument("--from", dest="source", type=Path, help="another document to publish")
    parser.add_argument("--alone", action="store_true", help="without parts published before")
    options = parser.parse_args(arguments)
    places = Places(root)
    try:
        if options.keep:
            keep(places, options.keep)
        else:
            publish(places, options.source, alone=options.alone)
    except BadDocument as error:
        sys.exit(f"figures: {error}")


def publish(places: Places, source: Path | None = None, *, alone: bool = False) -> None:
    """Raises BadDocument."""
    source = source or (places.measured if places.measured.exists() else places.document)
    document, now = figures.read(source), hot_path.digests(places.root)
    if source.resolve() != places.document.resolve():
        document.pop("kept", None)
        if not alone and places.document.exists():
            document = add_published(document, figures.read(places.document), now)
        figures.write(places.document, document)
    for path, text in generated(places, document).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    print(f"figures: published {source}")
    report(hot_path.changed(document, now))


def add_published(document: Json, published: Json, now: Mapping[str, str]) -> Json:
    """The document with the published parts that it does not have, and with the reasons why these
    still hold for the present hot path. Raises BadDocument."""
    combined = figures.add_other_parts(document, published)
    kept = {
        path: one
        for path, one in published.get("kept", {}).items()
        if combined["hot_path"].get(path) == hot_path.MIXED and one["digest"] == now.get(path)
    }
    return combined | {"kept": kept} if kept else combined


def generated(places: Places, document: Json) -> dict[Path, str]:
    """The text of each generated file, and of each page with a generated block."""
    measured = figures.figures_of(document)
    pages = {
        page: summary.with_block(page, block(document)) for page, block in places.pages.items()
    }
    for source, page, block in places.own_documents:
        if source.exists():
            pages[page] = summary.with_block(page, block(figures.read(source)))
    charts = {places.charts / name: text for name, text in plots.draw_all(measured).items()}
    return pages | charts


def keep(places: Places, reason: str) -> None:
    """Record that the published figures also hold for the present hot path."""
    document = figures.read(places.document)
    now = hot_path.digests(places.root)
    kept: dict[str, Json] = document.get("kept", {})
    date = datetime.now(UTC).date().isoformat()
    for path in hot_path.changed(document, now):
        kept[path] = {"digest": now.get(path, ""), "date": date, "reason": reason}
    measured = document["hot_path"]
    outdated = {path for path in kept if measured.get(path) == now.get(path)}
    document["kept"] = {path: kept[path] for path in sorted(kept) if path not in outdated}
    figures.write(places.document, document)
    print(f"figures: docs/figures.json has the reason for {len(document['kept'])} changed files")


def report(changed: Sequence[str]) -> None:
    for path in changed:
        print(f"figures: {path} has changed since they were measured", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
