"""Small answers of whole commands, against MurmurHash3 of mmh3 and arithmetic by hand."""

import json
import re

import mmh3
import numpy as np
import pytest

from tests.traces.small_traces import write_trace

COUNTS = {"user": 50, "key1": 30, "key2": 20, "key5": 10, "12345678": 5}
"""Keys of whole words of four bytes, whose hash in Spark is the standard one."""


@pytest.fixture
def spark_plan(adapt, tmp_path, monkeypatch):
    """A plan of Spark's own placement on 3 channels, and the load of each."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("".join(f"{key},{rows}\n" for key, rows in COUNTS.items()))
    line = "counts.csv --channels 3 --engine spark --max-pins 0 -o s.plan"
    adapt.done("partition", "build", *line.split())
    return np.bincount([mmh3.hash(key, 42) % 3 for key in COUNTS], [*COUNTS.values()], 3)


@pytest.mark.usefixtures("spark_plan")
def test_route_prints_where_spark_has_the_keys(adapt, tmp_path):
    (tmp_path / "keys").write_text("\n".join(COUNTS))
    printed = adapt.done("partition", "route", "s.plan", "keys").out
    assert printed.splitlines() == [f"{key}\t{mmh3.hash(key, 42) % 3}" for key in COUNTS]


def test_a_report_of_a_plan_has_the_loads_of_its_channels(adapt, spark_plan):
    (plan,) = json.loads(adapt.done("report", "s.plan", "--format", "json").out)["artefacts"]
    tables = {table["title"]: table["rows"] for table in plan["tables"]}
    assert tables["Plan"][0]["imbalance"] == pytest.approx(spark_plan.max() * 3 / sum(COUNTS.values()))
    assert {row["channel"]: row["computation"] for row in tables["Predicted load of each channel"]} == pytest.approx(
        dict(enumerate(spark_plan))
    )


def test_a_comparison_has_the_latency_of_rows_that_do_not_wait(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keys = ["user"] * 5 + ["key5", "key6", "key7"]
    write_trace(tmp_path / "x.trace", {"ts": np.arange(8) * 1_000_000, "key": keys}, parts=1)
    line = "x.trace --channels 2 --speedup 1 --scenario static-uniform --service-time constant(100ms) --jobs 1"
    told = json.loads(adapt.done("replay", "compare", *line.split(), "--format", "json").out)
    (row,) = told["scenarios"]
    assert [row[name] for name in ("latency_p50", "latency_p99")] == pytest.approx([0.1, 0.1], abs=1e-4)
    assert (row["processed"], row["lag_max"]) == (8, 1)
    assert row["finished"] == pytest.approx(7.1, abs=1e-4)
    halves = [(h1 * 2**64 + h2) % 128 // 64 for h1, h2 in (mmh3.hash64(key, signed=False) for key in keys)]
    rate = (
        10 / (max(np.bincount(halves)) / 8) / (8 / 7)
    )  # of a worker, by its share of the rows, over that of the trace
    assert float(re.search(r"saturates at ([\d.]+) times", told["summary"]["verdict"])[1]) == pytest.approx(rate, 0.01)
