"""Spark's hash, and the table of a ring that it looks up."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.engines.spark.export import ring_table
from adapt.core.engines.spark.hash import spark_hash
from adapt.core.engines.spark.scheme import SparkPartitioner
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.consistent import ConsistentHash

VECTORS = {
    "": (142593372, 12),
    "a": (1485273170, 2),
    "user": (-762444118, 10),
    "user000001": (1121325375, 15),
    "é": (2119106806, 6),
    "ключ": (-188579267, 13),
    "日本語": (-1143049834, 6),
    "\N{GRINNING FACE}": (1877935379, 3),
    "x" * 33: (156528433, 1),
    None: (42, 10),
}
"""Key: hash, partition of 16; from a Spark 4.3.0 session."""


def plain(data, seed=42):
    """MurmurHash3 x86 32, but each byte after the whole words is a signed number mixed as a word of its own."""

    def rotated(word, bits):
        return (word << bits | word >> (32 - bits)) % 2**32

    whole = len(data) // 4 * 4
    words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, whole, 4)]
    words += [(byte if byte < 128 else byte - 256) % 2**32 for byte in data[whole:]]
    state = seed
    for word in words:
        state ^= rotated(word * 0xCC9E2D51 % 2**32, 15) * 0x1B873593 % 2**32
        state = (rotated(state, 13) * 5 + 0xE6546B64) % 2**32
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B % 2**32
    state = (state ^ state >> 13) * 0xC2B2AE35 % 2**32
    state ^= state >> 16
    return state if state < 2**31 else state - 2**32


def many_texts():
    """5,000 texts of all lengths to 100: ASCII, and anywhere in Unicode."""
    chance = np.random.default_rng(7)
    ascii_texts = ["".join(map(chr, chance.integers(32, 127, length % 100))) for length in range(2500)]
    points = [
        np.setdiff1d(chance.integers(1, 0x110000, length % 50), np.arange(0xD800, 0xE000)) for length in range(2500)
    ]
    return ["", "\0", *ascii_texts, *("".join(map(chr, chosen)) for chosen in points)]


def many_bytes():
    return [*(text.encode() for text in many_texts()), b"\xff\x80"]


def many_integers():
    chance = np.random.default_rng(8)
    edges = [0, 1, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, -(2**63)]
    return [*edges, *chance.integers(-1000, 1000, 1000).tolist(), *chance.integers(-(2**63), 2**63 - 1, 2000).tolist()]


@pytest.mark.parametrize("key", VECTORS)
def test_a_key_hashes_as_in_spark(key):
    hash, partition = VECTORS[key]
    assert spark_hash(pa.array([key], pa.string())).tolist() == [hash]
    assert SparkPartitioner(16).channel_of(key) == partition


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_bytes_agree_with_the_plain_form(keys):
    assert spark_hash(pa.array(keys, pa.binary())).tolist() == [plain(key) for key in keys]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_integers_hash_as_eight_bytes(keys):
    expected = [plain(key.to_bytes(8, "little", signed=True)) for key in keys]
    assert spark_hash(pa.array(keys, pa.int64())).tolist() == expected


@pytest.mark.parametrize(
    ("drawn", "kind"),
    [
        pytest.param(many_texts, "string", id="texts"),
        pytest.param(many_integers, "bigint", id="integers"),
        pytest.param(many_bytes, "binary", id="bytes"),
    ],
)
def test_a_live_session_hashes_and_places_every_key_alike(spark, drawn, kind):
    from pyspark.sql import functions as F

    keys = [*drawn(), None]
    frame = spark.createDataFrame([(at, key) for at, key in enumerate(keys)], f"row bigint, key {kind}")
    told = frame.select("row", F.hash("key").alias("h"), *(
        F.pmod(F.hash("key"), F.lit(n)).alias(f"p{n}") for n in (7, 16, 200)
    )).orderBy("row").toArrow()  # fmt: skip
    column = pa.array(keys, {"string": pa.string(), "bigint": pa.int64(), "binary": pa.binary()}[kind])
    assert spark_hash(column).tolist() == told["h"].to_pylist()
    for n in (7, 16, 200):
        assert SparkPartitioner(n).channels_of(column).tolist() == told[f"p{n}"].to_pylist()


def test_a_live_shuffle_puts_every_key_where_the_scheme_says(spark):
    from pyspark.sql import functions as F

    keys = [*many_texts(), None]
    frame = spark.createDataFrame([(at, key) for at, key in enumerate(keys)], "row bigint, key string")
    placed = frame.repartition(16, "key").select("row", F.spark_partition_id().alias("partition")).toArrow()
    assert placed.num_rows == len(keys)
    found = dict(zip(placed["row"].to_pylist(), placed["partition"].to_pylist(), strict=True))
    expected = SparkPartitioner(16).channels_of(pa.array(keys, pa.string()))
    assert [found[row] for row in range(len(keys))] == expected.tolist()


WORD = st.integers(0, 2**64 - 1)


def looked_up(table, hashes):
    """The channels of some hashes, as an engine without unsigned numbers finds them."""
    buckets = (hashes >> np.uint64(table.shift)).astype(np.int64)
    signed = hashes.view(np.int64)
    steps = table.bounds.shape[1]
    channels = table.channels[buckets, steps]
    for step in reversed(range(steps)):
        channels = np.where(signed <= table.bounds[buckets, step], table.channels[buckets, step], channels)
    return channels


@given(st.integers(1, 9), st.integers(1, 40), st.lists(WORD, max_size=50))
def test_the_table_says_what_the_ring_says(channels, replicas, hashes):
    ring = ConsistentHash(channels, replicas, HashName.XXHASH64)
    positions = ring.positions.high
    asked = np.concatenate(
        [
            np.array([*hashes, 0, 2**63 - 1, 2**63, 2**64 - 1], np.uint64),
            positions,
            positions + np.uint64(1),
            positions - np.uint64(1),
        ]
    )
    table = ring_table(ring)
    assert looked_up(table, asked).tolist() == ring.channels_at(asked, np.zeros_like(asked)).tolist()


def test_an_ordinary_ring_takes_few_comparisons_and_little_room():
    made = ring_table(ConsistentHash(8, 1_000, HashName.XXHASH64))
    assert made.bounds.shape[1] <= 9
    assert made.table().nbytes < 2_000_000
    columns = made.table().column_names
    assert columns[:4] == ["bucket", "channel_0", "bound_0", "channel_1"]
    assert columns[-1] == f"channel_{made.bounds.shape[1]}"


def test_a_single_channel_has_a_table_without_a_choice():
    assert set(ring_table(ConsistentHash(1, 5, HashName.XXHASH64)).channels.ravel().tolist()) == {0}
