"""Draws that depend on seed, arc and number alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.random_bits import GOLDEN, mix, substream, uniforms
from tests.core.random_drop import random_drop

ALL = 2**64 - 1
PUBLISHED = {
    1234567: [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ],
    0: [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F],
}
"""The first outputs of SplitMix64 by seed, as they are published with it."""


def literal_mixed(word):
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & ALL
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & ALL
    return word ^ (word >> 31)


def literal_outputs(seed, count):
    return [literal_mixed((seed + step * 0x9E3779B97F4A7C15) & ALL) for step in range(1, count + 1)]


@pytest.mark.parametrize("seed", PUBLISHED)
def test_outputs_are_those_published_with_splitmix64(seed: int) -> None:
    expected = PUBLISHED[seed]
    states = np.uint64(seed) + np.arange(1, len(expected) + 1, dtype=np.uint64) * GOLDEN
    assert mix(states).tolist() == literal_outputs(seed, len(expected)) == expected
    assert uniforms(np.uint64(seed), np.arange(len(expected))).tolist() == [bits // 2**11 / 2**53 for bits in expected]


def test_a_draw_is_the_output_of_splitmix64() -> None:
    state, stream = int(substream(7, 3)), substream(7, 3)
    drawn = uniforms(stream, np.arange(5))
    for number in range(5):
        state = (state + 0x9E3779B97F4A7C15) & ALL
        assert drawn[number] == (literal_mixed(state) >> 11) / 2**53


@given(st.integers(0, 2**63 - 1), st.integers(0, 99), st.lists(st.integers(0, 2**40), min_size=1, max_size=50))
def test_draws_do_not_depend_on_batches_or_order(seed: int, arc: int, numbers: list[int]) -> None:
    together = uniforms(substream(seed, arc), np.array(numbers))
    alone = [uniforms(substream(seed, arc), np.array([number]))[0] for number in reversed(numbers)]
    assert together.tolist() == alone[::-1]
    assert ((together >= 0) & (together < 1)).all()


@pytest.mark.parametrize("keep", [0.01, 0.3, 0.5, 0.97])
def test_the_kept_share_lies_within_4_sigma_for_many_seeds_and_arcs(keep: float) -> None:
    tuples = 20_000
    shares = [random_drop(seed, arc, np.arange(tuples), keep).mean() for seed in range(10) for arc in range(5)]
    sigma = np.sqrt(keep * (1 - keep) / tuples)
    assert np.abs(np.array(shares) - keep).max() < 4 * sigma
    assert np.std(shares) == pytest.approx(sigma, rel=0.4)
