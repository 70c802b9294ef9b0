"""Loads of all rows by key, channel and partition, and the audit of a topic."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.frequencies import Frequencies
from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of
from adapt.core.errors import BadInput
from adapt.core.partitioning.build import Recipe, hashers_of
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.population import Population
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import COLUMN_TYPES, KeyType, Weight
from adapt.traces.counting import partitions
from adapt.traces.counting import population as module
from adapt.traces.counting.count import Counting, count_trace
from adapt.traces.counting.exact import count_exactly, with_columns
from adapt.traces.counting.partitions import audited
from adapt.traces.counting.population import population_of
from adapt.traces.counting.routed_sums import channel_loads, routed_sums
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions
from tests.traces.counting.skewed_trace import skewed_trace
from tests.traces.small_traces import write_trace

RECIPE = Recipe(base=Engine.KAFKA)
BYTES = Resources.parse("LLL", measure=["state=bytes"])


def lossily(exact: Frequencies, listed: int = 20) -> Frequencies:
    """What a lossy counter could have listed, some of each count missed."""
    low = np.floor(exact.count_low[:listed] * 0.9).astype(exact.count_low.dtype)
    above = float(exact.count_low[listed])
    measured = tuple(replace(each, values=each.values[:listed]) for each in exact.measured)
    return replace(
        exact, keys=exact.keys[:listed], count_low=low, count_high=low, epsilon=0.05, complete_above=above,
        measured=measured,
    )  # fmt: skip


@pytest.fixture
def trace(tmp_path):
    return skewed_trace(tmp_path)


def as_of_all_rows(population, exact, wanted, resources):
    """Whether the numbers of plans over some hashers are those of exact counts."""
    pins = {key: at % 3 for at, key in enumerate(population.frequencies.keys.to_pylist()[:9])}
    for hashers in wanted:
        before, after = hashers[0], HybridPartitioner(pins, hashers[-1])
        found, truth = evaluate(after, population, resources, before), evaluate(after, exact, resources, before)
        for name in ("imbalance", "r_n", "r_s", "r_best_pinned", "state_moved", "m"):
            assert getattr(found, name) == pytest.approx(getattr(truth, name)), (name, hashers)


@pytest.mark.parametrize("weight", list(Weight))
@pytest.mark.parametrize("kind", COLUMN_TYPES)
def test_loads_are_those_of_all_rows(tmp_path, kind, weight):
    trace = skewed_trace(tmp_path, kind)
    exact = with_columns(trace, count_exactly(trace, weight=weight), ["bytes"])
    lossy = lossily(exact)
    wanted = [hashers for base in (Engine.SPARK, Scheme.UNIFORM, Scheme.CONSISTENT)
              for hashers in hashers_of(replace(RECIPE, base=base), lossy, [4, 3, 7])]  # fmt: skip
    population = population_of(trace, lossy, wanted)
    assert not population.is_estimate(Resources())
    listed = population.frequencies
    assert listed.count_low == pytest.approx(exact.count_low[exact.rows_of(listed.keys)])
    for resources in (Resources(), BYTES):
        as_of_all_rows(population, exact, wanted, resources)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("weight", list(Weight))
def test_spark_gives_the_same_sums(tmp_path, weight):
    found = []
    for place, options in (("process", None), ("spark", SparkOptions(conf={"spark.sql.shuffle.partitions": "3"}))):
        (tmp_path / place).mkdir()
        trace = skewed_trace(tmp_path / place)
        lossy = lossily(count_exactly(trace, weight=weight))
        population = population_of(trace, lossy, hashers_of(RECIPE, lossy, [3, 4]), spark_options=options)
        found.append([(each.at.tolist(), each.loads[""].tolist()) for each in population.sums.known])
    assert found[0] == found[1]


def test_exact_counts_of_the_heaviest_keys_alone_keep_the_load_of_all_others(trace):
    exact = count_exactly(trace)
    heaviest = count_exactly(trace, most=20)
    assert heaviest.exact
    assert heaviest.complete_above > 0
    wanted = hashers_of(RECIPE, exact, [4, 5])
    as_of_all_rows(population_of(trace, heaviest, wanted), exact, wanted, Resources())
    assert Population.from_counts(heaviest).unlisted > 0


def test_sums_are_kept_and_made_once(trace, monkeypatch):
    lossy, passes = lossily(count_exactly(trace, weight=Weight.COUNT)), []
    route = module.routed_sums
    monkeypatch.setattr(module, "routed_sums", lambda *given, **more: passes.append(given[1]) or route(*given, **more))
    wanted = hashers_of(RECIPE, lossy, [3, 4])
    first = population_of(trace, lossy, wanted)
    again = population_of(trace, lossy, wanted)
    assert len(passes) == 1
    assert evaluate(wanted[0][0], first, Resources()) == evaluate(wanted[0][0], again, Resources())
    evaluate(make_partitioner(Scheme.UNIFORM, 5), again, Resources())
    assert passes[1:] == [[(make_partitioner(Scheme.UNIFORM, 5),)]]
    for kept in trace.path.parent.glob(".adapt-counts/*.cells"):
        kept.write_text("PAR1")
    population_of(trace, lossy, wanted)
    assert len(passes) == 3


def test_pinned_keys_of_a_plan_are_counted_although_they_were_not_listed(trace):
    exact = count_exactly(trace, weight=Weight.COUNT)
    rare = exact.keys[-3:].to_pylist()
    today = Plan(Scheme.HYBRID, 3, exact.key_type, base=Engine.KAFKA, explicit=dict.fromkeys([*rare, "unseen"], 2))
    lossy = lossily(exact)
    population = population_of(trace, lossy, [(today.partitioner().base,)], [None, today])
    assert len(population.frequencies.keys) == len(lossy.keys) + 4
    found, truth = (evaluate(today.partitioner(), each, Resources()) for each in (population, exact))
    assert found.imbalance == truth.imbalance
    assert found.r_best_pinned == truth.r_best_pinned


@pytest.mark.parametrize("engine", [Engine.KAFKA, Engine.FLINK, Scheme.CONSISTENT])
@pytest.mark.parametrize("pinned", [{}, {"1": 2, "299": 0}])
def test_loads_of_windows_are_those_of_all_rows(trace, tmp_path, engine, pinned):
    counted = lossily(count_exactly(trace))
    today = Plan(Scheme.HYBRID, 3, KeyType.STRING, explicit=pinned, base=engine)
    found = population_of(trace, counted, [(make_partitioner(engine, 3),)], [today])
    loads = found.sums.by_window(today.partitioner())
    assert loads == pytest.approx(channel_loads(trace, today, tmp_path, counted.weight))


def test_hashers_are_told_apart_by_what_they_do(trace, monkeypatch):
    counted, passes = lossily(count_exactly(trace)), []

    def routed(*args, **options):
        passes.append(1)
        return routed_sums(*args, **options)

    monkeypatch.setattr(module, "routed_sums", routed)
    for _ in range(2):
        for engine in (Engine.LIBRDKAFKA, Engine.SARAMA, Engine.SPARK, Engine.KAFKA):
            population_of(trace, counted, [(make_partitioner(engine, 3),)])
    assert len(passes) == 4


ROWS = 6_000


def topic(folder, keys, partition):
    trace = write_trace(folder, {"ts": np.arange(len(keys)) * 1000, "key": keys, "partition": partition})
    return trace, count_trace(trace, Counting(epsilon=0.001))


@pytest.fixture
def split(tmp_path):
    """A topic that two clients write, with null keys and rows without a partition."""
    chance = np.random.default_rng(1)
    texts = pa.array([f"k{at}" for at in (2_000 ** chance.random(ROWS)).astype(int)])
    homes = [definition_of(engine).placement(8, None).channels_of(texts) for engine in (Engine.SARAMA, Engine.KAFKA)]
    partition = np.where(chance.random(ROWS) < 0.7, *homes)
    nulls, unknown = chance.random(ROWS) < 0.05, chance.random(ROWS) < 0.1
    keys = pa.array([None if is_null else key for key, is_null in zip(texts.to_pylist(), nulls, strict=True)])
    trace, counted = topic(tmp_path / "t.trace", keys, pa.array(partition.astype(np.int32), mask=unknown))
    return trace, counted, np.bincount(partition[~unknown], minlength=8)


@pytest.mark.usefixtures("spark")
def test_a_sample_of_keys_gives_the_same_answer_wherever_it_runs(split, monkeypatch):
    trace, counted, loads = split
    whole = audited(trace, counted, 8)
    assert [each.name for each in whole.producers] == ["Sarama's FNV-1a", "Java's murmur2"]
    assert whole.producers[0].share.share == pytest.approx(0.7, abs=0.02)
    assert whole.loads == pytest.approx(list(loads / loads.sum()))
    monkeypatch.setattr(partitions, "MOST_KEYS", 500)
    some = audited(trace, counted, 8)
    assert some.loads == whole.loads
    assert some.split_keys == pytest.approx(whole.split_keys, rel=0.1)
    assert some.producers[0].share.low <= 0.7 <= some.producers[0].share.high
    assert audited(trace, counted, 8, spark_options=SparkOptions(runner=RunnerName.SPARK)) == some


def test_hashed_keys_and_unknown_partitions_have_no_audit(tmp_path):
    trace, counted = topic(tmp_path / "t.trace", ["a", "b"], pa.array([None, None], pa.int32()))
    assert audited(trace, counted, 2) is None
    known, counted = topic(tmp_path / "k.trace", ["a", "b"], pa.array([0, 1], pa.int32()))
    assert audited(known, counted, 2) is not None
    made = replace(known.manifest.made, parameters={"cleaning": {"hash_keys": "SHA-256"}})
    assert audited(replace(known, manifest=replace(known.manifest, made=made)), counted, 2) is None


def test_numbers_that_are_no_partitions_are_refused(tmp_path):
    trace, counted = topic(tmp_path / "t.trace", ["a", "b"], pa.array([0, 2**31 - 1], pa.int32()))
    with pytest.raises(BadInput, match=r"t.trace: 2,147,483,647 is not a partition; ingest again"):
        audited(trace, counted, 2)
