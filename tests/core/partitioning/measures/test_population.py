"""Listed keys and the stand-ins for the others: they add up to the stream."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.partitioning.measures import population as module
from adapt.core.partitioning.measures.population import Population
from adapt.core.partitioning.measures.resources import ResourceFunction
from adapt.core.stream import Weight

CONSTANT, LINEAR, QUADRATIC = ResourceFunction
COSTS = st.floats(0, 1e6)


def lossy(
    counts: list[int] | list[float],
    total: float,
    distinct: int,
    complete_above: float,
    keys: pa.Array | None = None,
    weight: Weight = Weight.COUNT,
) -> Frequencies:
    """What a lossy counter could report; `counts` must fall."""
    low = np.array(counts, dtype=np.float64 if weight is Weight.COST else np.int64)
    listed = pa.array(range(len(counts)), pa.int64()) if keys is None else keys
    return Frequencies(
        listed, low, low, total, rows=100, weight=weight, epsilon=0.1, complete_above=complete_above, distinct=distinct
    )


@st.composite
def lossy_frequencies(draw) -> Frequencies:
    """Lists and remainders that need not fit each other, as estimates do not."""
    weight = draw(st.sampled_from([Weight.COUNT, Weight.BYTES, Weight.COST]))
    counts = sorted(draw(st.lists(COSTS if weight is Weight.COST else st.integers(0, 10**6), max_size=8)), reverse=True)
    rest = draw(st.floats(0, 1e5) if weight is Weight.COST else st.integers(0, 10**5))
    complete_above = draw(st.integers(1, 10**5))
    return lossy(counts, float(sum(counts) + rest), draw(st.integers(0, 3000)), complete_above, weight=weight)


@given(st.lists(st.integers(0, 1000), max_size=20), st.sampled_from(ResourceFunction))
def test_exact_counts_are_their_own_population_to_the_last_bit(counts, function):
    keys = pa.array([f"key{at}" for at in range(len(counts))], pa.string())
    exact = frequencies_of(KeyCounts(keys, np.array(counts, dtype=np.int64), sum(counts)))
    population = Population.from_counts(exact)
    assert population.keys is exact.keys
    assert (population.unlisted, population.represented) == (0, None)
    assert population.loads(function).tobytes() == function.costs(exact.count_low).tobytes()
    assert population.heaviest(function).tobytes() == function.costs(exact.count_low).tobytes()


@given(lossy_frequencies())
def test_listed_keys_and_stand_ins_add_up_to_the_stream(frequencies):
    population = Population.from_counts(frequencies)
    loads = population.loads(LINEAR)
    assert loads.min(initial=0) >= 0
    assert loads.sum() == pytest.approx(frequencies.total, rel=2e-9, abs=1e-6)
    assert loads[: population.listed].tolist() == frequencies.count_low.tolist()
    assert len(loads) == len(population.keys)
    assert population.loads(CONSTANT).sum() == population.listed + population.unlisted


@given(lossy_frequencies())
def test_no_stand_in_is_heavier_than_an_unlisted_key_can_be(frequencies):
    assert Population.from_counts(frequencies).unlisted_weight <= frequencies.complete_above * (1 + 1e-12)


@given(lossy_frequencies(), st.sampled_from(ResourceFunction))
def test_the_heaviest_are_listed_so_that_no_floor_rests_on_an_estimate(frequencies, function):
    population = Population.from_counts(frequencies)
    known = sorted(population.loads(function)[: population.listed], reverse=True)
    nothing = [0.0] if population.unlisted else []
    assert population.heaviest(function).tolist() == (known if population.listed else nothing)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.int64(), pa.binary(), pa.large_binary()], ids=str)
def test_all_keys_are_distinct_of_one_type_and_the_same_each_time(kind):
    listed = pa.array([None, *range(1, 500)], pa.int64()).cast(pa.string()).cast(kind)
    frequencies = lossy([3] * 500, 10_000, 5000, 10, listed)
    keys = Population.from_counts(frequencies).keys
    assert (keys.type, len(keys)) == (kind, 5000)
    assert keys[:500] == listed
    assert pc.count_distinct(keys, mode="all").as_py() == 5000
    assert Population.from_counts(frequencies).keys == keys


def test_as_many_equal_keys_share_what_is_left():
    population = Population.from_counts(lossy([40], 100, 7, 10))
    assert population.loads(CONSTANT).tolist() == [1] * 7
    assert population.loads(LINEAR).tolist() == [40, *[10] * 6]
    assert population.loads(QUADRATIC).tolist() == [1600, *[100] * 6]
    assert population.represented is None


def test_weight_that_no_key_is_left_for_goes_to_the_fewest_that_can_carry_it():
    assert Population.from_counts(lossy([60], 100, 1, 15)).loads(LINEAR).tolist() == [60, *[40 / 3] * 3]
    assert Population.from_counts(lossy([60], 100, 1, 0)).loads(LINEAR).tolist() == [60, 40]


def test_counted_rows_are_not_shared_by_more_keys_than_there_are_rows():
    assert Population.from_counts(lossy([95], 100, 1000, 2)).loads(LINEAR).tolist() == [95, 1, 1, 1, 1, 1]
    assert Population.from_counts(lossy([100], 100, 1000, 2)).unlisted == 0


def test_costs_that_add_up_but_for_the_last_digit_leave_nothing():
    # The estimate errs: a key that weighs anything is listed, so that there is no other.
    costs = [0.3, 0.2, 0.1]
    assert Population.from_counts(lossy(costs, 0.6 + 1e-12, 5, 0, weight=Weight.COST)).unlisted == 0
    assert sum(Population.from_counts(lossy(costs, 0.6 + 1e-12, 5, 0.01, weight=Weight.COST)).loads(LINEAR)[3:]) == 0


def test_a_stream_of_light_keys_alone_has_a_population():
    population = Population.from_counts(lossy([], 100, 50, 10))
    assert (population.listed, len(population.keys)) == (0, 50)
    assert population.heaviest(LINEAR).tolist() == [0]


def test_of_too_many_keys_each_stand_in_is_several(monkeypatch):
    monkeypatch.setattr(module, "MOST_STAND_INS", 4)
    population = Population.from_counts(lossy([40], 100, 11, 30))
    assert population.represented.tolist() == [1, *[2.5] * 4]
    assert population.loads(CONSTANT).tolist() == [1, *[2.5] * 4]
    assert population.loads(LINEAR).tolist() == [40, *[15] * 4]
    assert population.loads(QUADRATIC).tolist() == [1600, *[2.5 * 36] * 4]
    assert population.heaviest(LINEAR).tolist() == [40]


def test_a_population_is_its_own():
    population = Population.from_counts(lossy([40], 100, 7, 10))
    assert Population.from_counts(population) is population
