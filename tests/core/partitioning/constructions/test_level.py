"""The level construction: small cases by hand, what holds for every step, and its b against the best there is."""

from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import MeasuredColumn
from adapt.core.partitioning.constructions.level import level
from adapt.core.partitioning.constructions.redist import scan
from adapt.core.partitioning.measures.floors import r_best_pinned
from adapt.core.partitioning.measures.resources import ResourceFunction, Resources
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from tests.tiers import SOAK


def step(counts, home, residual, letters="LLL"):
    """A step whose keys are tracked, with these counts and homes, over channels with this untracked linear load."""
    keys = pa.array(range(len(counts)), pa.int64())
    channels = len(residual)
    counted = frequencies_of(KeyCounts(keys, np.array(counts, np.int64), int(sum(counts))))
    ring = ConsistentHash(channels, replicas=5)
    made = Problem.from_counts(ring, ring, counted, counted.keys, Resources.parse(letters))
    rows = np.array([residual if letter == "L" else [0] * channels for letter in letters], np.float64)
    return replace(made, home=np.array(home, np.int32), residual=lambda: rows)


def loads_of(problem, placed, function=ResourceFunction.LINEAR):
    """The whole load of each channel."""
    row = problem.resources.functions.index(function)
    tracked = np.bincount(placed, function.costs(problem.counts), problem.channels)
    return problem.residual()[row] + tracked


def utilised(problem, placed):
    """The whole load of each channel over its capacity."""
    return loads_of(problem, placed) / problem.capacities


@st.composite
def constrained(draw, steps):
    """A step in which channels may differ in capacity and keys may be pinned."""
    problem = draw(steps)
    keys, n = len(problem.counts), problem.channels
    capacities = np.array(draw(st.lists(st.integers(1, 9), min_size=n, max_size=n)))
    pins = draw(st.lists(st.integers(-3, n - 1), min_size=keys, max_size=keys))
    pinned = np.maximum(np.array(pins, np.int32), -1)
    return replace(problem, capacities=capacities / capacities.mean(), pinned=pinned)


@st.composite
def steps(draw, letters=st.text("CLQ", min_size=3, max_size=3)):
    """A step of any kind, growing or shrinking, with keys tracked and not, and many equal counts."""
    counts = draw(st.lists(st.integers(1, draw(st.sampled_from([2, 9, 999]))), max_size=40))
    before, after = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    explicit = draw(st.dictionaries(st.integers(0, 45), st.integers(0, before - 1)))
    keys = pa.array(range(len(counts)), pa.int64())
    counted = frequencies_of(KeyCounts(keys, np.array(counts, np.int64), sum(counts)))
    current = HybridPartitioner(explicit, ConsistentHash(before, 5))
    tracked = counted.keys[: draw(st.integers(0, len(counts)))]
    resources = Resources.parse(draw(letters), [draw(st.sampled_from([1.0, 1.2, 3.0])) for _ in range(3)])
    return Problem.from_counts(current, ConsistentHash(after, 5), counted, tracked, resources)


LINEAR = st.sampled_from(["LLL", "LCL", "CCL"])


def test_full_channels_give_down_to_the_level_and_a_new_one_is_filled():
    # 30 in all, so 10 each: channels 0 and 1 have 15, of which 0 gives its 5, and 1 its 4 and its 1.
    problem = step([5, 5, 4, 4, 1, 1], home=[0, 0, 1, 1, 1, 1], residual=[5, 5, 0])
    assert level(problem).tolist() == [2, 0, 2, 1, 2, 1]


def test_untracked_load_counts():
    # The keys alone are even as they lie; with the untracked load it is 14 and 8.
    problem = step([4, 4, 4, 4], home=[0, 0, 1, 1], residual=[6, 0])
    assert loads_of(problem, level(problem)).tolist() == [10, 12]


