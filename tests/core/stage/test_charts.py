import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.stage.charts import (
    MOST_MARKS,
    MOST_POINTS,
    MOST_WORKERS,
    stage_charts,
    utilization_of_workers,
    workers_over_time,
)
from adapt.core.table import Column, Kind, Table
from tests.core.stage.stage_series import stage_tables


def drawn(chart):
    return chart.spec["data"]["values"]


def titles(*tables):
    return [chart.title for chart in stage_charts(*tables)]


def test_what_waits_at_the_source_or_lies_on_disk_is_drawn_where_anything_does():
    usual, workers = ["Throughput", "Latency", "Rows between source and workers"], ["Workers, static", "Workers, load"]
    assert titles(*stage_tables()) == usual + workers
    assert titles(*stage_tables(queue=1)) == [*usual, "Rows waiting at the source", *workers]
    assert titles(*stage_tables(on_disk=2)) == [*usual, "Partitions on disk", *workers]


def test_the_rate_stands_under_what_the_workers_can_do_over_marks_of_moves():
    chart = stage_charts(*stage_tables())[0]
    heights = {(point["series"], point["x"]): point["y"] for point in drawn(chart) if not point["moved"]}
    assert heights["static", 1.0] == 100.0
    assert heights["load", 20.0] == 120.0
    assert heights["capacity", 3.0] == 150.0
    assert sum(point["moved"] for point in drawn(chart)) == 5
    assert "ticks at the bottom mark decisions" in chart.sentence
    assert "ticks" not in stage_charts(*stage_tables(moves=0))[0].sentence


def test_a_capacity_far_above_the_rate_does_not_press_it_to_the_foot():
    intervals, workers, moves = stage_tables()
    at = [column.name for column in intervals.columns].index("capacity")
    high = Table(intervals.title, intervals.columns, tuple((*row[:at], 1e6, *row[at + 1 :]) for row in intervals.rows))
    chart = stage_charts(high, workers, moves)[0]
    assert {point["series"] for point in drawn(chart)} == {"static", "load"}
    assert "dashed" not in chart.sentence


def test_long_runs_are_thinned_and_said_to_be():
    rate, latency, *_ = stage_charts(*stage_tables(seconds=3 * MOST_POINTS, moves=5000))
    assert sum(point["series"] == "load" and not point["moved"] for point in drawn(rate)) == MOST_POINTS
    assert sum(point["moved"] for point in drawn(rate)) <= MOST_MARKS
    assert "3 adjacent rows" in latency.sentence
    assert max(point["y"] for point in drawn(latency)) == pytest.approx(0.01 * 3 * MOST_POINTS)


@given(st.integers(1, 300), st.integers(2, 80), st.integers(0, 2**20))
def test_the_stretches_of_a_worker_are_its_shades_without_a_gap(seconds, workers, seed):
    busy = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], (seconds, workers))
    chart = utilization_of_workers(stage_tables(("static",), seconds, workers, busy=busy)[1], "static")
    points = drawn(chart)
    assert len({point["k"] for point in points}) <= MOST_WORKERS
    assert all(0 < point["y"] <= 1 and point["x"] < point["until"] <= seconds for point in points)
    if workers <= MOST_WORKERS and seconds <= 90:
        for worker in range(workers):
            filled = np.zeros(seconds)
            for point in points:
                if point["k"] == worker:
                    filled[int(point["x"]) : int(point["until"])] += point["y"]
            assert filled.tolist() == busy[:, worker].tolist()


def test_a_worker_that_is_never_busy_has_its_line_too():
    busy = np.ones((10, 4)) * [0.0, 0.5, 0.0, 1.0]
    chart = utilization_of_workers(stage_tables(("static",), 10, 4, busy=busy)[1], "static")
    assert {point["k"] for point in drawn(chart)} == {1, 3}
    assert chart.spec["encoding"]["y"]["scale"]["domain"] == [0, 1, 2, 3]


def test_tables_without_rows_give_empty_charts():
    for chart in stage_charts(*(Table(table.title, table.columns, ()) for table in stage_tables())):
        assert chart.is_empty
        json.dumps(chart.spec, allow_nan=False)


def test_steps_are_marked_where_they_were_decided():
    intervals, _, _ = stage_tables()
    columns = (*intervals.columns, Column("workers", Kind.COUNT))
    with_workers = Table(intervals.title, columns, tuple((*row, 3) for row in intervals.rows))
    names = (Column("case"), Column("decided", Kind.SECONDS), Column("why"), Column("before"), Column("after"))
    steps = Table.from_rows("Steps", names, [("load", 4.5, "up", 3, 5), ("load", 9.0, "rebuild", 5, 5)])
    chart = workers_over_time(with_workers, steps)
    marks = [point for point in drawn(chart) if point.get("why")]
    assert [(point["x"], point["y"], point["d"]) for point in marks] == [
        (4.5, 5, "load, 4.5 s: up, 3 to 5"),
        (9.0, 5, "load, 9 s: rebuild, 5 to 5"),
    ]
    assert "Triangles" in chart.sentence
    assert "Triangles" not in workers_over_time(with_workers).sentence
