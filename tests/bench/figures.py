"""Figures of a run: what was measured, how it is printed, and the JSON document that keeps it.

A figure has a part (`create`), a case (`wide`), a size (1000) and a measure (`rate`); its value is
the median of its runs.
"""

import json
import re
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench import hot_path

Json = Any
#: Version of the document's form. Increase it when a reader of older documents would misread it.
FORMAT = 1
#: At smaller sizes, what a whole stack costs outweighs its resources; growth does not count them.
BASE = 1_000
#: Digits of a stored value.
DIGITS = 5
_NO_ORIGIN: Mapping[str, Json] = {"date": "", "commit": "", "changed": False}


class Better(Enum):
    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Measure:
    """title: heading of its column. grows: whether it should be the same at every size, so that the
    table shows its ratio between the largest size and the smallest."""

    title: str
    unit: str
    better: Better
    grows: bool = False


_CPU = "µs"
MEASURES: Mapping[str, Measure] = {
    "rate": Measure("rate", "/s", Better.HIGHER, grows=True),
    "server_cpu": Measure("server CPU", _CPU, Better.LOWER, grows=True),
    "postgres_cpu": Measure("PostgreSQL CPU", _CPU, Better.LOWER, grows=True),
    "client_cpu": Measure("client CPU", _CPU, Better.NEITHER),
    "limit": Measure("limit", "/s", Better.NEITHER, grows=True),
    "limit_cpu": Measure("limit CPU", _CPU, Better.NEITHER),
    "limit_ms": Measure("limit", "ms", Better.NEITHER),
    "share": Measure("share", "%", Better.HIGHER),
    "accept": Measure("accept", "ms", Better.LOWER),
    "median": Measure("median", "ms", Better.LOWER, grows=True),
    "p99": Measure("p99", "ms", Better.LOWER, grows=True),
    "p95": Measure("p95", "ms", Better.LOWER),
    "memory": Measure("memory", "MB", Better.LOWER),
    "bytes": Measure("bytes", "B", Better.LOWER),
    "seconds": Measure("duration", "s", Better.LOWER),
    "behind": Measure("stream lag", "s", Better.LOWER),
    "requests": Measure("requests", "", Better.LOWER),
    "tokens": Measure("tokens", "", Better.LOWER),
    "commits": Measure("commits", "", Better.LOWER),
    "keystone": Measure("to Keystone", "", Better.LOWER),
    "nova": Measure("to Nova", "", Better.LOWER),
    "neutron": Measure("to Neutron", "", Better.LOWER),
    "cinder": Measure("to Cinder", "", Better.LOWER),
    "glance": Measure("to Glance", "", Better.LOWER),
    "rows": Measure("rows written", "", Better.LOWER),
    "core": Measure("of a core", "%", Better.LOWER),
    "frames": Measure("frames", "/s", Better.HIGHER),
    "load": Measure("load", "", Better.NEITHER),
}


class Key(NamedTuple):
    part: str
    case: str
    size: int
    measure: str

    def __str__(self) -> str:
        return f"{self.part}/{self.case}/{self.size}/{self.measure}"


class Figures:
    """Values of all runs, in the order in which they were added."""

    def __init__(self) -> None:
        self._runs: dict[Key, list[float]] = {}

    def add(self, part: str, case: str, size: int, **values: float) -> None:
        """Add one run's values of these measures."""
        for measure, value in values.items():
            if measure not in MEASURES:
                raise KeyError(f"there is no measure {measure!r} in MEASURES")
            self._runs.setdefault(Key(part, case, size, measure), []).append(float(value))

    def runs(self, key: Key) -> list[float]:
        return self._runs[key]

    def value(self, key: Key) -> float:
        return statistics.median(self._runs[key])

    def __iter__(self) -> Iterator[Key]:
        return iter(self._runs)

    def __contains__(self, key: object) -> bool:
        return key in self._runs

    def add_all(self, others: "Figures") -> None:
        for key in others:
            self._runs.setdefault(key, []).extend(others.runs(key))

    def parts(self) -> list[str]:
        return list(dict.fromkeys(key.part for key in self._runs))


def derive(figures: Figures) -> Figures:
    """The same figures, with the share of the limit where both are known."""
    derived = Figures()
    derived.add_all(figures)
    for key in list(figures):
        limit = key._replace(measure="limit")
        if key.measure == "rate" and limit in figures:
            share = 100 * figures.value(key) / figures.value(limit)
            derived.add(key.part, key.case, key.size, share=share)
    return derived


def document(figures: Figures, metadata: Mapping[str, Json], previous: Json = None) -> Json:
    """metadata: machine, hot_path, and date, commit and changed of the source, which each part
    has. previous: a document of the same machine, to keep other parts of. Raises BadDocument."""
    origin = {name: metadata[name] for name in ("date", "commit", "changed")}
    parts: dict[str, Json] = {name: {**origin, "cases": {}} for name in figures.parts()}
    for key in figures:
        sizes = parts[key.part]["cases"].setdefault(key.case, {})
        runs = [_rounded(value) for value in figures.runs(key)]
        median = _rounded(statistics.median(runs))
        sizes.setdefault(str(key.size), {})[key.measure] = {"value": median, "runs": runs}
    digests = metadata.get("hot_path", {})
    content = {
        "format": FORMAT, "machine": metadata["machine"], "hot_path": digests, "parts": parts,
    }  # fmt: skip
    return add_other_parts(content, previous) if previous else content


