"""What engines do with the type of a key; Spark's part is held against Spark in `spark/test_key_types.py`."""

import zlib

import pyarrow as pa
import pytest

from adapt.core.engines.names import Engine
from adapt.core.engines.registry import assumed_keys, placement_of
from adapt.core.errors import UsageError
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.keys.key_text import keys_from_texts
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType

WHOLES = [0, 1, -1, 7, 100, -100, 127, -128]
N = 12
PAIR = KeyType("(string,int32)")


def places(engine, keys, key_type):
    return placement_of(engine, N, key_type=key_type).channels_of(keys).tolist()


@pytest.mark.parametrize(("key_type", "width"), [(KeyType.INT32, 4), (KeyType.INT16, 2)])
@pytest.mark.parametrize("engine", [Engine.KAFKA, Engine.LIBRDKAFKA, Engine.SARAMA])
def test_kafka_clients_place_the_bytes_of_their_serializer(engine, key_type, width):
    sent = pa.array([each.to_bytes(width, "big", signed=True) for each in WHOLES], pa.binary())
    assert places(engine, pa.array(WHOLES), key_type) == places(engine, sent, None)


def test_fields_of_flink_sql_end_in_zeros():
    """A field has 8 bytes; of an INT the last four are zero, also below 0, where a BIGINT has ones."""
    for key_type, bits in ((KeyType.INT8, 8), (KeyType.INT16, 16), (KeyType.INT32, 32)):
        padded = pa.array([each % (1 << bits) for each in WHOLES])
        assert places(Engine.FLINK_SQL, pa.array(WHOLES), key_type) == places(Engine.FLINK_SQL, padded, None)


def test_risingwave_hashes_an_integer_as_its_own_bytes():
    for key_type, width in ((KeyType.INT32, 4), (KeyType.INT16, 2)):
        nodes = [zlib.crc32(each.to_bytes(width, "little", signed=True)) % 256 for each in WHOLES]
        longer = 256 % N * (256 // N + 1)
        actors = [at // 22 if at < longer else 256 % N + (at - longer) // 21 for at in nodes]
        assert places(Engine.RISINGWAVE, pa.array(WHOLES), key_type) == actors


@pytest.mark.parametrize("engine", [each for each in Engine if each is not Engine.SPARK])
def test_several_columns_are_refused_where_their_bytes_are_not_known(engine):
    with pytest.raises(UsageError, match="not known for a key of several columns"):
        placement_of(engine, N, key_type=PAIR)


@pytest.mark.parametrize("engine", [Engine.FLINK, Engine.FLINK_SQL, Engine.RISINGWAVE])
def test_a_type_of_unknown_placement_is_refused(engine):
    with pytest.raises(UsageError, match="date keys is not known"):
        placement_of(engine, N, key_type=KeyType.DATE)


def test_what_is_assumed_is_said():
    assert assumed_keys(Engine.KAFKA, KeyType.DATE) == (
        "kafka clients have no serializer for date keys; they are placed by their text"
    )
    for scheme, key_type in ((Engine.KAFKA, KeyType.INT32), (Engine.KINESIS, KeyType.DATE), (Scheme.UNIFORM, PAIR)):
        assert assumed_keys(scheme, key_type) == ""


def test_a_column_of_another_type_is_placed_by_its_own():
    """Salted keys are text, whatever the keys were."""
    salted = pa.array(["7#1", "7#2"])
    assert places(Engine.SPARK, salted, KeyType.INT32) == places(Engine.SPARK, salted, None)
    assert places(Engine.SPARK, salted, KeyType.DATE) == places(Engine.SPARK, salted, None)


def test_only_plans_over_an_engine_tell_types_apart():
    spark = Plan(Scheme.HYBRID, N, KeyType.INT32, base=Engine.SPARK, explicit={7: 3})
    ring = Plan(Scheme.HYBRID, N, KeyType.INT32, explicit={7: 3})
    assert (spark.key_type, ring.key_type) == (KeyType.INT32, KeyType.INT64)
    types = (KeyType.INT64, KeyType.INT32, KeyType.DATE)
    assert [ring.fits(each) for each in types] == [True, True, False]
    assert [spark.fits(each) for each in types] == [False, True, False]
    assert ring.content_hash() == Plan(Scheme.HYBRID, N, KeyType.INT64, explicit={7: 3}).content_hash()


@pytest.mark.parametrize(
    ("key_type", "good", "bad"),
    [
        ("int8", ["-128", "127"], "128"),
        ("int32", ["2147483647"], "2147483648"),
        ("date", ["2024-02-29", "+10000-01-01"], "2023-02-29"),
        ("timestamp", ["2024-02-29 23:59:59.000001"], "2024-02-29"),
        ("decimal(10,2)", ["1.50", "-3"], "1,5"),
        ("boolean", ["true"], "1"),
        ("(string,int32)", ['["US",7]', "[null,null]"], '["US","7"]'),
    ],
)
def test_texts_of_typed_keys_are_checked(key_type, good, bad):
    assert keys_from_texts(good, KeyType(key_type)).cast(pa.string()).to_pylist() == good
    with pytest.raises(Exception, match="keys must be"):
        keys_from_texts([bad], KeyType(key_type))


TYPED = {
    "string": ["", "a", "é€😀", None],
    "binary": [b"", b"\xff\x00a", None],
    "int64": [-(2**63), -1, 0, 2**63 - 1, None],
    "int8": [*WHOLES, None],
    "int16": [-(2**15), *WHOLES, None],
    "int32": [-(2**31), *WHOLES, None],
    "boolean": ["true", "false", "no", None],
    "date": ["1969-12-31", "0000-03-01", "-0001-01-01", "+10000-01-01", "2023-02-29", "", None],
    "timestamp": ["1969-12-31 23:59:59.999999", "0000-03-01 00:00:00", "+10000-01-01 00:00:00.5", None],
    "timestamp_ntz": ["2024-02-29 01:02:03", "2024-02-29 25:02:03", None],
    "decimal(10,2)": ["1.50", "-3", "1E+3", "1,5", None],
    "decimal(38,10)": ["-1.5", "12345678901234567890.5", "0", None],
    "(string,int32)": ['["é",-1]', "[null,7]", "[null,null]", '["a",2147483648]', " [null,1]", "a", None],
    "(date,decimal(10,2),binary)": ['["2024-02-29","1.5","00ff"]', '["2024-02-30","1.5","00"]', None],
}


@pytest.mark.parametrize("engine", Engine)
@pytest.mark.parametrize("key_type", [*map(KeyType, TYPED)])
def test_a_key_has_one_place_alone_and_among_others(engine, key_type):
    keys = TYPED[key_type]
    try:
        placement = placement_of(engine, N, key_type=key_type)
    except UsageError:
        return
    column = pa.array(keys, ARROW_TYPES[key_type])
    assert [placement.channel_of(key) for key in keys] == placement.channels_of(column).tolist()


def test_names_of_types_are_read_and_kept_once():
    named = KeyType("(string,decimal(10,2),int32)")
    assert named is KeyType("(string,decimal(10,2),int32)")
    assert named.columns == (KeyType.STRING, KeyType("decimal(10,2)"), KeyType.INT32)
    for wrong in ("int", "(string)", "(string,)", "decimal(10)", "((string,string),int32)"):
        with pytest.raises(ValueError, match="not a valid KeyType"):
            KeyType(wrong)
