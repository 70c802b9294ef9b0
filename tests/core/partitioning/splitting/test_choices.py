import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.uniform import UniformPartitioner
from adapt.core.partitioning.splitting.split import choices_of, hashed_choice

KEYS = pa.array([f"key-{number}" for number in range(50_000)])


@given(
    st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=20), st.integers(1, 12), st.sampled_from(HashName)
)
def test_a_key_has_its_distinct_choices_in_order_or_every_channel(wanted, channels, hash):
    keys = KEYS[: len(wanted)]
    of_each = np.array([number for number, _ in wanted], np.int64)
    everywhere = np.array([all for _, all in wanted], np.bool_)
    found = choices_of(keys, of_each, everywhere, channels, hash)
    hashed = [hashed_choice(keys, choice, channels, hash).tolist() for choice in range(9)]
    for row, (number, all) in enumerate(wanted):
        mine = found.channels[found.offsets[row] : found.offsets[row + 1]].tolist()
        assert mine == (list(range(channels)) if all else list(dict.fromkeys(hashed[at][row] for at in range(number))))
        assert (found.keys[found.offsets[row] : found.offsets[row + 1]] == row).all()


@pytest.mark.parametrize("hash", HashName)
def test_the_first_choice_is_the_uniform_scheme(hash):
    assert (hashed_choice(KEYS, 0, 10, hash) == UniformPartitioner(10, hash).channels_of(KEYS)).all()


@pytest.mark.parametrize("hash", HashName)
def test_choices_are_even_and_know_nothing_of_each_other(hash):
    """Every pair of two choices is as frequent as any other: within five deviations of a binomial count."""
    choices = [hashed_choice(KEYS, choice, 8, hash) for choice in range(4)]
    for first in range(4):
        for second in range(first):
            pairs = np.bincount(choices[first].astype(int) * 8 + choices[second], minlength=64)
            assert abs(pairs - len(KEYS) / 64).max() < 5 * np.sqrt(len(KEYS) / 64)
