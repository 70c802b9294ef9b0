"""The integer program against every placement of small instances, and its bounds."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.partitioning.frontier.integer_program import Alike, Program
from tests.tiers import SOAK

ROUNDING = 1 + 1e-9


def random_program(seed):
    """Up to 8 keys on up to 4 channels: few and many equal loads, residuals, lost homes, limits, capacities."""
    random = np.random.default_rng(seed)
    channels, keys = int(random.integers(1, 5)), int(random.integers(1, 9))
    loads = random.integers(1, random.choice([3, 20, 1000]) + 1, keys).astype(float)
    residual = [
        np.zeros(channels),
        np.full(channels, float(random.integers(1, 9))),
        random.integers(0, random.choice([3, 20, 900]), channels).astype(float),
        random.random(channels) * 50,
    ][seed % 4]
    state = loads if seed % 3 else random.integers(0, 9, keys).astype(float)
    home = random.integers(0, channels + int(random.integers(2)), keys).astype(np.int32)
    capacities = random.integers(1, 5, channels) if seed % 5 > 2 else np.ones(channels)
    most_moved = None if seed % 2 else float(state.sum() * random.choice([0, 0.2, 0.5]))
    most_pins = None if seed % 7 > 2 else int(random.integers(0, keys + 1))
    return Program(loads, residual, state, home, most_moved, capacities / capacities.mean(), most_pins)


def placements_of(program):
    """Every placement within the limits, word for word."""
    keys, channels = len(program.loads), program.channels
    every = np.array(list(product(range(channels), repeat=keys)), np.int32)
    leaves = (every != program.home) & (program.home < channels)
    within = np.full(len(every), True)
    if program.most_moved is not None:
        within &= leaves @ program.state <= program.most_moved + 1e-9
    if program.most_pins is not None:
        within &= leaves.sum(axis=1) <= program.most_pins
    return every[within]


def highest(program, placements):
    loads = np.stack([(placements == c) @ program.loads for c in range(program.channels)], axis=1)
    return ((loads + program.residual) / program.capacities).max(axis=1)


def test_it_is_the_least_of_all_placements_within_the_limits():
    for seed in range(60 if SOAK else 25):
        program = random_program(seed)
        placements = placements_of(program)
        least = highest(program, placements).min()
        found = program.minimise(placements[0], 1000)
        assert found.proved, f"seed {seed}"
        assert highest(program, found.placement[None])[0] == pytest.approx(least, rel=1e-9), f"seed {seed}"
        assert (placements == found.placement).all(axis=1).any(), f"seed {seed}"
        assert program.minimise(placements[0], 0).bound <= least * ROUNDING, f"seed {seed}"


def test_a_search_that_nodes_end_is_bounded_and_the_same_every_time():
    """Zipf loads on five channels: a key that sticks out, and far too many placements of the others to try."""
    random = np.random.default_rng(5)
    loads = np.rint(7000 / np.arange(1, 41))
    residual, home = 2000 * (1 + 0.04 * random.standard_normal(5)), np.zeros(40, np.int32)
    program = Program(loads, residual, loads, home, None, np.ones(5))
    first, again = (program.minimise(home, 1) for _ in range(2))
    assert (first.placement == again.placement).all()
    assert (first.bound, first.proved) == (again.bound, again.proved)
    assert first.bound <= highest(program, first.placement[None])[0] * ROUNDING


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=9), st.lists(st.integers(0, 2), min_size=1, max_size=5), st.data()
)
def test_renumbering_like_channels_keeps_their_loads_and_fits_what_they_may_hold(counts, residual, data):
    loads, rest = np.array(counts, float), np.array(residual, float)
    channels = st.integers(0, len(rest) - 1)
    placement = np.array(data.draw(st.lists(channels, min_size=len(loads), max_size=len(loads))), np.int32)
    alike = Alike.from_descriptions([loads], rest, np.array(data.draw(st.lists(channels, max_size=2)), np.int32))
    counted = alike.counted(placement)
    assert (counted <= alike.most).all()
    assert counted.sum(axis=1).tolist() == alike.sizes.tolist()
    renumbered = alike.placement(counted)
    assert (alike.counted(renumbered) == counted).all()

    def on_channels(placement):
        return sorted((rest + np.bincount(placement, loads, minlength=len(rest))).tolist())

    assert on_channels(renumbered) == on_channels(placement)
