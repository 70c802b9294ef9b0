"""Spark and this process count, measure and evaluate alike, to the last bit."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.sliding import SlidingWindow
from adapt.core.counting.timeline import Panes
from adapt.core.engines.names import Engine
from adapt.core.errors import BadInput
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import COLUMN_TYPES, KeyType, Weight
from adapt.core.units.row_or_time_span import Length
from adapt.traces import block_cache
from adapt.traces.counting import count as counting
from adapt.traces.counting import exact, lossy
from adapt.traces.counting.evaluating import evaluate_plans
from adapt.traces.counting.exact import measure_columns
from adapt.traces.counting.routed_sums import channel_loads
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions
from adapt.traces.store import frequencies
from adapt.traces.store import trace as store
from adapt.traces.store.manifest import Provenance
from tests.tiers import soak
from tests.traces.small_traces import write_trace

pytestmark = pytest.mark.usefixtures("spark")

ROWS = 6_000
SLOW = (Weight.COST, Weight.BYTES)
BLOCK = 1_024
RUNNERS = (RunnerName.SPARK, RunnerName.IN_PROCESS)
ARROW = {KeyType.STRING: pa.string(), KeyType.BINARY: pa.binary(), KeyType.INT64: pa.int64()}


@pytest.fixture(scope="module", params=COLUMN_TYPES)
def trace(request, tmp_path_factory):
    """Several blocks of skewed keys, some null, with costs that round, sizes and streams."""
    draw = np.random.default_rng(7)
    numbers = draw.zipf(1.2, ROWS) % 3_000
    keys = pa.array([None if number == 5 else int(number) for number in numbers], pa.int64())
    if request.param is not KeyType.INT64:
        keys = keys.cast(pa.string()).cast(ARROW[request.param])
    rows = {
        "ts": pa.array(np.sort(draw.integers(0, 10**9, ROWS)), pa.timestamp("us", "UTC")),
        "key": keys,
        "stream": pa.array([f"s{number % 3}" for number in numbers]),
        "cost_us": pa.array(draw.exponential(3.0, ROWS)),
        "bytes": pa.array(draw.integers(0, 1_000, ROWS)),
    }
    with pytest.MonkeyPatch.context() as patched:
        for module in (store, lossy, exact):
            if hasattr(module, "BLOCK_ROWS"):
                patched.setattr(module, "BLOCK_ROWS", BLOCK)
        patched.setattr(lossy, "FLUSH_ROWS", 256)
        yield write_trace(tmp_path_factory.mktemp(request.param) / "t.trace", pa.table(rows))


def both(count):
    """What `count` gives on Spark and in this process."""
    return [count(SparkOptions(runner=runner)) for runner in RUNNERS]


def facts(counted):
    return (
        counted.keys.to_pylist(),
        counted.count_low.tolist(),
        counted.count_high.tolist(),
        (counted.total, counted.rows, counted.epsilon, counted.complete_above, counted.distinct),
    )


@pytest.mark.parametrize(("weight", "epsilon"), [(Weight.COUNT, 0.003), (Weight.COST, 0.05), (Weight.BYTES, 0.003)])
def test_lossy_counts(trace, weight, epsilon):
    on_spark, here = both(lambda at: facts(lossy.count_lossy(trace, epsilon, weight=weight, spark_options=at)))
    assert on_spark == here


@pytest.mark.parametrize("weight", list(Weight))
def test_exact_counts(trace, weight):
    on_spark, here = both(lambda at: facts(exact.count_exactly(trace, weight=weight, spark_options=at)))
    assert on_spark == here


@pytest.mark.parametrize("weight", [Weight.COUNT, *(pytest.param(each, marks=soak) for each in SLOW)])
def test_exact_counts_of_more_keys_than_are_held(trace, weight, tmp_path, monkeypatch):
    """Tasks write them; the content is that of counts in memory, and the heaviest keys are read."""
    whole = exact.count_exactly(trace, weight=weight)
    written = frequencies.write_frequencies(whole, tmp_path / "whole.freq", Provenance("test"))
    plans = [("ring", build_plan(whole, Recipe(Scheme.HYBRID), 7))]
    evaluated = evaluate_plans(plans, tmp_path / "whole.freq").as_data()
    monkeypatch.setattr(frequencies, "MOST_KEYS", 100)
    monkeypatch.setattr(frequencies, "HEAVIEST", 40)
    monkeypatch.setattr(counting, "KEYS_A_PART", 300)
    for runner in RUNNERS:
        monkeypatch.setattr(block_cache, "CACHE", str(tmp_path / runner))
        kept = counting.all_keys(trace, weight, spark_options=SparkOptions(runner=runner))
        read, manifest = frequencies.read_frequencies(kept, check_all=True)
        assert len(manifest.files) > 1 or runner is RunnerName.IN_PROCESS
        assert (manifest.summary["keys"], manifest.summary["total"]) == (
            len(whole.keys),
            pytest.approx(whole.total, rel=1e-12),
        )
        if weight is not Weight.COST:  # costs are rounded once, where those in memory are rounded on the way
            assert manifest.content_hash == written.content_hash
        assert facts(read) == facts(replace(whole.first(40), total=read.total))
        assert weight is Weight.COST or evaluate_plans(plans, kept).as_data() == evaluated
        copied = frequencies.write_frequencies(read, tmp_path / f"{runner}.freq", manifest.made, all_keys=kept)
        assert (
            copied.content_hash
            == manifest.content_hash
            == frequencies.read_frequencies(tmp_path / f"{runner}.freq", check_all=True)[1].content_hash
        )


@pytest.mark.parametrize("weight", [pytest.param(Weight.COUNT, marks=soak), Weight.COST])
def test_counts_over_time_by_stream_and_in_a_window(trace, weight):
    panes, window = Panes(Length(700, in_rows=True)), SlidingWindow(Length(2_000, in_rows=True), 3)

    def count(at):
        over_time = lossy.count_panes(trace, panes, 0.02, weight=weight, spark_options=at).panes
        streams = lossy.count_streams(trace, 0.02, weight=weight, spark_options=at)
        return (
            [
                (pane.number, pane.first_us, pane.summary.keys.to_pylist(), pane.summary.counts.tolist())
                for pane in over_time
            ],
            [(name, facts(counted)) for name, counted in streams.items()],
            facts(lossy.count_lossy(trace, 0.02, weight=weight, window=window, spark_options=at)),
        )

    on_spark, here = both(count)
    assert on_spark == here


def test_measured_columns(trace):
    keys = exact.count_exactly(trace, weight=Weight.COUNT).keys.slice(0, 40)
    on_spark, here = both(
        lambda at: [
            (column.source, column.values.tolist(), column.total)
            for column in measure_columns(trace, keys, ["bytes", "cost"], spark_options=at)
        ]
    )
    assert on_spark == here


@pytest.mark.parametrize("resources", [Resources(), Resources.parse("LQC", (1.2, 1.3, 1.1))], ids=["LLL", "LQC"])
def test_evaluations(trace, resources):
    counted = exact.count_exactly(trace, weight=Weight.COST)
    plans = [(scheme, build_plan(counted, Recipe(scheme), 4)) for scheme in (Scheme.UNIFORM, Scheme.HYBRID)]
    on_spark, here = both(lambda at: evaluate_plans(plans, trace.path, resources, spark_options=at).as_data())
    assert on_spark == here


@pytest.mark.parametrize("runner", RUNNERS)
def test_whole_sums_that_overflow_are_refused(tmp_path, runner):
    rows = {"ts": pa.array([0, 1, 2], pa.timestamp("us", "UTC")), "key": ["a", "a", "b"], "bytes": [2**62, 2**62, 1]}
    heavy = write_trace(tmp_path / "heavy.trace", pa.table(rows), parts=1)
    with pytest.raises(BadInput, match="overflow"):
        exact.count_exactly(heavy, weight=Weight.BYTES, spark_options=SparkOptions(runner=runner))


@pytest.mark.parametrize("weight", list(Weight))
def test_both_route_rows_alike(trace, weight, tmp_path):
    today = Plan(Engine.KAFKA, 5, trace.key_type)
    found = [
        channel_loads(trace, today, tmp_path / runner, weight, spark_options=SparkOptions(runner=runner))
        for runner in RUNNERS
    ]
    assert found[0].tobytes() == found[1].tobytes()
