"""`adapt replay replan`: what it prints and keeps, the report of it, and every way to get it wrong."""

import json

import numpy as np
import pyarrow as pa
import pytest

from adapt.traces.store.runs import read_run
from adapt.traces.store.trace import open_trace
from tests.traces.small_traces import write_trace

ROWS = 4_000
QUICK = "--channels 3 --period 20s --speedup 100 --max-pins 10"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A trace of four thousand rows in a hundred seconds, whose hot key changes half way, in the current folder."""
    monkeypatch.chdir(tmp_path)
    chance = np.random.default_rng(1)
    hot = np.where(np.arange(ROWS) < ROWS / 2, 1, 2)
    keys = np.where(chance.random(ROWS) < 0.3, hot, chance.integers(3, 300, ROWS))
    columns = {"ts": np.arange(ROWS) * 25_000, "key": pa.array([f"k{key}" for key in keys])}
    write_trace(tmp_path / "x.trace", columns)
    write_trace(tmp_path / "cost.trace", columns | {"cost_us": pa.array(chance.random(ROWS) * 100)})
    return tmp_path


def told(adapt, *line):
    return json.loads(adapt.done("replay", "replan", *line, "--format", "json").out)


def test_a_run_is_printed_kept_and_reported(adapt, here):
    document = told(adapt, "x.trace", *QUICK.split(), "-o", "x.run")
    assert document["mechanism"] == "replan"
    assert [row["case"] for row in document["cases"]] == [
        *("static", "period", "violation", "worth", "flux", "in-sample")
    ]
    assert all(row["processed"] == ROWS for row in document["cases"])
    assert read_run(here / "x.run").as_data() == document
    adopted = [row for row in document["decisions"] if row["adopts"] == "yes"]
    assert {row["case"] for row in adopted} >= {"period", "violation"}
    assert all(row["why"] for row in document["decisions"])
    shown = adapt.done("replay", "replan", "x.trace", *QUICK.split(), "-o", "again.run").out
    assert "Decisions that keep the plan are in one row" in " ".join(shown.split())
    assert read_run(here / "again.run").as_data() == document
    page = here / "page.html"
    adapt.done("report", "x.run", "--html", page)
    assert "beyond tolerance" in page.read_text()
    adapt.done("check", "x.run", "--limit", "busiest_s<=1d", "--limit", "adopted[case=worth]<=50")


def test_only_what_is_asked_for_runs(adapt, here):
    line = (*QUICK.split(), "--trigger", "violation", "--no-baseline", "--tolerance", "1e6")
    document = told(adapt, "x.trace", *line)
    assert [row["case"] for row in document["cases"]] == ["static", "violation"]
    assert document["cases"][1]["migrations"] == 0
    assert document["summary"]["verdict"].startswith("Keep today's placement")


def test_rows_weigh_what_they_cost(adapt, here):
    line = (*QUICK.split(), "--trigger", "period", "--no-baseline")
    by_cost = told(adapt, "cost.trace", *line)
    by_count = told(adapt, "cost.trace", *line, "--service-time", "50us")
    assert by_cost["parameters"]["weight"] == "cost"
    assert by_count["parameters"]["weight"] == "count"
    assert max(row["migrated_state"] or 0 for row in by_cost["decisions"]) > 1000  # microseconds, not rows


def test_a_derived_window_is_at_most_the_trace_and_decides_alike(adapt, here):
    """A trace cut later has another window, but the same decisions."""
    batches = open_trace(here / "x.trace").batches(["ts", "key"])
    rows = pa.Table.from_batches(batches).cast(pa.schema({"ts": pa.timestamp("us", "UTC"), "key": pa.string()}))
    write_trace(here / "cut.trace", rows.slice(0, 3_500))
    line = (*QUICK.split(), "--window", "auto", "--trigger", "period", "--trigger", "worth", "--no-baseline")
    whole, cut = (told(adapt, name, *line) for name in ("x.trace", "cut.trace"))
    assert [each["parameters"]["window"] for each in (whole, cut)] == ["4000rows", "3500rows"]
    for case in ("period", "worth"):
        before, after = (
            [(row["at"], row["adopts"], row["why"]) for row in each["decisions"] if row["case"] == case]
            for each in (cut, whole)
        )
        assert len(before) > 20
        assert after[: len(before)] == before


@pytest.mark.parametrize(
    ("code", "line", "sentence"),
    [
        (2, "x.trace", "give either --channels N or --schedule 0h:N,6h:N"),
        (2, "x.trace --channels 3 --schedule 3", "give either --channels N or --schedule 0h:N,6h:N"),
        (2, "x.trace --channels 1", "a stage needs 2 to 4,096 workers (got 1)"),
        (2, "x.trace --channels 3 --resources state=n+column:cost", "--resources column:cost: a replay only counts"),
        (2, "x.trace --channels 3 --window 2h", "--window 2h is longer than the trace, which has 99975ms; give"),
        (2, "x.trace --channels 3 --window 5000rows", "longer than the trace, which has 4,000 rows; give"),
        (2, "x.trace --channels 40 --window auto", "longer than the trace, which has 4,000 rows; give"),
        (2, "x.trace --channels 3 --window 1s --period 0s", "--period must be above 0 (got 0s)"),
        (2, "x.trace --channels 3 --window 1s --step 0s", "--step must be above 0 (got 0s)"),
        (2, "x.trace --channels 3 --window 1s --hold soon", "--hold"),
        (2, "x.trace --channels 3 --window 1s --move-cost -1", "the cost of moving state must be at least 0"),
        (2, "x.trace --channels 3 --window 1s --trigger sometimes", "sometimes"),
        (2, "x.trace --channels 3 --window 1s --speedup 0", "--speedup must be above 0 (got 0)"),
        (3, "nowhere.trace --channels 3", "nowhere.trace"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_line(adapt, here, code, line, sentence):
    assert sentence in adapt.refused(code, "replay", "replan", *line.split())
