"""Charts: what they draw of a table, and as SVG."""

import json
import re
from math import inf
from xml.etree import ElementTree

import pytest

from adapt.core.charts.axes import bin_size, highest_of_neighbours, log_spaced
from adapt.core.charts.over_time import imbalance_per_period, migration_per_period, rate_over_time
from adapt.core.report.key_charts import channel_loads, rank_frequency, top_keys
from adapt.core.report.move_charts import MOST_CHANNELS, migration_matrix
from adapt.core.report.scheme_charts import comparison, three_way_trade
from adapt.core.report.svg import render_svg
from adapt.core.report.verdict_charts import life_lines
from adapt.core.table import Column, Kind, Table


def rates(count):
    columns = (Column("time", Kind.TIME), Column("rows", Kind.COUNT), Column("peak", Kind.COUNT))
    return Table.from_rows("Rate", columns, [(at * 1_000_000, at % 7, 1) for at in range(count)])


def compared(rows):
    columns = (
        Column("scheme"),
        Column("construction"),
        Column("channels", Kind.COUNT),
        Column("imbalance", Kind.RATIO),
        Column("best_possible", Kind.RATIO),
        Column("m", Kind.RATIO),
    )
    return Table.from_rows("Comparison", columns, rows)


def drawn(chart):
    return chart.spec["data"]["values"]


def test_a_peak_survives_down_sampling():
    assert highest_of_neighbours([1, None, 9, 2, float("nan"), None], 2) == [1, 9, None]
    assert [bin_size(count, 600) for count in (0, 600, 601, 10_000)] == [1, 1, 2, 17]


def test_log_spacing_keeps_the_head_whole_and_thins_the_tail():
    kept = log_spaced(range(1, 100_001), 300)
    assert kept[:5] == [0, 1, 2, 3, 4]
    assert len(kept) <= 300


def test_every_number_of_a_series_is_in_its_table():
    table = rates(1_300)
    heights = {point["y"] for point in drawn(rate_over_time(table))}
    assert heights <= {*table.values("rows"), *table.values("peak")}


def test_a_comparison_names_construction_and_floor_and_leaves_out_what_is_infinite():
    charts = comparison(compared([("hybrid", "scan", 2, 1.1, 1.0, 0.5), ("uniform", None, 4, inf, 1.0, 0.75)]))
    assert [point["series"] for point in drawn(charts[0])] == ["hybrid scan"]
    assert "best possible imbalance" in charts[0].sentence
    assert len(charts) == 3


def test_the_trade_is_drawn_at_the_most_channels_with_what_it_takes():
    columns = (*compared([]).columns, Column("pinned_keys", Kind.COUNT))
    rows = [
        ("hybrid", "scan", 4, 1.1, 1.0, 0.5, 90),
        ("uniform", None, 4, 1.9, 1.0, 0.75, 0),
        ("x", None, 2, 1, 1, 1, 1),
    ]
    chart = three_way_trade(Table.from_rows("Comparison", columns, rows))
    assert [(point["t"], point["x"], point["y"], point["size"]) for point in drawn(chart)] == [
        ("hybrid scan", 1.1, 0.5, 90),
        ("uniform", 1.9, 0.75, 0),
    ]
    assert drawn(chart)[0]["d"] == "hybrid scan: imbalance 1.100, m 0.500, pinned_keys 90"
    assert "at 4 workers" in chart.sentence


def test_a_law_is_drawn_where_it_holds_and_a_threshold_where_keys_come_to_it():
    ranks = Table.from_rows(
        "Ranks", (Column("rank", Kind.COUNT), Column("share", Kind.SHARE)), [(at, 0.2 / at) for at in range(1, 200)]
    )
    names = ("zipf_exponent", "zipf_first_rank", "zipf_last_rank", "zipf_share")
    held = sum(0.2 / at for at in range(2, 101))
    law = Table.from_rows("Zipf law", [Column(name, Kind.NUMBER) for name in names], [(1.0, 2, 100, held)])
    chart = rank_frequency(ranks, law=law, thresholds={"fair": 0.05, "far away": 1e-9})
    fit = [point for point in drawn(chart) if point["part"] == "fit"]
    assert [point["x"] for point in fit] == [2, 100]
    assert [point["y"] for point in fit] == pytest.approx([0.1, 0.002])
    assert [point["t"] for point in drawn(chart) if point["part"] == "rule"] == ["fair"]
    assert "rank^-1.00, fitted to ranks 2 to 100" in chart.sentence
    assert "The line at 5 % is fair." in chart.sentence
    none = Table.from_rows("Zipf law", law.columns, [(None,) * 4])
    assert {point["part"] for point in drawn(rank_frequency(ranks, law=none))} == {"dot", ""}


@pytest.mark.parametrize(
    "build",
    [
        rate_over_time,
        rank_frequency,
        top_keys,
        imbalance_per_period,
        migration_per_period,
        channel_loads,
        lambda table: comparison(table)[0],
    ],
)
def test_tables_without_rows_give_empty_charts(build):
    names = "time rows rank share key start imbalance best_possible state_moved channel load channels scheme m"
    chart = build(Table.from_rows("Empty", [Column(name, Kind.NUMBER) for name in names.split()], []))
    assert chart.is_empty
    json.dumps(chart.spec, allow_nan=False)


