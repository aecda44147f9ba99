"""Draws how costs grow with the size: one SVG for each chart."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tests.bench.figures import BadDocument, Figures, Key, significant

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 70, 190, 40, 50
#: They can be told apart also without colour vision: on a light page, and on a dark one.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
DARK_COLOURS = ("#4ba3e3", "#ff8c42", "#2ec49a", "#e29ac4", "#8fd0f5", "#f0b93a")
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4", "10 4")


@dataclass(frozen=True, slots=True)
class Chart:
    """lines: name -> part, case, and the measures whose sum is drawn over the size."""

    title: str
    x: str
    y: str
    lines: Mapping[str, tuple[str, str, Sequence[str]]]


_CPU = ("server_cpu", "postgres_cpu")
CHARTS: Mapping[str, Chart] = {
    "growth-cpu": Chart(
        "CPU time of one resource", "resources of the stack", "µs, server and PostgreSQL",
        {
            "create, wide": ("create", "wide", _CPU),
            "create, layered": ("create", "layered", _CPU),
            "update all": ("change", "update all", _CPU),
            "delete": ("change", "delete", _CPU),
        },
    ),
    "growth-rate": Chart(
        "Rate", "resources of the stack", "resources per second",
        {
            "create, wide": ("create", "wide", ("rate",)),
            "create, layered": ("create", "layered", ("rate",)),
            "update all": ("change", "update all", ("rate",)),
            "delete": ("change", "delete", ("rate",)),
        },
    ),
    "growth-update": Chart(
        "Update of one resource", "resources of the stack", "ms",
        {
            "until complete": ("change", "update one", ("median",)),
            "until accepted": ("change", "update one", ("accept",)),
        },
    ),
    "growth-hook": Chart(
        "From an answer to its operation", "other hooks waiting", "ms",
        {
            "median": ("hook", "signal to operation", ("median",)),
            "p99": ("hook", "signal to operation", ("p99",)),
        },
    ),
    "growth-memory": Chart(
        "Memory of the server", "resources or waiting hooks", "MB",
        {
            "after creates": ("change", "create", ("memory",)),
            "hooks waiting": ("hook", "signal to operation", ("memory",)),
        },
    ),
    "growth-list": Chart(
        "CPU time of a request", "stacks stored", "µs, server and PostgreSQL",
        {
            "show": ("read", "show", _CPU),
            "list 20": ("read", "list 20, first page", _CPU),
            "list 20, half way": ("read", "list 20, half way", _CPU),
            "list 20, by name": ("read", "list 20, by name", _CPU),
        },
    ),
}  # fmt: skip
Points = Sequence[tuple[int, float]]


def points(figures: Figures, part: str, case: str, measures: Sequence[str]) -> Points:
    """Size and value, without size 0, which a logarithmic axis does not have."""
    sizes = sorted({key.size for key in figures if key[:2] == (part, case) and key.size})
    found_points = []
    for size in sizes:
        keys = [Key(part, case, size, measure) for measure in measures]
        if all(key in figures for key in keys):
            found_points.append((size, sum(map(figures.value, keys))))
    return found_points


def draw(chart: Chart, figures: Figures) -> str:
    """The chart as SVG: sizes on a logarithmic axis, values on a linear one from zero."""
    measured = {name: points(figures, *line) for name, line in chart.lines.items()}
    lines = {name: line for name, line in measured.items() if line}
    all_points = [point for line in lines.values() for point in line]
    if not all_points:
        raise BadDocument(f"the document has no figures for the chart {chart.title!r}")
    low, high = (
        math.log10(min(size for size, _ in all_points)),
        math.log10(max(size for size, _ in all_points)),
    )
    top = ceiling(max(value for _, value in all_points))
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def position(size: float, value: float) -> tuple[float, float]:
        share = (math.log10(size) - low) / (high - low) if high > low else 0.5
        return LEFT + share * width, TOP + (1 - value / top) * height

    parts = [
        _text(LEFT, 22, chart.title, "bold"),
        _text(LEFT + width / 2, HEIGHT - 10, chart.x, anchor="middle"),
        _text(LEFT + width, 22, chart.y, anchor="end"),
    ]
    for value in (top * n / 4 for n in range(5)):
        x, y = position(10**low, value)
        parts.append(f'<path class="grid" d="M{x:.0f} {y:.1f}h{width}"/>')
        parts.append(_text(LEFT - 8, y + 4, significant(value), anchor="end"))
    for size in sorted({size for size, _ in all_points}):
        x, _ = position(size, 0)
        parts.append(_text(x, HEIGHT - 30, f"{size:,}", anchor="middle"))
    for number, (name, line) in enumerate(lines.items()):
        parts += _line(name, [position(*point) for point in line], number)
    return _document(parts)


def _line(name: str, positions: Sequence[tuple[float, float]], number: int) -> list[str]:
    dash = DASHES[number]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in positions)
    y = TOP + 10 + 20 * number
    x = WIDTH - RIGHT + 20
    style = f'class="line c{number}" stroke-dasharray="{dash}"'
    return [
        f'<polyline {style} points="{path}"/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" class="dot c{number}"/>' for x, y in positions),
        f'<path {style} d="M{x} {y}h24"/>',
        _text(x + 30, y + 4, name),
    ]


def ceiling(value: float) -> float:
    """The next greater number of the form 1, 2, 4 or 8 times a power of ten."""
    power = 10 ** math.floor(math.log10(value)) if value > 0 else 1
    return next(step * power for step in (1, 2, 4, 8, 10) if step * power >= value)


def _text(x: float, y: float, text: str, weight: str = "normal", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-weight="{weight}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )


def _document(parts: Sequence[str]) -> str:
    """Its colours follow the reader's preference."""
    dark = _style("#e6edf3", "#3d444d", "#0d1117", DARK_COLOURS)
    style = (
        "text{font:12px sans-serif}.line{fill:none!important;stroke-width:2}"
        ".dot{stroke:none!important}"
        + _style("#222", "#ddd", "#fff", COLOURS)
        + f"@media(prefers-color-scheme:dark){{{dark}}}"
    )
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}">\n'
        f"<style>{style}</style>\n"
        f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>\n{body}\n</svg>\n'
    )


def _style(text: str, grid: str, page: str, colours: Sequence[str]) -> str:
    lines = "".join(f".c{n}{{stroke:{colour};fill:{colour}}}" for n, colour in enumerate(colours))
    return f"text{{fill:{text}}}.grid{{stroke:{grid}}}.page{{fill:{page}}}{lines}"


def draw_all(figures: Figures) -> dict[str, str]:
    """The charts, by file name. Raises BadDocument if a chart has no figures."""
    return {f"{name}.svg": draw(chart, figures) for name, chart in CHARTS.items()}
