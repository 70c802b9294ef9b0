"""`adapt replay repartition`: triggers, the base, `--live`, the report of it, and every way to get it wrong."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.engines.names import Engine
from adapt.core.engines.registry import placement_of
from adapt.traces.store.runs import read_run
from adapt.traces.store.trace import open_trace
from tests.traces.small_traces import write_trace

ROWS = 4_000
QUICK = "--channels 3 --period 20s --max-pins 10"
LIVE = f"{QUICK} --live --speedup 100"


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
    return adapt.json("replay", "repartition", *line)


@pytest.mark.parametrize("trigger", ["period", "violation", "worth"])
def test_a_live_run_is_printed_kept_and_reported(adapt, here, trigger):
    document = told(adapt, "x.trace", *LIVE.split(), "--trigger", trigger, "-o", "x.run")
    assert document["mechanism"] == "repartition"
    assert [row["case"] for row in document["cases"]] == ["static", trigger, "flux", "in-sample"]
    assert all(row["processed"] == ROWS for row in document["cases"])
    assert read_run(here / "x.run").as_data() == document
    adopted = [row for row in document["periods"] if row["adopts"] == "yes"]
    assert len(adopted) == document["summary"]["rebuilds"] == document["cases"][1]["migrations"] > 0
    assert document["cases"][1]["state_moved_bytes"] == 80 * sum(row["state_moved"] for row in adopted)
    page = here / "page.html"
    adapt.done("report", "x.run", "--html", page)
    assert document["summary"]["verdict"].split(":")[0] in page.read_text()
    adapt.done("check", "x.run", "--limit", f"busiest_time[case={trigger}]<=1d", "--limit", "rebuilds<=50")
    decided = told(adapt, "x.trace", *QUICK.split(), "--trigger", trigger)
    without = [[{**row, "build_s": None} for row in each["periods"]] for each in (decided, document)]
    assert without[0] == without[1]


def test_the_base_is_the_engine_s(adapt, here):
    """Rows that no plan pins lie where the engine puts them, with Spark's hash, not on a ring."""
    (batch,) = pa.Table.from_batches(open_trace(here / "x.trace").batches(["key"])).combine_chunks().to_batches()
    for engine in ("spark", "flink"):
        line = ("x.trace", "--channels", "3", "--period", "20s", "--max-pins", "0", "--engine", engine)
        document = told(adapt, *line)
        placed = placement_of(Engine(engine), 3).channels_of(batch.column(0))
        loads = np.bincount(np.arange(ROWS) // 800 * 3 + placed, minlength=15).reshape(5, 3)
        assert [row["imbalance"] for row in document["periods"]] == pytest.approx(
            loads.max(axis=1) / loads.mean(axis=1)
        )
        assert document["summary"]["mean_imbalance"] == document["summary"]["mean_imbalance_today"]
        assert document["parameters"]["base"] == engine
    on_ring = "--channels 3 --engine consistent:hash=xxhash64", "--channels 3 --engine consistent:replicas=50"
    for others in (*on_ring, "--schedule 0s:3,40s:4"):
        parameters = told(adapt, "x.trace", *others.split(), "--period", "20s")["parameters"]
        assert parameters["replicas"] is not None  # on a ring
        assert "base" not in parameters


def test_a_trigger_that_never_rebuilds_does_not_help(adapt, here):
    line = (*LIVE.split(), "--trigger", "violation", "--tolerance", "1e6")
    document = told(adapt, "x.trace", *line)
    assert document["cases"][1]["migrations"] == 0
    assert document["summary"]["verdict"].startswith("Rebuilding on a violation does not help: ")


def test_rows_weigh_what_they_cost(adapt, here):
    by_cost = told(adapt, "cost.trace", *LIVE.split())
    by_count = told(adapt, "cost.trace", *LIVE.split(), "--service-time", "50us")
    assert by_cost["parameters"]["weight"] == "cost"
    assert by_count["parameters"]["weight"] == "count"
    assert max(row["state_moved"] or 0 for row in by_cost["periods"]) > 1000  # microseconds, not rows


def test_a_derived_window_decides_alike_on_a_trace_cut_later(adapt, here):
    batches = open_trace(here / "x.trace").batches(["ts", "key"])
    rows = pa.Table.from_batches(batches).cast(pa.schema({"ts": pa.timestamp("us", "UTC"), "key": pa.string()}))
    write_trace(here / "cut.trace", rows.slice(0, 3_500))
    line = (*QUICK.split(), "--window", "auto", "--trigger", "worth")
    after, before = (
        [(row["start"], row["adopts"], row["why"]) for row in told(adapt, name, *line)["periods"]]
        for name in ("x.trace", "cut.trace")
    )
    assert len(before) > 20
    assert after[: len(before)] == before


@pytest.mark.parametrize(
    ("code", "line", "sentence"),
    [
        (2, "x.trace", "give either --channels N or --schedule 0h:N,6h:N"),
        (2, "x.trace --channels 3 --resources state=n+column:cost", "--resources takes three letters of C, L, Q"),
        (2, "x.trace --channels 3 --window 2h", "--window 2h is longer than the trace, which has 99975ms; give"),
        (2, "x.trace --channels 3 --period 1s --step 300ms", "--step 300ms must divide --period 1s"),
        (2, "x.trace --channels 3 --period 1s --step 1us --trigger worth", "divide the trace, which has 99975ms, into"),
        (2, "x.trace --channels 3 --trigger violation --resources CCC", "needs a load that grows with rows"),
        (2, "x.trace --channels 3 --move-cost 1", "--move-cost has no effect with --trigger period; give"),
        (2, "x.trace --channels 3 --speedup 2", "--speedup has no effect without --live; give --live, or"),
        (2, "x.trace --channels 3 --live --period 100rows", "a live replay needs a --period in time, such as 6h (got"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_line(adapt, here, code, line, sentence):
    assert sentence in adapt.refused(code, "replay", "repartition", *line.split())