def test_the_channel_of_a_key_that_sticks_out_gives_all_others_and_the_key_stays():
    # Channel 0 keeps 20; the other 16 make 8 each, not the average of 12.
    problem = step([20, 2, 2, 4, 4, 2, 2], home=[0, 0, 0, 1, 1, 1, 1], residual=[0, 0, 0])
    placed = level(problem)
    assert placed[0] == 0
    assert loads_of(problem, placed).tolist() == [20, 8, 8]


def test_what_is_level_stays_though_it_could_be_packed_otherwise():
    problem = step([3, 3, 2, 2, 2], home=[0, 0, 1, 1, 1], residual=[1, 1])
    assert level(problem).tolist() == [0, 0, 1, 1, 1]


def test_half_a_percent_is_not_worth_a_migration():
    problem = step([1000, 999, 1, 1, 1], home=[0, 1, 0, 0, 0], residual=[0, 0])
    assert level(problem).tolist() == [0, 1, 0, 0, 0]


def test_heavy_keys_are_levelled_by_their_squares_and_light_ones_fill_up():
    # The squares want 6, 6 and 6 apart and never two of them together; the ones make up for the linear load.
    problem = step([6, 6, 6, *[1] * 12], home=[0] * 15, residual=[0, 0, 6], letters="LQL")
    placed = level(problem)
    assert sorted(placed[:3]) == [0, 1, 2]
    assert loads_of(problem, placed).tolist() == [12, 12, 12]


def test_keys_of_a_removed_channel_start_where_the_ring_sends_them():
    keys = pa.array(["a", "b"])
    counted = frequencies_of(KeyCounts(keys, np.array([5, 5]), 10))
    current = HybridPartitioner({"a": 3, "b": 3}, ConsistentHash(4, 5))
    assert sorted(level(Problem.from_counts(current, ConsistentHash(2, 5), counted, keys, Resources()))) == [0, 1]


@pytest.mark.parametrize("letters", ["LLL", "LQL", "CCC"])
@pytest.mark.parametrize("channels", [1, 3])
def test_no_key_and_one_key(letters, channels):
    assert level(step([], [], [1] * channels, letters)).tolist() == []
    assert level(step([5], [channels - 1], [1] * channels, letters)).tolist() == [channels - 1]


def test_constant_resources_move_nothing():
    problem = step([5, 4, 3], home=[0, 0, 0], residual=[9, 0, 0], letters="CCC")
    assert level(problem).tolist() == [0, 0, 0]


@settings(deadline=None)
@given(steps() | constrained(steps()))
def test_every_tracked_key_has_a_channel_in_range_and_nothing_given_is_changed(problem):
    home, counts = problem.home.copy(), problem.counts.copy()
    placed = level(problem)
    assert (placed.dtype, placed.shape) == (np.int32, problem.counts.shape)
    assert ((placed >= 0) & (placed < problem.channels)).all()
    assert ((problem.pinned < 0) | (placed == problem.pinned)).all()
    assert (problem.home == home).all()
    assert (problem.counts == counts).all()


@settings(deadline=None)
@given(steps() | constrained(steps()))
def test_levelling_again_moves_nothing(problem):
    placed = level(problem)
    assert level(problem).tolist() == placed.tolist()
    assert level(replace(problem, home=placed)).tolist() == placed.tolist()


@settings(deadline=None)
@given(steps(), st.integers(2, 1000))
def test_the_scale_of_counts_does_not_matter(problem, scale):
    residual = problem.residual() * [[function.costs(float(scale))] for function in problem.resources.functions]
    scaled = replace(
        problem,
        counts=problem.counts * scale,
        loads=np.array([function.costs(problem.counts * scale) for function in problem.functions]),
        residual=lambda: residual,
    )
    assert level(scaled).tolist() == level(problem).tolist()


@settings(deadline=None)
@given(steps(LINEAR))
def test_no_channel_is_fuller_than_with_scan_by_more_than_a_key(problem):
    heaviest = max(problem.counts, default=0)
    assert loads_of(problem, level(problem)).max() <= loads_of(problem, scan(problem)).max() + heaviest


