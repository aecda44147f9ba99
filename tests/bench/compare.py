"""Prints two documents of figures side by side.

``python -m tests.bench.compare BEFORE.json AFTER.json``. CPU times can be compared
between runs; rates and latencies only within one run, or at the same load.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench.figures import (
    MEASURES,
    BadDocument,
    Better,
    Figures,
    Key,
    figures_of,
    read,
    significant,
)

Json = Any
#: A smaller difference is not marked.
NOTABLE = 1.1


def main(arguments: Sequence[str]) -> None:
    if len(arguments) != 2:
        sys.exit("usage: python -m tests.bench.compare BEFORE.json AFTER.json")
    try:
        before, after = (read(Path(argument)) for argument in arguments)
    except BadDocument as error:
        sys.exit(f"compare: {error}")
    print(table(before, after))


def table(before: Json, after: Json) -> str:
    """A Markdown table. A figure that only one document has is marked with a dash."""
    first, second = figures_of(before), figures_of(after)
    lines = [
        f"before: {_origin(before)}",
        f"after:  {_origin(after)}",
        "",
        "| part | case | size | measure | before | after | after : before | |",
        "|---|---|--:|---|--:|--:|--:|---|",
    ]
    keys = dict.fromkeys([*first, *second])
    return "\n".join([*lines, *(_row(key, first, second) for key in sorted(keys, key=_place))])


def _place(key: Key) -> Any:
    return key.part, key.case, key.size, list(MEASURES).index(key.measure)


def _row(key: Key, first: Figures, second: Figures) -> str:
    measure = MEASURES[key.measure]
    cells = [_cell(key, figures) for figures in (first, second)]
    ratio, mark = "-", ""
    if key in first and key in second and first.value(key):
        times = second.value(key) / first.value(key)
        ratio, mark = f"{times:.2f}", verdict(measure.better, times)
    heading = f"{measure.title} {measure.unit}".strip()
    row = [key.part, key.case, f"{key.size:,}", heading, *cells, ratio, mark]
    return f"| {' | '.join(row)} |"


def _cell(key: Key, figures: Figures) -> str:
    return significant(figures.value(key)) if key in figures else "-"


def verdict(better: Better, times: float) -> str:
    """Whether the second value, which is so many times the first, is notably better or worse."""
    if better is Better.NEITHER or 1 / NOTABLE < times < NOTABLE:
        return ""
    return "better" if (times > 1) == (better is Better.HIGHER) else "worse"


def _origin(document: Json) -> str:
    machine, parts = document["machine"], document["parts"].values()
    commits = dict.fromkeys(
        f"{part['commit'] or 'unknown'}{' with changes' if part['changed'] else ''}"
        for part in parts
    )
    date = max((part["date"] for part in parts), default="")
    return (
        f"commit {', '.join(commits)}, {date}, {machine['cores']} cores of {machine['processor']}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
