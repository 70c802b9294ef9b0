"""Plans on every key, routed on Spark, against the metrics of the same keys held in one process."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.errors import BadInput
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.measures.imbalance import channel_loads
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.constraints import Constraints
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import COLUMN_TYPES, KeyType, Weight
from adapt.traces.counting import evaluating, exact
from adapt.traces.counting.count import Counting, count_trace
from adapt.traces.counting.evaluating import evaluate_counts, evaluate_plans
from adapt.traces.counting.exact import count_exactly
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions
from adapt.traces.store.frequencies import write_frequencies
from adapt.traces.store.manifest import Provenance
from tests.traces.small_traces import trace_of_source

ROWS = 4_000
RESOURCES = Resources.parse("LQC", (1.2, 1.3, 1.1))


@pytest.fixture(scope="module", params=COLUMN_TYPES)
def trace(request, tmp_path_factory):
    """A trace of each key type, skewed, with a null key and with costs that round."""
    folder = tmp_path_factory.mktemp(request.param)
    numbers = np.random.default_rng(1).zipf(1.3, ROWS) % 500
    keys = pa.array([None if number == 3 else int(number) for number in numbers], pa.int64())
    if request.param is not KeyType.INT64:
        keys = keys.cast(pa.string()).cast({KeyType.STRING: pa.string(), KeyType.BINARY: pa.binary()}[request.param])
    amounts = {"cost": [0.1 * (at % 7) for at in range(ROWS)], "bytes": [at % 11 for at in range(ROWS)]}
    return trace_of_source(folder / "t.trace", pa.table({"ts": range(ROWS), "key": keys, **amounts}))


def chain(frequencies, resources=RESOURCES):
    """Plans one after the other, of several schemes."""
    first = build_plan(frequencies, Recipe(Scheme.UNIFORM, resources=resources), 4)
    second = build_plan(frequencies, Recipe(Scheme.HYBRID, resources=resources, max_pins=20), 5, previous=first)
    third = build_plan(frequencies, Recipe(Scheme.BOUNDED, resources=resources), 5, previous=second)
    return [("first", first), ("second", second), ("third", third)]


def close(found, wanted):
    """Whether two metrics are the same; None is not defined in both."""
    return found == wanted or found == pytest.approx(wanted, rel=1e-9)


def same(found, plans, frequencies, resources=RESOURCES):
    """Whether an evaluation says what is true of counts that are held."""
    assert found.keys == len(frequencies.keys)
    before = None
    for each, (name, plan) in zip(found.plans, plans, strict=True):
        partitioner = plan.partitioner()
        wanted = evaluate(partitioner, frequencies, resources, before).as_data()
        assert each.name == name
        for metric, value in each.measured.as_data().items():
            assert close(value, wanted[metric]), (name, metric)
        loads = channel_loads(partitioner.channels_of(frequencies.keys), frequencies, resources, plan.channels)
        assert each.loads == pytest.approx(loads, rel=1e-12)
        before = partitioner


@pytest.mark.parametrize("weight", [Weight.COUNT, Weight.COST])
def test_a_trace_is_measured_as_its_exact_counts_are(trace, weight):
    frequencies = count_exactly(trace, weight=weight)
    plans = chain(frequencies)
    found = evaluate_plans(plans, trace.path, RESOURCES, weight=weight)
    same(found, plans, frequencies)
    assert found.weight is weight
    for each in found.plans:  # a plan built from the very keys foresaw what there is
        assert each.predicted.keys() >= {"imbalance", "r_s", "r_best", "b"}
        for metric, value in each.predicted.items():
            assert close(value, each.measured.as_data()[metric]), metric


@pytest.mark.parametrize("trace", [KeyType.STRING], indirect=True)
def test_the_same_comes_out_however_the_keys_are_shared_out(spark, trace, monkeypatch):
    plans = chain(count_exactly(trace))
    whole = evaluate_plans(plans, trace.path)
    monkeypatch.setattr(exact, "ROWS_A_PARTITION", 300)
    shared = evaluate_plans(plans, trace.path, spark_options=SparkOptions(runner=RunnerName.SPARK))
    assert json.dumps(shared.as_data()) == json.dumps(whole.as_data())
    frequencies = count_exactly(trace)
    monkeypatch.setattr(evaluating, "KEYS_AT_ONCE", 7)
    assert json.dumps(evaluate_counts(plans, frequencies).as_data()) == json.dumps(whole.as_data())


def test_channels_of_unequal_capacity_are_judged_by_their_utilisation(trace):
    frequencies = count_exactly(trace, weight=Weight.COUNT)
    plan = build_plan(frequencies, Recipe(Scheme.BOUNDED, cap=1.05, constraints=Constraints(capacities=(1, 2, 4))), 3)
    [found] = evaluate_plans([("p", plan)], trace.path, weight=Weight.COUNT).plans
    wanted = evaluate(plan.partitioner(), frequencies, Resources(), capacities=np.array([1, 2, 4]) * 3 / 7).as_data()
    for metric, value in found.measured.as_data().items():
        assert close(value, wanted[metric]), metric
    assert found.measured.imbalance < 1.1


def test_lossy_counts_are_refused_unless_nothing_was_lost(trace, tmp_path):
    true = count_exactly(trace, weight=Weight.COUNT)
    plans = chain(true)
    lossless = count_trace(trace, Counting(epsilon=0.01, weight=Weight.COUNT))
    same(evaluate_counts(plans, lossless, RESOURCES), plans, true)
    write_frequencies(lossless.first(3), tmp_path / "t.freq", Provenance("test"))
    with pytest.raises(BadInput, match=r"t\.freq lacks some keys"):
        evaluate_plans(plans, tmp_path / "t.freq")


@pytest.mark.parametrize("number", [pa.int32(), pa.float64()])
@pytest.mark.parametrize("folder", [False, True])
def test_parquet_of_keys_and_counts_is_added_up(tmp_path, number, folder):
    rows = [(f"k{at % 97}", at % 13) for at in range(1000)] + [(None, 5)]
    tally = Counter()
    for key, count in rows:
        tally[key] += count
    frequencies = frequencies_of(
        count_keys(pa.array(list(tally), pa.string()), np.array(list(tally.values()), np.float64))
    )
    table = pa.table({"key": [key for key, _ in rows], "count": pa.array([count for _, count in rows], number)})
    if folder:
        (tmp_path / "counts").mkdir()
        for part in range(3):
            pq.write_table(table[part * 400 : part * 400 + 400], tmp_path / "counts" / f"{part}.parquet")
    else:
        pq.write_table(table, tmp_path / "counts")
    plans = chain(frequencies)
    same(evaluate_plans(plans, tmp_path / "counts", RESOURCES), plans, frequencies)


@pytest.mark.parametrize(
    ("key", "counts", "said"),
    [
        ("a", [3, -1], "the counts of key 'a' must be at least 0"),
        ("a", [3, float("nan")], "the weight of key 'a' must be finite"),
        ("a", [2**62, 2**62], "the total count of one key overflows an int64"),
    ],
)
def test_counts_that_are_none_are_refused(tmp_path, key, counts, said):
    pq.write_table(pa.table({"key": [key] * len(counts), "count": counts}), tmp_path / "counts.parquet")
    plans = chain(frequencies_of(count_keys(pa.array(["a", "b"]))))
    with pytest.raises(BadInput, match=f"{said}"):
        evaluate_plans(plans, tmp_path / "counts.parquet")


def test_a_plan_for_other_keys_is_refused_with_the_remedy(trace):
    other = KeyType.STRING if trace.key_type is KeyType.INT64 else KeyType.INT64
    keys = pa.array([1, 2]) if other is KeyType.INT64 else pa.array(["a", "b"])
    plans = chain(frequencies_of(count_keys(keys)))
    with pytest.raises(BadInput, match=f"first is for {other} keys, but .* has {trace.key_type} keys; build"):
        evaluate_plans(plans, trace.path)


def test_a_key_that_is_not_foreseen_shows_beside_what_was(tmp_path):
    """By hand: two keys were predicted on two channels, and a third comes."""
    (tmp_path / "counts.csv").write_text("key,count\na,3\nb,3\n")
    plan = build_plan(frequencies_of(count_keys(pa.array(["a"] * 3 + ["b"] * 3))), Recipe(Scheme.BOUNDED), 2)
    (tmp_path / "more.csv").write_text("key,count\na,3\nb,3\nc,6\n")
    [found] = evaluate_plans([("p", plan)], tmp_path / "more.csv").plans
    assert found.predicted["imbalance"] == 1.0
    assert found.measured.imbalance == 1.5
    assert found.measured.m is None
    assert sorted(found.loads[2]) == [3, 9]
    [told] = [
        row
        for row in evaluate_plans([("p", plan)], tmp_path / "more.csv").predictions().records()
        if row["metric"] == "imbalance"
    ]
    assert told == {"plan": "p", "metric": "imbalance", "predicted": 1.0, "measured": 1.5, "error": 0.5}
