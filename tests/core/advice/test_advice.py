"""Advice on key groups, partitions, workers and salts."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.advice.initial_workers import initial_workers_table
from adapt.core.advice.tables import Division, better_units, better_workers, even_units, salts_needed
from adapt.core.engines.flink.scheme import FlinkPartitioner
from adapt.core.engines.kafka.scheme import KafkaPartitioner
from adapt.core.engines.spark.scheme import SparkPartitioner
from adapt.core.errors import UsageError
from adapt.core.partitioning.schemes.key_groups import MOST_GROUPS, default_max_parallelism
from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor, Thresholds

TO_1000 = range(1, 1001)


def flink(groups: int, parallelism: int) -> np.ndarray:
    """Key groups of each subtask, every group assigned by Flink's formula."""
    return np.bincount(np.arange(groups) * parallelism // groups, minlength=parallelism)


def kafka_range(partitions: int, consumers: int) -> np.ndarray:
    """As the range assignor deals: the first `partitions % consumers` consumers get one more."""
    each, extra = divmod(partitions, consumers)
    return np.array([each + (consumer < extra) for consumer in range(consumers)])


def kafka_round_robin(partitions: int, consumers: int) -> np.ndarray:
    return np.bincount(np.arange(partitions) % consumers, minlength=consumers)


def agrees(division: Division, dealt: np.ndarray) -> None:
    assert (division.busiest, division.fewest, division.idle) == (dealt.max(), dealt.min(), (dealt == 0).sum())
    assert division.excess == pytest.approx(dealt.max() / dealt.mean() - 1, abs=1e-12)


@pytest.mark.parametrize(
    "parallelism_to_groups", [default_max_parallelism, lambda p: max(p, 720), lambda _: MOST_GROUPS]
)
def test_every_parallelism_to_1000_loses_what_flinks_own_assignment_loses(parallelism_to_groups):
    for parallelism in TO_1000:
        groups = parallelism_to_groups(parallelism)
        agrees(Division(groups, parallelism), flink(groups, parallelism))


@pytest.mark.parametrize("partitions", [1, 12, 60, 128, 1000])
@pytest.mark.parametrize("assign", [kafka_range, kafka_round_robin])
def test_every_number_of_consumers_to_1000_gets_what_kafkas_assignors_deal(partitions, assign):
    for consumers in TO_1000:
        agrees(Division(partitions, consumers), assign(partitions, consumers))


def test_defaults_lose_what_was_measured_with_flinks_classes():
    losses = np.array([Division(default_max_parallelism(p), p).excess for p in TO_1000])
    assert losses.mean() == pytest.approx(0.21, abs=0.005)
    assert losses.max() <= 0.5
    assert (losses > 0.25).mean() == pytest.approx(0.387, abs=0.0005)
    assert Division(default_max_parallelism(120), 120).excess == pytest.approx(0.406, abs=0.001)
    assert Division(default_max_parallelism(170), 170).excess == pytest.approx(0.328, abs=0.001)
    assert max(Division(MOST_GROUPS, p).excess - p / MOST_GROUPS for p in TO_1000) <= 0


def halving(loss: float, of: float) -> bool:
    return of > 0 and loss <= of / 2 + 1e-12


def test_the_nearest_better_numbers_are_those_of_a_search_over_all():
    for parallelism in range(1, 400, 3):
        groups = default_max_parallelism(parallelism)
        asked = Division(groups, parallelism)
        lost = [dealt.max() / dealt.mean() - 1 for dealt in (flink(groups, p) for p in range(1, groups + 1))]
        fewer = [p for p in range(parallelism - 1, 0, -1) if halving(lost[p - 1], asked.excess)]
        more = [p for p in range(parallelism + 1, groups + 1) if halving(lost[p - 1], asked.excess)]
        found = better_workers(asked)
        assert [each and each.workers for each in found] == [next(iter(fewer), None), next(iter(more), None)]
        by_groups = ((flink(g, parallelism), g) for g in range(groups + 1, groups + parallelism + 1))
        better = [g for dealt, g in by_groups if halving(dealt.max() / dealt.mean() - 1, asked.excess)]
        units = better_units(asked, MOST_GROUPS)
        assert (units and units.units) == next(iter(better), None)


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_the_even_number_is_the_least_that_loses_nothing(units, workers):
    even = even_units(Division(units, workers), 10**9)
    assert even is not None
    assert even.excess == 0
    assert units <= even.units < units + workers
    assert even_units(Division(units, workers), even.units - 1) is None


def table_of(rate, capacity, window_s, imbalance=1.0, thresholds=None):
    taus = thresholds or Thresholds()
    return initial_workers_table(rate, Overload(ShedFactor(taus.tau2), capacity, window_s), taus, imbalance).records()


def test_the_example_of_the_help():
    (given_row,) = [row for row in table_of(1000, 10_000, 60) if row["given"]]
    assert (given_row["tau1"], given_row["workers"], given_row["rise"]) == (0.4, 15, 2.0)


@given(st.floats(1, 1e5), st.integers(1, 10**5), st.floats(0.01, 1e3), st.floats(1, 4))
def test_the_busiest_is_at_tau1_and_sheds_from_tau2(rate, capacity, window_s, imbalance):
    for row in table_of(rate, capacity, window_s, imbalance):
        of_one = imbalance * window_s / (capacity * row["workers"])
        assert row["busiest"] == pytest.approx(rate * of_one)
        assert row["busiest"] <= row["tau1"] * (1 + 1e-9)
        assert row["shedding_from"] * of_one == pytest.approx(0.8)
        assert row["workers"] == 1 or rate * of_one * row["workers"] / (row["workers"] - 1) > row["tau1"] * (1 - 1e-9)


def test_a_tau1_of_its_own_is_a_row_and_none_is_above_tau2():
    rows = table_of(10, 10, 1, thresholds=Thresholds(0.1, 0.35, 0.5, 0.9))
    assert [row["tau1"] for row in rows] == [0.1, 0.2, 0.3, 0.35, 0.4]


def test_an_imbalance_below_1_is_refused():
    with pytest.raises(UsageError, match="--imbalance is the busiest worker's load over the mean"):
        table_of(10, 10, 1, imbalance=0.5)


@settings(max_examples=40)
@given(
    st.sampled_from([SparkPartitioner, KafkaPartitioner, FlinkPartitioner]),
    st.text(max_size=5).filter(lambda text: text.isprintable()),
    st.integers(0, 1000),
    st.integers(1, 12),
    st.fractions(1, 3, max_denominator=20),
)
def test_salts_are_the_least_that_do(engine, key, load, channels, tolerance):
    partitioner = engine(channels)
    found = salts_needed(key, load, 1000, partitioner, tolerance)
    most = tolerance / channels * 1000

    def fullest(salts: int, at: list[int]) -> Fraction:
        return Fraction(load, salts) * max(Counter(at).values())

    placed = next(s for s in range(1, 99) if fullest(s, [salt % channels for salt in range(s)]) <= most)
    assert found.placed == placed
    if found.hashed is None:
        return
    at = [partitioner.channel_of(f"{key}#{salt}") for salt in range(found.hashed)]
    if found.hashed > 1:
        assert fullest(found.hashed, at) <= most
        assert all(fullest(salts, at[:salts]) > most for salts in range(2, found.hashed))
        assert found.partials == len(set(at))
    else:
        assert load <= most


def test_a_key_of_half_the_load_over_ten_channels():
    found = salts_needed("amazon", 50, 100, KafkaPartitioner(10), Fraction(5, 4))
    assert found.placed == 4  # 12.5 % each, which is 1.25 times the mean of 10 %
    assert found.hashed >= 4


def test_a_limit_that_no_hash_keeps_is_said_to_be_none():
    whole = salts_needed("all", 1, 1, SparkPartitioner(1000), Fraction(1))
    assert (whole.placed, whole.hashed, whole.partials) == (1000, None, None)
