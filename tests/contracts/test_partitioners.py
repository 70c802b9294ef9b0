"""What every scheme of the registry keeps: total, in range, fixed, the same alone as in a column."""

import json
import pickle
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.engines.names import BASES, SCHEMES_BY_NAME, Engine, hashing_of
from adapt.core.engines.registry import key_groups_of
from adapt.core.keys.names import HashName
from adapt.core.partitioning.plans.plan import Plan, plan_from_data, plan_to_data
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.key_groups import default_max_parallelism
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, RING_SCHEMES, Scheme
from adapt.core.stream import COLUMN_TYPES, KeyType
from tests.tiers import SOAK

TYPES = {
    KeyType.STRING: (st.text(max_size=30), [pa.string(), pa.large_string()]),
    KeyType.INT64: (st.integers(-(2**63), 2**63 - 1), [pa.int64()]),
    KeyType.BINARY: (st.binary(max_size=30), [pa.binary(), pa.large_binary()]),
}
MONOTONE = [Scheme.CONSISTENT, Scheme.JUMP, Scheme.RENDEZVOUS, *sorted(MAPPED_SCHEMES)]
"""The schemes in which a new channel takes keys and nothing else moves (of mapped ones, while the map stays)."""

every_scheme = pytest.mark.parametrize("scheme", SCHEMES_BY_NAME.values())
some = settings(max_examples=settings().max_examples * 4 // 10)
"""Of every scheme; all draw from `placements`."""


@st.composite
def placements(draw, scheme):
    """A plan of the scheme and a column to place, in which tracked keys occur if the scheme tracks any."""
    key_type = draw(st.sampled_from(COLUMN_TYPES))
    keys, arrow_types = TYPES[key_type]
    channels = draw(st.integers(1, 12))
    entries = draw(st.dictionaries(st.none() | keys, st.integers(0, channels - 1), max_size=5))
    base = draw(st.sampled_from(BASES))
    hashing = hashing_of(scheme, base)
    plan = Plan(
        scheme=scheme,
        channels=channels,
        key_type=key_type,
        hash=draw(st.sampled_from(HashName)),
        replicas=draw(st.integers(1, 20)) if hashing is Scheme.CONSISTENT else 1000,
        explicit=ExplicitMap.from_mapping(entries if scheme in MAPPED_SCHEMES else {}, key_type),
        max_parallelism=draw(st.none() | st.integers(channels, 32768)) if key_groups_of(hashing) else None,
        base=base,
    )
    rows = draw(st.lists(st.sampled_from([None, *entries]) | keys, max_size=20))
    return plan, pa.array(rows, draw(st.sampled_from(arrow_types)))


@every_scheme
@some
@given(st.data())
def test_a_key_goes_one_way_in_range_alone_as_in_any_cut_of_a_column_and_by_a_plan_that_was_written(scheme, data):
    plan, keys = data.draw(placements(scheme))
    partitioner = plan.partitioner()
    column = partitioner.channels_of(keys)
    assert (column.dtype, column.shape, partitioner.channels) == (np.int32, (len(keys),), plan.channels)
    assert ((column >= 0) & (column < plan.channels)).all()
    placed = column.tolist()
    assert [partitioner.channel_of(key) for key in keys.to_pylist()] == placed
    assert partitioner.channels_of(keys[::-1]).tolist() == placed[::-1]
    cut = data.draw(st.integers(0, len(keys)))
    assert partitioner.channels_of(keys[cut:]).tolist() == placed[cut:]
    assert partitioner.channels_of(pa.chunked_array([keys[:cut], keys[cut:]])).tolist() == placed
    assert partitioner.channels_of(keys.dictionary_encode()).tolist() == placed
    again = plan_from_data(json.loads(json.dumps(plan_to_data(plan))))
    assert again.partitioner().channels_of(keys).tolist() == placed


@every_scheme
def test_one_channel_takes_everything(scheme):
    partitioner = make_partitioner(scheme, 1, HashName.XXHASH64, 10)
    assert partitioner.channels_of(pa.array(["a", "", None, "ä" * 100])).tolist() == [0, 0, 0, 0]


@every_scheme
def test_an_empty_column_has_no_channels(scheme):
    partitioner = make_partitioner(scheme, 3, HashName.MURMUR3, 10)
    assert partitioner.channels_of(pa.array([], pa.string())).tolist() == []
    assert partitioner.channels_of(pa.chunked_array([], pa.int64())).tolist() == []


@every_scheme
@settings(max_examples=5)
@given(st.integers(0, 255))
def test_keys_of_64_kib_are_keys_like_any_other(scheme, salt):
    keys = [bytes([salt, number]) * 2**15 for number in range(8)]
    entries = {key: number for number, key in enumerate(keys[:4])} if scheme in MAPPED_SCHEMES else {}
    plan = Plan(scheme, 8, KeyType.BINARY, replicas=10, explicit=ExplicitMap.from_mapping(entries, KeyType.BINARY))
    again = plan_from_data(json.loads(json.dumps(plan_to_data(plan))))
    placed = again.partitioner().channels_of(pa.array(keys)).tolist()
    assert placed == [plan.partitioner().channel_of(key) for key in keys]
    assert placed[: len(entries)] == list(range(len(entries)))


@pytest.mark.parametrize("scheme", MONOTONE)
@given(st.integers(1, 12), st.integers(1, 40), st.sampled_from(HashName))
def test_growing_moves_keys_to_the_new_channel_only(scheme, channels, replicas, hash):
    keys = pa.array(range(500))
    entries = {number: number % channels for number in range(20)} if scheme in MAPPED_SCHEMES else {}
    made = (make_partitioner(scheme, n, hash, replicas, entries) for n in (channels, channels + 1))
    before, after = (partitioner.channels_of(keys) for partitioner in made)
    assert (after[before != after] == channels).all()


@cache
def many_keys():
    return pa.array([f"key-{n}" for n in range(200_000)])


@pytest.mark.parametrize(
    ("scheme", "hash", "channels"),
    [
        (scheme, hash, channels)
        for scheme in SCHEMES_BY_NAME.values()
        for at, channels in enumerate((2, 10, 64))
        for number, hash in enumerate(HashName)
        if SOAK or (at == 1 if isinstance(scheme, Scheme) else number == 0 and at != 1)
    ],
)
def test_many_keys_are_spread_as_evenly_as_chance_allows(scheme, hash, channels):
    placed = make_partitioner(scheme, channels, hash).channels_of(many_keys())
    counts = np.bincount(placed, minlength=channels)
    even = len(many_keys()) / channels
    # Five deviations of a binomial count, and of what the channels have by the scheme: on a ring, of 1000 arcs; of
    # groups that do not divide evenly, one more or less; of a table, one entry.
    own = {Scheme.MAGLEV: channels / 65537}.get(scheme, 0.0)
    own = 5 / np.sqrt(1000) if scheme in RING_SCHEMES else own
    own = channels / default_max_parallelism(channels) if key_groups_of(scheme) else own
    # Pulsar halves ranges, so that some are twice as long as others; Java's hash of like texts is no chance.
    own = {Engine.PULSAR: 1.0, Engine.PULSAR_JAVA: 0.6, Engine.RISINGWAVE: channels / 256}.get(scheme, own)
    assert abs(counts - even).max() <= 5 * np.sqrt(even) + own * even


@every_scheme
def test_a_partitioner_travels(scheme):
    entries = {"key-1": 3} if scheme in MAPPED_SCHEMES else {}
    partitioner = make_partitioner(scheme, 7, HashName.XXHASH64, 5, entries)
    again = pickle.loads(pickle.dumps(partitioner))
    keys = pa.array([f"key-{n}" for n in range(1000)])
    assert again.channels_of(keys).tolist() == partitioner.channels_of(keys).tolist()


@every_scheme
def test_the_keys_of_a_column_of_nulls_go_one_way(scheme):
    """Null is one key, whatever type of column it stands in, unless an engine hashes by type."""
    partitioner = make_partitioner(scheme, 16, replicas=10)
    placed = {int(channel) for kind in (pa.string(), pa.int64(), pa.binary()) for channel in
              partitioner.channels_of(pa.nulls(2, kind))}  # fmt: skip
    assert placed == {partitioner.channel_of(None)}
