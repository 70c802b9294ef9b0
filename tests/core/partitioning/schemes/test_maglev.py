import mmh3
import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.jump import TABLE, Maglev, _fill, _table

KEYS = [f"key-{number}" for number in range(2000)]


def filled(offsets, skips, size):
    table = np.full(size, -1, np.int32)
    _fill(np.array(offsets), np.array(skips), table)
    return table.tolist()


def test_the_example_of_the_paper_is_filled_alike():
    """Table 1: permutations 3 0 4 1 5 2 6, 0 2 4 6 1 3 5 and 3 4 5 6 0 1 2; then without the second."""
    assert filled([3, 0, 3], [4, 2, 1], 7) == [1, 0, 1, 0, 2, 2, 0]
    assert filled([3, 3], [4, 1], 7) == [0, 0, 0, 0, 1, 1, 1]


def number_of(text):
    h1, h2 = mmh3.hash64(text.encode(), 0, signed=False)
    return h1 * 2**64 + h2


def plain_table(channels):
    """Pseudocode 1 of the paper, with the offsets and skips of our words."""
    orders = [
        [(number_of(f"{c}#0") + at * (number_of(f"{c}#1") % (TABLE - 1) + 1)) % TABLE for at in range(TABLE)]
        for c in range(channels)
    ]
    following, entry, count = [0] * channels, [-1] * TABLE, 0
    while True:
        for c in range(channels):
            while entry[orders[c][following[c]]] >= 0:
                following[c] += 1
            entry[orders[c][following[c]]] = c
            count += 1
            if count == TABLE:
                return entry


@pytest.mark.parametrize("channels", [1, 2, 7])
def test_a_key_is_looked_up_in_the_table_of_the_pseudocode(channels):
    table = plain_table(channels)
    assert Maglev(channels).channels_of(pa.array(KEYS)).tolist() == [table[number_of(key) % TABLE] for key in KEYS]


@pytest.mark.parametrize("hash", HashName)
@pytest.mark.parametrize("channels", [3, 64, 655, TABLE])
def test_the_table_is_even_to_one_entry(channels, hash):
    entries = np.bincount(_table(channels, hash), minlength=channels)
    assert entries.max() - entries.min() <= 1


@pytest.mark.parametrize("hash", HashName)
def test_a_new_channel_disturbs_few_others(hash):
    """The new channel must take its share of the entries; that some others change hands too is the scheme's price."""
    for channels in (10, 50):
        before, after = _table(channels, hash), _table(channels + 1, hash)
        between_old = ((before != after) & (after != channels)).mean()
        assert (after == channels).mean() == pytest.approx(1 / (channels + 1), abs=2 / TABLE)
        assert between_old < 0.05


def test_more_channels_than_entries_are_refused():
    with pytest.raises(UsageError, match=r"from 1 to 65,537 workers \(got 65538\)"):
        Maglev(TABLE + 1)