def test_bars_of_periods_that_start_together_stand_side_by_side():
    columns = (Column("period", Kind.COUNT), Column("start", Kind.TIME), Column("state_moved", Kind.NUMBER))
    rows = [(1, 0, 5), (2, 1_000_000, 6), (3, 1_000_000, 7), (4, 3_000_000, 8)]
    bars = migration_per_period(Table.from_rows("Periods", columns, rows)).spec["data"]["values"]
    assert [bar["x"] for bar in bars] == [1, 2, 3, 4]
    assert all(bar["x"] < bar["until"] <= bar["x"] + 1 for bar in bars)
    unnumbered = Table.from_rows("Periods", columns[1:], [row[1:] for row in rows])
    assert all(bar["until"] > bar["x"] for bar in migration_per_period(unnumbered).spec["data"]["values"])


def hot_keys(**shares):
    columns = (Column("key"), Column("window", Kind.COUNT), Column("start", Kind.TIME), Column("share", Kind.SHARE))
    rows = [(key, at, at * 3_600_000_000, share) for key, line in shares.items() for at, share in enumerate(line)]
    return Table.from_rows("Life-lines", columns, rows)


def test_life_lines_share_one_scale_and_have_times():
    chart = life_lines(hot_keys(hot=[0.4, 0.1, 0.1], mild=[0.1, 0.2, 0.1]))
    heights = {}
    for point in drawn(chart):
        if "base" in point:
            heights.setdefault(point["name"], []).append(point["y"] - point["base"])
    assert max(heights["hot"]) == pytest.approx(2 * max(heights["mild"]))
    assert max(heights["hot"]) < 1
    assert [point["t"] for point in drawn(chart) if "t" in point] == ["40 %", "20 %"]
    picture = render_svg(chart.spec)
    assert "start (UTC)" in picture
    assert "share of load, 0 to 40 % per row" in picture


COLUMNS = (
    *(Column("from", Kind.COUNT), Column("to", Kind.COUNT), Column("keys", Kind.COUNT), Column("state", Kind.NUMBER)),
)


def test_each_pair_has_a_square():
    chart = migration_matrix(Table.from_rows("Moves", COLUMNS, [(0, 1, 3, 90.0), (2, 0, 1, 5.0)]))
    assert [(point["from"], point["to"], point["y"]) for point in drawn(chart)] == [(0, 1, 90.0), (2, 0, 5.0)]
    assert drawn(chart)[0]["d"] == "0 to 1: 3 keys, state 90"


def test_of_many_channels_those_with_most_are_drawn_and_it_is_said():
    rows = [(at, at + 1, 1, float(1000 - at)) for at in range(200)]
    chart = migration_matrix(Table.from_rows("Moves", COLUMNS, rows))
    assert {point["from"] for point in drawn(chart)} == set(range(MOST_CHANNELS))
    assert f"{MOST_CHANNELS} of 200 pairs" in chart.sentence


HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "&lt;",
    "\u202eright to left\u200f",
    "a" * 65_536,
    "nul\x00 bell\x07 \x1b[31m",
    "\ud800",
    "\ufffe",
    "",
    None,
]


def chart_of(keys):
    columns = (Column("key"), Column("share", Kind.SHARE))
    return top_keys(Table.from_rows("Top", columns, [(key, 0.1 - at / 1000) for at, key in enumerate(keys)]))


def test_ids_are_the_callers():
    drawn = render_svg(chart_of(["a", "b"]).spec, prefix="c7")
    assert set(re.findall(r'id="([^"]*)"', drawn)) <= set(re.findall(r'id="(c7-\d+)"', drawn))
    assert set(re.findall(r"url\(#([^)]*)\)", drawn)) <= set(re.findall(r'id="([^"]*)"', drawn))


def test_hostile_keys_are_text_and_nothing_else():
    root = ElementTree.fromstring(render_svg(chart_of(HOSTILE).spec))
    names = {element.tag.split("}")[1] for element in root.iter()}
    assert names <= {"svg", "g", "path", "rect", "line", "text", "tspan", "title", "defs", "clipPath"}
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not any(name.startswith("on") or "href" in name or name == "style" for name in attributes)
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert "\\ud800" in texts
    assert "nul\\x00 bell\\x07 \\x1b[31m" in texts


def test_ink_follows_the_page_and_the_ground_is_clear():
    drawn = render_svg(chart_of(["a"]).spec)
    assert 'fill="currentColor"' in drawn
    assert "#010203" not in drawn
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")


def test_a_screen_reader_is_told_what_it_is():
    root = ElementTree.fromstring(render_svg(chart_of(["a"]).spec))
    assert root.get("role") == "img"
    assert root.get("aria-label") == "Hot keys"
    assert root[0].tag.endswith("title")