@settings(deadline=None)
@given(steps(LINEAR) | constrained(steps(LINEAR)))
def test_the_ratio_is_never_below_its_floor(problem):
    floor = r_best_pinned(problem.counts, problem.residual()[2], problem.capacities)
    loads = utilised(problem, level(problem))
    assert loads.min() == 0 or (floor is not None and loads.max() / loads.min() >= floor * (1 - 1e-12))


@settings(deadline=None)
@given(steps(LINEAR) | constrained(steps(LINEAR)))
def test_levelling_never_makes_the_ratio_worse(problem):
    before, after = utilised(problem, problem.start), utilised(problem, level(problem))
    rounding, nothing = 1 + 1e-12, 0.002 * loads_of(problem, problem.start).mean()
    assert after.max() * before.min() <= before.max() * after.min() * rounding or before.min() < nothing


@settings(deadline=None)
@given(constrained(steps()), st.lists(st.integers(1, 30), max_size=8))
def test_a_pinned_key_is_as_good_as_untracked_load_on_its_channel(problem, counts):
    free = problem.pinned < 0
    rows = [function.costs(problem.counts[~free]) for function in problem.resources.functions]
    held = np.array([np.bincount(problem.pinned[~free], row, problem.channels) for row in rows])
    residual = problem.residual() + held
    left = {name: getattr(problem, name)[free] for name in ("counts", "home", "hashed", "state", "pinned")}
    without = replace(problem, **left, loads=problem.loads[:, free], residual=lambda: residual)
    assert level(without).tolist() == level(problem)[free].tolist()


def test_channels_fill_in_proportion_to_their_capacity():
    problem = step([6, 5, 4, 3, 3, 2, 1], home=[0] * 7, residual=[0, 0, 0])
    placed = level(replace(problem, capacities=np.array([1.5, 0.75, 0.75])))
    assert loads_of(problem, placed).tolist() == [12, 6, 6]


def test_the_key_that_sticks_out_of_a_small_channel_does_not_out_of_a_large_one():
    problem = step([12, 2, 2, 2, 2, 2, 2], home=[1, 1, 1, 0, 0, 2, 2], residual=[0, 0, 0])
    placed = level(replace(problem, capacities=np.array([1.5, 0.75, 0.75])))
    assert loads_of(problem, placed).tolist() == [12, 6, 6]


@st.composite
def measured_steps(draw):
    """A step of which some loads are measured, by a column or by two."""
    size = draw(st.integers(1, 30))
    columns = [draw(st.lists(st.integers(0, 99), min_size=size, max_size=size)) for _ in range(3)]
    sources = draw(st.lists(st.sampled_from([None, "bytes", "cost"]), min_size=3, max_size=3))
    channels = draw(st.integers(1, 6))
    home = draw(st.lists(st.integers(0, channels), min_size=size, max_size=size))
    residual = draw(st.lists(st.integers(0, 200), min_size=3 * channels, max_size=3 * channels))
    letters = draw(st.text("CLQ", min_size=3, max_size=3))
    return measured_step(*columns, home, np.reshape(residual, (3, channels)), letters, sources)


def measured_step(counts, bytes_, costs, home, residual, letters, sources):
    """A step whose keys are tracked, with these columns and homes, over channels with this load of others."""
    keys, channels = pa.array(range(len(counts)), pa.int64()), residual.shape[1]
    counted = frequencies_of(KeyCounts(keys, np.array(counts, np.int64), int(sum(counts))))
    order = counted.keys.to_numpy()
    columns = [
        MeasuredColumn(name, np.array(of, float)[order], float(sum(of) + residual.sum()))
        for name, of in (("bytes", bytes_), ("cost", costs))
    ]
    counted = replace(counted, measured=tuple(columns))
    resources = replace(Resources.parse(letters), measured=tuple(sources))
    ring = ConsistentHash(channels, replicas=5)
    made = Problem.from_counts(ring, ring, counted, counted.keys, resources)
    constant = np.array([load is ResourceFunction.CONSTANT for load in resources.loads])
    rows = np.where(constant[:, None], 0.0, residual)
    return replace(made, home=np.array(home, np.int32)[made.keys.to_numpy()], residual=lambda: rows)


