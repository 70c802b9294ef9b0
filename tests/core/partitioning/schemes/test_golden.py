"""Golden vectors: where a reader of the plan format in any language must send these keys.

The expected channels are worked out here from the words of docs/plan-format.md alone, with a plain
MurmurHash3 and whole numbers; nothing is recorded from our own output.
"""

from bisect import bisect_left

import mmh3
import pytest

from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.uniform import UniformPartitioner

KEYS = {
    "empty": ("", b""),
    "null": (None, b""),
    "word": ("Spark", b"Spark"),
    "accented": ("Müller", b"M\xc3\xbcller"),
    "emoji": ("\N{GRINNING FACE}", b"\xf0\x9f\x98\x80"),
    "fifteen bytes": ("a" * 15, b"a" * 15),
    "sixteen bytes": ("a" * 16, b"a" * 16),
    "seventeen bytes": ("a" * 17, b"a" * 17),
    "zero": (0, bytes(8)),
    "minus one": (-1, b"\xff" * 8),
    "two to the 40": (2**40, b"\0\0\0\0\0\1\0\0"),
    "bytes": (b"\x00\xff", b"\x00\xff"),
}


def number_of(data):
    """The hash as the number h1 * 2^64 + h2."""
    h1, h2 = mmh3.hash64(data, seed=0, x64arch=True, signed=False)
    return h1 * 2**64 + h2


RING = sorted((number_of(f"{channel}#{replica}".encode()), channel) for channel in range(16) for replica in range(1000))


def ring_channel(data):
    return RING[bisect_left(RING, (number_of(data), -1)) % len(RING)][1]


@pytest.mark.parametrize("name", KEYS)
def test_uniform_is_the_remainder_of_the_whole_number(name):
    key, data = KEYS[name]
    assert [UniformPartitioner(n).channel_of(key) for n in (1, 7, 1000)] == [number_of(data) % n for n in (1, 7, 1000)]


@pytest.mark.parametrize("name", KEYS)
def test_consistent_is_the_first_replica_at_or_after(name):
    key, data = KEYS[name]
    assert ConsistentHash(16).channel_of(key) == ring_channel(data)
