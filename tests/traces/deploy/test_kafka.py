"""The router: where the plan says, for every scheme, kind of key and client; and what it refuses."""

import sys
from itertools import pairwise
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.partitioner import Partitioner

from adapt.core.engines.names import BASES, Engine, hashing_of
from adapt.core.engines.registry import key_groups_of
from adapt.core.errors import BadInput, EnvironmentFailure
from adapt.core.keys.names import HashName
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, RING_SCHEMES, Scheme
from adapt.core.stream import COLUMN_TYPES, KeyType
from adapt.traces.deploy import kafka
from adapt.traces.deploy.kafka import Router
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.plans import write_plan

KEYS = {
    KeyType.STRING: st.text(max_size=30),
    KeyType.INT64: st.integers(-(2**63), 2**63 - 1),
    KeyType.BINARY: st.binary(max_size=30),
}
TYPES = {KeyType.STRING: pa.string(), KeyType.INT64: pa.int64(), KeyType.BINARY: pa.binary()}


def serialized(key, integers="long"):
    """A key as a producer's serializer writes it."""
    if isinstance(key, int):
        return key.to_bytes(8, "big", signed=True) if integers == "long" else str(key).encode()
    return key.encode() if isinstance(key, str) else key


@st.composite
def plans_and_keys(draw, scheme):
    key_type = draw(st.sampled_from(COLUMN_TYPES))
    channels = draw(st.integers(1, 9))
    base = draw(st.sampled_from(BASES))
    explicit = draw(st.dictionaries(st.none() | KEYS[key_type], st.integers(0, channels - 1), max_size=5))
    plan = Plan(
        scheme=scheme,
        channels=channels,
        key_type=key_type,
        hash=draw(st.sampled_from(HashName)),
        replicas=draw(st.integers(1, 20)) if scheme in RING_SCHEMES else 1000,
        explicit=explicit if scheme in MAPPED_SCHEMES else {},
        max_parallelism=draw(st.integers(channels, 500)) if key_groups_of(hashing_of(scheme, base)) else None,
        base=base,
    )
    return plan, draw(st.lists(KEYS[key_type] | st.sampled_from([None, *explicit]), min_size=1, max_size=10))


@pytest.mark.parametrize("scheme", [*Scheme, *Engine])
@settings(max_examples=settings().max_examples * 15 // 100)
@given(st.data())
def test_every_scheme_is_routed_as_the_plan_places_it(scheme, data):
    plan, keys = data.draw(plans_and_keys(scheme))
    integers = data.draw(st.sampled_from(["long", "text"]))
    router = Router(plan, integers=integers)
    expected = plan.partitioner().channels_of(pa.array(keys, TYPES[plan.key_type])).tolist()
    assert [router.partition(key) for key in keys] == expected
    sent = [serialized(key, integers) for key in keys]
    partitions = list(range(plan.channels))
    assert [router(key, partitions, []) for key in sent] == expected
    assert [router(key, partitions, partitions[:1]) for key in sent] == expected  # now remembered


def binary_plan(channels=4, **others):
    return Plan(scheme=Scheme.HYBRID, channels=channels, key_type=KeyType.BINARY, **others)


def test_the_null_key_has_its_place_or_is_dealt_out():
    plan = binary_plan(explicit={None: 2})
    assert {Router(plan).partition(None), Router(plan)(None, range(4), [0, 1])} == {2}
    spread = Router(plan, nulls="spread")
    assert [spread(None, range(4), [1, 3]) for _ in range(4)] == [1, 3, 1, 3]
    assert sorted(spread.partition(None) for _ in range(4)) == [0, 1, 2, 3]
    assert all(0 <= spread(None, range(4), []) < 4 for _ in range(9))


def test_only_so_many_keys_are_remembered(monkeypatch):
    monkeypatch.setattr(kafka, "MOST_REMEMBERED", 10)
    router = Router(binary_plan())
    sizes = [router.partition(b"%d" % number) is None or len(router._remembered) for number in range(100)]
    assert max(sizes) == 10
    assert any(later < before for before, later in pairwise(sizes))


def test_a_topic_of_another_size_is_refused():
    router = Router(binary_plan())
    with pytest.raises(BadInput, match=r"the topic has 6 partitions, but the plan has 4 channels; build a plan"):
        router(b"a", range(6), [])


@pytest.mark.parametrize(
    ("key_type", "key", "said"),
    [
        (KeyType.STRING, 7, "this plan needs string keys \\(got 7\\)"),
        (KeyType.STRING, "\ud800", "is not a valid string key"),
        (KeyType.INT64, "a", "needs int64 keys \\(got 'a'\\)"),
        (KeyType.INT64, b"123", "must be 8 bytes big-endian"),
    ],
)
def test_a_key_of_another_type_is_refused_in_a_line(key_type, key, said):
    with pytest.raises(BadInput, match=said):
        Router(Plan(scheme=Scheme.UNIFORM, channels=4, key_type=key_type)).partition(key)


@pytest.mark.parametrize("key", [b"x", b"99999999999999999999", b""])
def test_text_that_is_no_int64_is_refused(key):
    with pytest.raises(BadInput, match="must be 64-bit integers in decimal"):
        Router(Plan(scheme=Scheme.UNIFORM, channels=4, key_type=KeyType.INT64), integers="text").partition(key)


class Cluster(SimpleNamespace):
    """What kafka-python knows of a topic."""

    def partitions_for_topic(self, topic):
        return set(range(4)) if topic == "visits" else None

    def available_partitions_for_topic(self, topic):
        return {3, 1}


def test_kafka_python_asks_as_its_own_partitioners_are_asked():
    router = Router(binary_plan(), nulls="spread")
    theirs = router.for_kafka_python()
    assert isinstance(theirs, Partitioner)
    assert theirs.partition("visits", "a", b"a", None, None, Cluster()) == router.partition(b"a")
    assert [theirs.partition("visits", None, None, None, None, Cluster()) for _ in range(3)] == [1, 3, 1]
    with pytest.raises(BadInput, match="no partitions of topic 'other'"):
        theirs.partition("other", None, None, None, None, Cluster())


def test_without_kafka_python_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "kafka.partitioner", None)
    with pytest.raises(EnvironmentFailure, match="pip install"):
        Router(binary_plan()).for_kafka_python()


def test_a_router_loads_a_plan_file_with_its_explicit_keys(tmp_path):
    plan = binary_plan(explicit={b"hot": 3, b"": 1})
    write_plan(plan, tmp_path / "web.plan", Provenance("a test"))
    router = Router.load(tmp_path / "web.plan")
    assert [router.partition(b"hot"), router.partition(b"")] == [3, 1]
    with pytest.raises(BadInput, match="does not exist"):
        Router.load(tmp_path / "none.plan")
