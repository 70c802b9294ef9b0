"""Placements against plain forms of their hashes, and against vectors that their projects publish."""

import base64
import hashlib
import json
import zlib

import mmh3
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.engines.hash_functions.md5 import md5
from adapt.core.engines.kinesis.scheme import KinesisPartitioner, shards_from_text
from adapt.core.engines.librdkafka.engine import fnv1a_of_sent
from adapt.core.engines.names import Engine
from adapt.core.engines.pulsar.engine import java_hash
from adapt.core.engines.pulsar.scheme import PulsarPartitioner, murmur3_31
from adapt.core.engines.registry import definition_of
from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.columns import key_bytes
from adapt.core.stream import COLUMN_TYPES, KeyType
from tests.core.plain_hashes import fnv1a

PUBLISHED_FNV1A = {
    "kafka": 0xD33C4E1,
    "giberish123456789": 0x77A58295,
    "1234": 0x23BDD03,
    "234": 0x2DEA3CD2,
    "34": 0x740FA83E,
    "4": 0x310CA263,
    "PreAmbleWillBeRemoved,ThePrePartThatIs": 0x65CBD69C,
    "reAmbleWillBeRemoved,ThePrePartThatIs": 0x6E49C79A,
    "eAmbleWillBeRemoved,ThePrePartThatIs": 0x69EED356,
    "AmbleWillBeRemoved,ThePrePartThatIs": 0x6ABCC023,
    "": 0x7EE3623B,
}
"""Of librdkafka's src/rdfnv1a.c, made with Go's hash/fnv as Sarama uses it."""

TYPES = {KeyType.STRING: pa.string(), KeyType.INT64: pa.int64(), KeyType.BINARY: pa.binary()}
KEYS = {
    KeyType.STRING: st.text(max_size=70),
    KeyType.INT64: st.integers(-(2**63), 2**63 - 1),
    KeyType.BINARY: st.binary(max_size=140),
}


def java_code(text):
    code = 0
    units = text.encode("utf-16-le", "surrogatepass")
    for at in range(0, len(units), 2):
        code = (code * 31 + int.from_bytes(units[at : at + 2], "little")) % 2**32
    return code & 0x7FFFFFFF


def sent(key):
    """As a producer sends it to Kafka."""
    return (
        key.to_bytes(8, "big", signed=True) if isinstance(key, int) else key.encode() if isinstance(key, str) else key
    )


def text(key):
    """As Kinesis and Pulsar have it."""
    return str(key).encode() if isinstance(key, int) else key.encode() if isinstance(key, str) else key


def in_base64(key):
    return base64.b64encode(key) if isinstance(key, bytes) else text(key)


def by_sarama(key, n):
    signed = fnv1a(sent(key)) - (2**32 if fnv1a(sent(key)) >= 2**31 else 0)
    return abs(signed) % n  # of Go's remainder, which has the sign of the hash


