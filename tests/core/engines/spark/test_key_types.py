"""Spark's placement of keys of every type, and of pairs of columns, against Spark itself."""

from datetime import date, datetime
from decimal import Decimal
from functools import reduce

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from adapt.core.engines.names import Engine
from adapt.core.engines.registry import placement_of
from adapt.core.engines.spark.export import spark_key_type, stored_key_sql
from adapt.core.stream import KeyType, several

COLUMNS = {
    "byte": ("tinyint", [0, -1, 127, -128, 7]),
    "short": ("smallint", [0, -1, 32767, -32768, 300]),
    "whole": ("int", [0, -1, 2**31 - 1, -(2**31), 42]),
    "long": ("bigint", [0, -1, 2**63 - 1, -(2**63), 2**32 + 5]),
    "yes": ("boolean", [True, False]),
    "day": ("date", [date(1970, 1, 1), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29)]),
    "at": (
        "timestamp",
        [datetime(2024, 3, 31, 1, 30), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1900, 1, 1)],
    ),
    "local": ("timestamp_ntz", [datetime(2024, 3, 31, 2, 30, 0, 5), datetime(1582, 10, 4), datetime(9999, 12, 31, 23)]),
    "money": ("decimal(10,2)", [Decimal("0.00"), Decimal("-0.01"), Decimal("99999999.99"), Decimal("1.50")]),
    "tiny": ("decimal(18,12)", [Decimal("0.000000000001"), Decimal("-123456.000000000000"), Decimal(0)]),
    "huge": (
        "decimal(38,3)",
        [Decimal(10) ** 34, -(Decimal(10) ** 34), Decimal("-0.128"), Decimal("0.127"), Decimal(0)],
    ),
    "text": ("string", ["", "a", "ключ", '"q\\,\n\x01', "\N{GRINNING FACE}", "[null,1]", "null"]),
    "raw": ("binary", [b"", b"\x00", b"\xff\x80abc"]),
}
PAIRS = [
    *(("text", "whole"), ("whole", "text"), ("text", "text"), ("long", "day"), ("money", "yes"), ("at", "raw")),
    *(("byte", "short"), ("local", "huge"), ("text", "long", "tiny")),
]
CASES = [*((name,) for name in COLUMNS), *PAIRS]
ROWS = 60


@pytest.fixture(scope="module")
def frame(spark):
    """Rows with nulls in every column."""
    chance = np.random.default_rng(3)
    rows = [
        [None if chance.random() < 0.15 else values[chance.integers(len(values))] for _, values in COLUMNS.values()]
        for _ in range(ROWS)
    ]
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    return session.createDataFrame(rows, ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items()))


@pytest.fixture(scope="module")
def placed(frame):
    """The stored key of each case, and where Spark has it among 8 and 12 partitions."""
    found = []
    for at, case in enumerate(CASES):
        found.append(F.expr(stored_key_sql(type_of(case)).format(*case)).alias(f"key{at}"))
        found += [F.pmod(F.hash(*case), F.lit(n)).alias(f"{n}_{at}") for n in (8, 12)]
    return frame.select(*found).toArrow()


def type_of(case):
    types = [spark_key_type(COLUMNS[name][0]) for name in case]
    return types[0] if len(types) == 1 else KeyType(several(types))


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_keys_lie_where_spark_has_them(placed, case):
    at, key_type = CASES.index(case), type_of(case)
    keys = placed[f"key{at}"]
    assert keys.type == {KeyType.INT64: pa.int64(), KeyType.BINARY: pa.binary()}.get(key_type.storage, pa.string())
    for channels in (8, 12):
        mine = placement_of(Engine.SPARK, channels, key_type=key_type).channels_of(keys)
        assert mine.tolist() == placed[f"{channels}_{at}"].to_pylist()


def test_a_shuffle_by_the_key_is_what_hash_says(frame):
    """`repartition(N, key)`, not only the expression."""
    shuffled = [
        frame.repartition(channels, *case).select(
            F.lit(at).alias("case"),
            F.lit(channels).alias("channels"),
            F.pmod(F.hash(*case), F.lit(channels)).alias("hashed"),
            F.spark_partition_id().alias("partition"),
        )
        for at, case in enumerate(CASES)
        for channels in (8, 12)
    ]
    rows = reduce(DataFrame.union, shuffled).toArrow()
    assert len(rows) == len(CASES) * 2 * ROWS
    assert rows["partition"] == rows["hashed"]
