"""Flink's codes and key groups, and where they put planned keys."""

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.engines.flink.hash import flink_hash, hash_codes
from adapt.core.engines.flink.planned_groups import group_plan, group_starts
from adapt.core.engines.flink.routes import flink_routes
from adapt.core.engines.flink.scheme import FlinkPartitioner
from adapt.core.engines.names import BASES, Engine
from adapt.core.errors import BadInput
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, Scheme
from adapt.core.stream import KeyType

VECTORS = {
    "": (94, 11),
    "a": (81, 10),
    "user": (105, 13),
    "user000001": (111, 13),
    "é": (30, 3),
    "ключ": (67, 8),
    "日本語": (27, 3),
    "\N{GRINNING FACE}": (54, 6),
    "x" * 33: (34, 4),
}
"""Key: key group of 128, subtask of 16."""


def signed(number):
    return (number + 2**31) % 2**32 - 2**31


def plain_code(units, start=0):
    """s[0] 31^(n-1) + ... + s[n-1] in 32 bits."""
    code = start
    for unit in units:
        code = code * 31 + unit
    return signed(code)


def utf16(text):
    data = text.encode("utf-16-le", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2)]


@pytest.mark.parametrize("key", VECTORS)
def test_a_key_has_the_group_and_subtask_of_flink(key):
    group, subtask = VECTORS[key]
    assert flink_hash(pa.array([key])).tolist()[0] % 128 == group
    assert FlinkPartitioner(16, 128).channel_of(key) == FlinkPartitioner(16).channel_of(key) == subtask


@given(st.lists(st.text(max_size=40), max_size=20))
def test_strings_run_over_utf_16_units(keys):
    assert hash_codes(pa.array(keys, pa.string())).tolist() == [plain_code(utf16(key)) for key in keys]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_integers_fold_their_two_halves(keys):
    expected = [signed((key % 2**64) ^ (key % 2**64 >> 32)) for key in keys]
    assert hash_codes(pa.array(keys, pa.int64())).tolist() == expected


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_bytes_run_over_signed_bytes_from_one(keys):
    expected = [plain_code([byte if byte < 128 else byte - 256 for byte in key], 1) for key in keys]
    assert hash_codes(pa.array(keys, pa.binary())).tolist() == expected


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=50))
def test_codes_are_mixed_as_a_key_of_four_bytes(codes):
    """An int64 key whose upper half repeats its sign has its lower half, or the complement, as its code."""
    expected = [mmh3.hash((code if code >= 0 else ~code).to_bytes(4, "little"), 0) for code in codes]
    assert flink_hash(pa.array(codes, pa.int64())).tolist() == [
        0 if each == -(2**31) else abs(each) for each in expected
    ]


KEYS = {KeyType.STRING: st.text(max_size=9), KeyType.INT64: st.integers(-(2**63), 2**63 - 1)}
SCHEMES = list(Scheme)


@st.composite
def grouped(draw):
    key_type = draw(st.sampled_from(sorted(KEYS)))
    channels = draw(st.integers(1, 9))
    scheme = draw(st.sampled_from(SCHEMES))
    keys = st.none() | KEYS[key_type]
    explicit = draw(st.dictionaries(keys, st.integers(0, channels - 1), max_size=9)) if scheme in MAPPED_SCHEMES else {}
    base = draw(st.sampled_from(BASES))
    plan = Plan(scheme, channels, key_type, replicas=20 if explicit else 1000, explicit=explicit, base=base)
    rows = draw(st.lists(keys | st.sampled_from([None, *explicit]), max_size=20))
    groups = None if plan.max_parallelism else draw(st.none() | st.integers(channels, 300))
    return group_plan(plan, groups), pa.array(rows, plan.explicit.column.type)


@settings(max_examples=settings().max_examples // 2)
@given(grouped())
def test_at_its_own_parallelism_each_subtask_has_the_keys_of_its_channel(made):
    found, keys = made
    placed = found.plan.partitioner().channels_of(keys)
    assert found.subtasks_of(keys, found.plan.channels).tolist() == placed.tolist()


@settings(max_examples=settings().max_examples // 2)
@given(grouped(), st.integers(1, 40))
def test_at_any_other_flink_puts_the_routes_where_the_groups_are(made, parallelism):
    found, keys = made
    parallelism = min(parallelism, found.groups)
    groups = found.groups_of(keys)
    routes = pa.array(flink_routes(found.groups)[groups].astype(np.int64))
    theirs = FlinkPartitioner(parallelism, found.groups).channels_of(routes)
    assert found.subtasks_of(keys, parallelism).tolist() == theirs.tolist()
    assert [found.group_of(key) for key in keys.to_pylist()] == groups.tolist()


@given(st.integers(1, 200), st.integers(0, 400))
def test_ranges_are_contiguous_and_as_flink_cuts_them(channels, more):
    groups = channels + more
    starts = group_starts(channels, groups)
    owners = [group * channels // groups for group in range(groups)]
    assert [owners.index(channel) for channel in range(channels)] == starts[:-1].tolist()
    assert starts[-1] == groups


def test_what_flink_does_by_itself_needs_no_export():
    with pytest.raises(BadInput, match="needs no export"):
        group_plan(Plan(Engine.FLINK, 4, KeyType.STRING))


@given(st.lists(st.none() | st.text(max_size=9)), st.integers(1, 9), st.integers(9, 300))
def test_over_flink_s_own_base_every_key_but_the_pinned_keeps_its_group(keys, channels, groups):
    column = pa.array(keys, pa.string())
    plan = Plan(Scheme.HYBRID, channels, KeyType.STRING, explicit={"hot": 0}, max_parallelism=groups, base=Engine.FLINK)
    theirs = FlinkPartitioner(groups, groups).channels_of(column)
    free = np.array([key != "hot" for key in keys], bool)
    assert group_plan(plan).groups_of(column)[free].tolist() == theirs[free].tolist()