def b_of(problem, placed):
    """b to the power of three, but for tolerances and constant resources; an empty channel counts as level has it."""
    product_of = 1.0
    for load, of_keys in zip(problem.functions, problem.loads, strict=True):
        on = problem.residual()[problem.resources.loads.index(load)] + np.bincount(placed, of_keys, problem.channels)
        product_of *= on.max() / max(on.min(), 0.001 * on.mean()) if on.max() > 0 else 1.0
    return product_of


@settings(deadline=None)
@given(measured_steps())
def test_levelling_measured_loads_never_makes_b_worse_and_not_again_better(problem):
    placed = level(problem)
    assert ((placed >= 0) & (placed < problem.channels)).all()
    assert b_of(problem, placed) <= b_of(problem, problem.start) * (1 + 1e-9)
    assert level(replace(problem, home=placed)).tolist() == placed.tolist()


def test_bytes_and_counts_that_lie_with_different_keys_are_both_levelled():
    """Of 12 keys 4 carry the bytes and 8 the counts: either alone leaves the other as it falls."""
    counts, bytes_ = [1] * 4 + [100] * 8, [100] * 4 + [1] * 8
    problem = measured_step(counts, bytes_, [0] * 12, [0] * 12, np.zeros((3, 4), int), "LCC", [None, None, "bytes"])
    placed = level(problem)
    for of_keys in problem.loads:
        on = np.bincount(placed, of_keys, 4)
        assert on.max() == on.min()


def test_small_steps_of_two_loads_are_nearly_as_level_as_can_be():
    """Against every placement of 6 keys on 3 channels: the mean of b over the least b, of random steps."""
    random = np.random.default_rng(0)
    every = np.array(list(product(range(3), repeat=6)))
    ratios = []
    for _ in range(200 if SOAK else 20):
        counts, bytes_ = random.integers(1, 100, (2, 6))
        residual = random.integers(20, 60, (3, 3))
        problem = measured_step(
            counts, bytes_, [0] * 6, random.integers(0, 3, 6), residual, "LCC", [None, None, "bytes"]
        )
        best = min(b_of(problem, placed) for placed in every)
        ratios.append((b_of(problem, level(problem)) / best) ** 0.5)
    assert min(ratios) >= 1 - 1e-12
    print(f"\nb over the least b, two loads: mean {np.mean(ratios):.3f}, worst {max(ratios):.3f}")
    assert np.mean(ratios) < 1.15


@pytest.mark.parametrize("capacities", [[1, 1, 1], [1, 1, 2], [1, 2, 4]])
def test_small_steps_are_nearly_as_level_as_can_be(capacities):
    """Against every placement of 6 keys on 3 channels: the mean of r over the least r, of 200 random steps."""
    random, each = np.random.default_rng(0), np.array(capacities) / np.mean(capacities)
    every = np.array(list(product(range(3), repeat=6)))
    ratios = []
    for _ in range(200 if SOAK else 50):
        counts = np.sort(random.integers(1, 100, 6))[::-1]
        residual = random.integers(20, 60, 3)
        problem = replace(step(counts, random.integers(0, 3, 6), residual), capacities=each)
        loads = (residual + (every[:, :, None] == np.arange(3)).transpose(0, 2, 1) @ problem.counts) / each
        reached = utilised(problem, level(problem))
        ratios.append(reached.max() / reached.min() / (loads.max(axis=1) / loads.min(axis=1)).min())
    assert min(ratios) >= 1 - 1e-12
    assert np.mean(ratios) < 1.25
