"""Charts: what is drawn where."""

import re
from xml.etree import ElementTree

import pytest

from tests.bench import plots
from tests.bench.__main__ import PARTS
from tests.bench.figures import MEASURES, BadDocument, Figures
from tests.bench.plots import CHARTS, Chart, ceiling, draw, points

CHART = Chart("A <title>", "x", "y", {"one": ("create", "wide", ("server_cpu", "postgres_cpu"))})


def measured(values: dict[int, float]) -> Figures:
    figures = Figures()
    for size, value in values.items():
        figures.add("create", "wide", size, server_cpu=value / 4, postgres_cpu=3 * value / 4)
    return figures


def line(figures: Figures) -> list[tuple[float, float]]:
    svg = draw(CHART, figures)
    (found,) = re.findall(r'<polyline [^>]*points="([^"]*)"', svg)
    return [(float(x), float(y)) for x, y in (one.split(",") for one in found.split())]


def test_sums_are_drawn_in_the_order_of_sizes() -> None:
    assert points(measured({1000: 8, 10: 4}), "create", "wide", ("server_cpu", "postgres_cpu")) == [
        (10, 4),
        (1000, 8),
    ]


def test_sizes_have_a_logarithmic_axis_and_values_a_linear_one() -> None:
    (x1, y1), (x2, y2), (x3, y3) = line(measured({10: 4, 100: 0, 1000: 8}))
    assert (x1, x3) == (plots.LEFT, plots.WIDTH - plots.RIGHT) and x2 == (x1 + x3) / 2
    assert (y2, y3) == (plots.HEIGHT - plots.BOTTOM, plots.TOP) and y1 == (y2 + y3) / 2


def test_size_zero_and_unmeasured_sizes_are_left_out() -> None:
    figures = measured({0: 1, 10: 4, 100: 4})
    figures.add("create", "wide", 1000, server_cpu=1)
    assert len(line(figures)) == 2


def test_chart_without_figures_is_refused() -> None:
    with pytest.raises(BadDocument, match="A <title>"):
        draw(CHART, Figures())


def test_chart_is_xml() -> None:
    root = ElementTree.fromstring(draw(CHART, measured({10: 4, 100: 4})))
    assert "A <title>" in [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (1, 1), (3, 4), (81, 100), (0.15, 0.2), (2000, 2000)]
)
def test_axis_ends_at_a_round_number(value: float, top: float) -> None:
    assert ceiling(value) == pytest.approx(top)


def test_charts_show_parts_and_measures_that_exist() -> None:
    for chart in CHARTS.values():
        for part, _, measures in chart.lines.values():
            assert part in PARTS and set(measures) <= set(MEASURES)
