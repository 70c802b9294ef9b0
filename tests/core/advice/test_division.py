"""How whole units divide over workers, against engines that deal them one by one, for every parallelism to 1000."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.advice.tables import Division, better_units, better_workers, even_units
from adapt.core.partitioning.schemes.key_groups import MOST_GROUPS, default_max_parallelism

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
