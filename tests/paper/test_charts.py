"""Charts of means draw what their tables hold, with intervals, and give each series one colour everywhere."""

import pytest

from adapt.core.report.svg import render_svg
from adapt.core.table import Column, Kind, Table
from paper.charts import dots, heat, lines, scatter
from paper.estimates import Estimate
from paper.report import averaged, cells

ORDER = ("uniform", "scan", "readj")


def table(schemes=("readj", "uniform"), xs=(1, 10), b=1.5) -> Table:
    columns = (Column("scheme"), Column("x", Kind.NUMBER), *averaged([Column("b", Kind.RATIO)]))
    rows = [(name, x, *cells(Estimate.of([b, b + 0.2 * x]))) for x in xs for name in schemes]
    return Table.from_rows("A table", columns, rows)


def points(chart):
    return chart.spec["data"]["values"]


def colours(chart):
    scale = chart.spec["layer"][-1]["encoding"]["color"]["scale"]
    return dict(zip(scale["domain"], scale["range"], strict=True))


def test_a_point_is_a_mean_with_the_ends_of_its_interval():
    drawn = lines("A chart", "It shows b.", table(), "x", "b")
    estimate = Estimate.of([1.5, 1.7])
    assert points(drawn)[0]["y"] == pytest.approx(1.6)
    assert points(drawn)[0]["high"] == pytest.approx(estimate.high)
    assert points(drawn)[0]["low"] == pytest.approx(estimate.low)
    # An interval that reaches below zero ends just above it, for logarithmic axes.
    assert Estimate.of([1.5, 3.5]).low < 0 < points(drawn)[-1]["low"] < 0.1


def test_a_series_has_the_colour_of_its_place_in_every_chart():
    both = lines("A chart", "It shows b.", table(), "x", "b", order=ORDER)
    alone = dots("A chart", "It shows b.", table(("readj",)), "x", "b", order=ORDER)
    assert list(colours(both)) == ["uniform", "readj"]
    assert colours(both)["readj"] == colours(alone)["readj"] != colours(both)["uniform"]


def test_only_what_is_asked_for_is_drawn():
    drawn = lines("A chart", "It shows b.", table(xs=(1, 10, 100)), "x", "b", only=["readj"], up_to=10)
    assert {(point["series"], point["x"]) for point in points(drawn)} == {("readj", 1), ("readj", 10)}


def test_a_mean_that_is_not_defined_or_not_positive_on_a_logarithmic_axis_leaves_a_gap():
    columns = (Column("scheme"), Column("x", Kind.NUMBER), *averaged([Column("b", Kind.RATIO)]))
    held = Table.from_rows("A table", columns, [("scan", 1, None, None), ("scan", 2, 0.0, 0.0), ("scan", 3, 2.0, 0.1)])
    assert [point["x"] for point in points(lines("A chart", "", held, "x", "b"))] == [2, 3]
    assert [point["x"] for point in points(lines("A chart", "", held, "x", "b", log_y=True))] == [3]


def test_means_that_lie_close_are_not_marked():
    marks = [layer["mark"] for layer in lines("A chart", "", table(), "x", "b", spots=False).spec["layer"]]
    assert "line" in marks
    assert len(lines("A chart", "", table(), "x", "b").spec["layer"]) == len(marks) + 1


@pytest.mark.parametrize("draw", [lines, dots])
def test_charts_can_be_drawn(draw):
    drawn = draw("A chart", "It shows b.", table(), "x", "b", log_y=True, mark=1.0, order=ORDER)
    svg = render_svg(drawn.spec)
    assert svg.count('stroke-dasharray="5,4"') == 1
    assert "readj" in svg


def test_a_scatter_draws_every_row_in_the_colour_of_its_series():
    drawn = scatter("A chart", "It shows b.", table(), "x", "b", "scheme", order=ORDER)
    assert [(point["series"], point["x"]) for point in points(drawn)] == [
        ("readj", 1),
        ("uniform", 1),
        ("readj", 10),
        ("uniform", 10),
    ]
    scale = drawn.spec["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == colours(
        lines("A chart", "It shows b.", table(), "x", "b", order=ORDER)
    )
    assert "<svg" in render_svg(drawn.spec)


def test_a_cell_has_the_colour_of_its_power_of_ten():
    columns = (Column("x", Kind.NUMBER), Column("y", Kind.NUMBER), Column("p", Kind.SHARE))
    cells = Table.from_rows("Cells", columns, [(0, 0, 0.5), (2, 0, 0.1), (0, 2, 0.09), (2, 2, 1e-9)])
    drawn = heat("A chart", "It shows p.", cells, "x", "y", "p", 4, [(0, 3), (3, 0)])
    assert [point["series"] for point in points(drawn)] == ["10 % or more", "10 % or more", "1 %", "less"]
    assert [(point["x2"], point["y2"]) for point in points(drawn)] == [(2, 2), (4, 2), (2, 4), (4, 4)]
    assert "10 % or more" in render_svg(drawn.spec)