def add_other_parts(content: Json, previous: Json) -> Json:
    """The document with the parts of a previous one that it does not have. Raises BadDocument if
    they were measured on another machine."""
    others = [name for name in previous["parts"] if name not in content["parts"]]
    if not others:
        return content
    if _identity(previous["machine"]) != _identity(content["machine"]):
        raise BadDocument(
            f"the parts to keep ({', '.join(others)}) were measured on another machine: "
            f"{previous['machine']}; measure all parts, or publish this document with --alone"
        )
    digests = hot_path.merged(previous.get("hot_path", {}), content["hot_path"])
    return {**content, "hot_path": digests, "parts": previous["parts"] | content["parts"]}


def _identity(machine: Json) -> Json:
    """Without what varies between runs."""
    return {**machine, "commit_ms": None}


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


_RUNS = re.compile(r"\[\n[^\[\]{}]*\n *\]")
_VALUE = re.compile(r"\{\n *\"(?:value|digest)\": [^{}]*\}")


def write(path: Path, content: Json) -> None:
    """One line for each value, so that the differences of two documents can be read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    for pattern in (_RUNS, _VALUE):
        text = pattern.sub(lambda match: _one_line(match[0]), text)
    path.write_text(text)


def _one_line(text: str) -> str:
    return re.sub(r"([\[{]) | ([\]}])", r"\1\2", " ".join(text.split()))


class BadDocument(ValueError):
    """The file is not a document of figures that this program reads."""


def read(path: Path) -> Json:
    """A document. Raises BadDocument."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadDocument(f"{path}: {error}") from error
    version = content.get("format") if isinstance(content, dict) else None
    if version != FORMAT:
        raise BadDocument(
            f"{path}: its format is {version}, expected {FORMAT}; run `make bench` again"
        )
    previous = document(figures_of(content), {**_NO_ORIGIN, "machine": content["machine"]})
    for name, part in content["parts"].items():
        if part["cases"] != previous["parts"][name]["cases"]:
            raise BadDocument(f"{path}: a value of {name} is not the median of its runs")
    return content


def figures_of(content: Json) -> Figures:
    figures = Figures()
    for part, part_content in content["parts"].items():
        for case, sizes in part_content["cases"].items():
            for size, measures in sizes.items():
                for measure, recorded in measures.items():
                    for value in recorded["runs"]:
                        figures.add(part, case, int(size), **{measure: value})
    return figures


def growth(figures: Figures, part: str, case: str, measure: str) -> tuple[int, int, float] | None:
    """The smallest size that counts, the largest size, and how many times one unit costs at the
    largest what it costs at the smallest. None: not measured at two sizes, or zero."""
    sizes = [key.size for key in figures if key._replace(size=0) == (part, case, 0, measure)]
    small = min((size for size in sizes if size >= BASE), default=0)
    if not small or small == max(sizes):
        return None
    large = max(sizes)
    small_cost, large_cost = (
        figures.value(Key(part, case, size, measure)) for size in (small, large)
    )
    if MEASURES[measure].unit == "/s":
        small_cost, large_cost = large_cost, small_cost
    return (small, large, large_cost / small_cost) if small_cost else None


def format_value(measure: str, value: float) -> str:
    """Three significant digits, with the unit: ``4,120/s``, ``6.13 ms``."""
    unit = MEASURES[measure].unit
    number = significant(value)
    return f"{number}{unit}" if unit in ("/s", "%", "") else f"{number} {unit}"


def significant(value: float, digits: int = 3) -> str:
    """``0.981``, ``12.3``, ``4,120``."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits}g}")
    whole = len(str(int(abs(rounded)))) if abs(rounded) >= 1 else 0
    if whole:
        return f"{rounded:,.{max(0, digits - whole)}f}"
    return f"{rounded:.{digits}g}"


def table(figures: Figures, part: str) -> str:
    """A row for each case and size, and one for the growth between sizes."""
    keys = [key for key in figures if key.part == part]
    measures = [name for name in MEASURES if any(key.measure == name for key in keys)]
    headings = [part, "size", *(_heading(name) for name in measures)]
    rows: list[list[str]] = []
    for case in dict.fromkeys(key.case for key in keys):
        sizes = list(dict.fromkeys(key.size for key in keys if key.case == case))
        for size in sizes:
            cells = [_cell(figures, Key(part, case, size, name)) for name in measures]
            rows.append([case, f"{size:,}", *cells])
        growths = [growth(figures, part, case, name) if _grows(name) else None for name in measures]
        if first := next(filter(None, growths), None):
            cells = [f"x {growth_[2]:.2f}" if growth_ else "" for growth_ in growths]
            rows.append(["", f"{first[1]:,} : {first[0]:,}", *cells])
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    lines = [headings, *rows]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _heading(name: str) -> str:
    measure = MEASURES[name]
    return f"{measure.title} {measure.unit}".strip()


def _cell(figures: Figures, key: Key) -> str:
    return significant(figures.value(key)) if key in figures else ""


def _grows(measure: str) -> bool:
    return MEASURES[measure].grows
