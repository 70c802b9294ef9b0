"""Coins that depend on seed, arc and number alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.random_bits import coins, stream_of
from tests.core.random_drop import random_drop

ALL = 2**64 - 1


def literal_mixed(word):
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & ALL
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & ALL
    return word ^ (word >> 31)


def test_a_coin_is_the_output_of_splitmix64() -> None:
    state, stream = int(stream_of(7, 3)), stream_of(7, 3)
    drawn = coins(stream, np.arange(5))
    for number in range(5):
        state = (state + 0x9E3779B97F4A7C15) & ALL
        assert drawn[number] == (literal_mixed(state) >> 11) / 2**53


@given(st.integers(0, 2**63 - 1), st.integers(0, 99), st.lists(st.integers(0, 2**40), min_size=1, max_size=50))
def test_coins_do_not_depend_on_batches_or_order(seed: int, arc: int, numbers: list[int]) -> None:
    together = coins(stream_of(seed, arc), np.array(numbers))
    alone = [coins(stream_of(seed, arc), np.array([number]))[0] for number in reversed(numbers)]
    assert together.tolist() == alone[::-1]
    assert ((together >= 0) & (together < 1)).all()


@pytest.mark.parametrize("keep", [0.01, 0.3, 0.5, 0.97])
def test_the_kept_share_lies_within_4_sigma_for_many_seeds_and_arcs(keep: float) -> None:
    tuples = 20_000
    shares = [random_drop(seed, arc, np.arange(tuples), keep).mean() for seed in range(10) for arc in range(5)]
    sigma = np.sqrt(keep * (1 - keep) / tuples)
    assert np.abs(np.array(shares) - keep).max() < 4 * sigma
    assert np.std(shares) == pytest.approx(sigma, rel=0.4)


def test_what_is_kept_at_one_share_is_kept_at_every_larger_one() -> None:
    fewer, more = (random_drop(1, 2, np.arange(10_000), keep) for keep in (0.4, 0.6))
    assert not (fewer & ~more).any()
    assert not random_drop(1, 2, np.arange(10_000), 0.0).any()
    assert random_drop(1, 2, np.arange(10_000), 1.0).all()


def test_coins_of_two_arcs_or_seeds_have_nothing_to_do_with_each_other() -> None:
    numbers = np.arange(50_000)
    first, other_arc, other_seed = (coins(stream_of(*of), numbers) for of in ((1, 1), (1, 2), (2, 1)))
    assert abs(np.corrcoef(first, other_arc)[0, 1]) < 4 / np.sqrt(len(numbers))
    assert abs(np.corrcoef(first, other_seed)[0, 1]) < 4 / np.sqrt(len(numbers))