def by_kinesis(key, n):
    number = int(hashlib.md5(text(key)).hexdigest(), 16)
    return min(number // (2**128 // n), n - 1)


def by_pulsar(key, n):
    """Key_Shared: each consumer halves the widest range, as HashRangeAutoSplitStickyKeyConsumerSelector does."""
    ranges = {65536: 0}
    for consumer in range(1, n):
        ends = sorted(ranges)
        widths = [end - before for before, end in zip([0, *ends], ends, strict=False)]
        widest = widths.index(max(widths))
        ranges[ends[widest] - (widths[widest] >> 1)] = consumer
    slot = mmh3.hash(text(key), 0, signed=False) % 2**31 % 65536
    return ranges[min(end for end in ranges if end >= slot)]


def by_risingwave(key, n):
    """Rust's `Hash`: text ends in a byte 255, bytes begin with their length, an i64 is 8 bytes little-endian."""
    if isinstance(key, int):
        data = key.to_bytes(8, "little", signed=True)
    else:
        data = key.encode() + b"\xff" if isinstance(key, str) else len(key).to_bytes(8, "little") + key
    mapping = [actor for actor in range(n) for _ in range(256 // n + (actor < 256 % n))]
    return mapping[zlib.crc32(data) % 256]


def by_crc32(key, n):
    return zlib.crc32(sent(key)) % n


def by_java(key, n):
    data = in_base64(key)
    return java_code(data.decode()) % n


def by_murmur3(key, n):
    return mmh3.hash(in_base64(key), 0, signed=False) % 2**31 % n


PLAIN = {
    Engine.LIBRDKAFKA_RANDOM: by_crc32,
    Engine.LIBRDKAFKA: by_crc32,
    Engine.LIBRDKAFKA_CONSISTENT: by_crc32,
    Engine.LIBRDKAFKA_FNV1A: by_sarama,
    Engine.LIBRDKAFKA_FNV1A_RANDOM: by_sarama,
    Engine.SARAMA: by_sarama,
    Engine.KINESIS: by_kinesis,
    Engine.PULSAR: by_pulsar,
    Engine.PULSAR_JAVA: by_java,
    Engine.PULSAR_MURMUR3: by_murmur3,
    Engine.RISINGWAVE: by_risingwave,
}
"""Every engine without a file of tests of its own."""


@pytest.mark.parametrize("engine", PLAIN)
@settings(deadline=None)
@given(st.data())
def test_a_key_lies_where_the_plain_form_puts_it(engine, data):
    key_type, n = data.draw(st.sampled_from(COLUMN_TYPES)), data.draw(st.integers(1, 40))
    keys = data.draw(st.lists(KEYS[key_type], max_size=10))
    placed = definition_of(engine).placement(n, None).channels_of(pa.array(keys, TYPES[key_type]))
    assert placed.tolist() == [PLAIN[engine](key, n) for key in keys]


def test_fnv1a_is_as_librdkafka_and_go_have_it():
    hashes = fnv1a_of_sent(key_bytes(pa.array(list(PUBLISHED_FNV1A))), KeyType.STRING)
    assert hashes.tolist() == list(PUBLISHED_FNV1A.values())


def test_the_hashes_of_pulsar_are_those_of_its_tests():
    """Of Pulsar's HashTest.java: the same in its clients in Java and C++."""
    texts = pa.array(["keykeykeykeykey1", "keykeykey2"])
    assert java_hash(key_bytes(texts), KeyType.STRING).tolist() == [434058482, 42978643]
    assert murmur3_31(key_bytes(pa.array(["key1", "key2"])), KeyType.STRING).tolist() == [462881061, 1936800180]


def test_pulsar_s_ranges_are_those_of_its_documentation():
    """Pulsar, HashRangeAutoSplitStickyKeyConsumerSelector.java: the second consumer takes the lower half."""
    owners = PulsarPartitioner(2)._owners
    assert (owners[:32769] == 1).all()
    assert (owners[32769:] == 0).all()
    assert len(set(PulsarPartitioner(32768)._owners.tolist())) == 32768


def test_md5_is_that_of_rfc_1321():
    vectors = {"": "d41d8cd98f00b204e9800998ecf8427e", "abc": "900150983cd24fb0d6963f7d28e17f72"}
    vectors |= {
        "message digest": "f96b697d7cb7938d525a2f31aaf161d0",
        "1234567890" * 8: "57edf4a22be3c955ac49da2e2107b67a",
    }
    high, low = md5(key_bytes(pa.array(list(vectors))))
    assert [f"{a:016x}{b:016x}" for a, b in zip(high.tolist(), low.tolist(), strict=True)] == list(vectors.values())


def shard(start, end, closed=False, name="shardId-0"):
    numbers = {"StartingSequenceNumber": "1"} | ({"EndingSequenceNumber": "2"} if closed else {})
    keys = {"StartingHashKey": str(start), "EndingHashKey": str(end)}
    return {"ShardId": name, "HashKeyRange": keys, "SequenceNumberRange": numbers}


def listed(*shards):
    return json.dumps({"Shards": shards})


LAST = 2**128 - 1


def test_uneven_shards_place_by_their_ranges():
    starts = shards_from_text(
        listed(shard(2**127, LAST), shard(0, LAST, closed=True), shard(5, 2**127 - 1), shard(0, 4))
    )
    assert starts == (0, 5, 2**127)
    keys = [f"user{number}" for number in range(1000)]
    found = [int(hashlib.md5(key.encode()).hexdigest(), 16) for key in keys]
    placed = KinesisPartitioner(3, starts).channels_of(pa.array(keys))
    assert placed.tolist() == [2 if number >= 2**127 else 1 for number in found]
    assert Engine.kinesis_over(starts) is Engine.kinesis_over((0, 5, 2**127)) != Engine.KINESIS


@pytest.mark.parametrize(
    ("list_of_shards", "said"),
    [
        (listed(shard(0, 9), shard(11, LAST, name="b")), "a gap before shard b, which starts at 11 instead of 10"),
        (listed(shard(0, 9), shard(9, LAST, name="b")), "an overlap at shard b, which starts at 9 instead of 10"),
        (listed(shard(0, 9, name="a")), "a gap after shard a, which ends at 9"),
        (listed(shard(0, LAST, closed=True)), "no shard is open"),
        (listed(shard(9, 5)), "range 9 to 5 is not within 0"),
        ('{"Streams": []}', "aws kinesis list-shards"),
        ("[1]", "not a list of shards"),
        ("shards", "not a list of shards"),
    ],
)
def test_a_bad_list_of_shards_is_refused_in_a_sentence(list_of_shards, said):
    with pytest.raises(BadInput, match=said):
        shards_from_text(list_of_shards)


def test_the_channels_must_be_the_shards():
    with pytest.raises(UsageError, match="has 3 open shards, so --channels must be 3"):
        KinesisPartitioner(4, (0, 5, 9))


def test_a_null_of_pulsar_and_of_risingwave_is_a_key_of_its_own():
    placed = PulsarPartitioner(7)
    assert placed.channel_of(None) == placed.channel_of("NONE_KEY")
    vnode = zlib.crc32(bytes.fromhex("f0ffffff")) % 256
    assert definition_of(Engine.RISINGWAVE).placement(256, None).channel_of(None) == vnode
