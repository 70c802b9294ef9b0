"""Exported plans on a live Spark: every scheme, kind of key and way of shuffling."""

import json

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from adapt.core.engines.names import Engine, Target
from adapt.core.engines.spark.export import stored_key_sql
from adapt.core.errors import BadInput
from adapt.core.keys.names import HashName
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, Scheme
from adapt.core.stream import COLUMN_TYPES, KeyType
from adapt.traces.deploy.export import export_plan
from adapt.traces.deploy.spark import SparkPlan
from adapt.traces.store.manifest import Provenance
from tests.tiers import SOAK

MADE = Provenance("a test")
NASTY = {
    KeyType.STRING: [None, "", "hot", "a\0b", "é", "ключ", "日本語", "\N{GRINNING FACE}", "'\"`", "x" * 70_000],
    KeyType.INT64: [None, 0, -1, 1, 2**31, -(2**31), 2**63 - 1, -(2**63)],
    KeyType.BINARY: [None, b"", b"\0", b"\xff\xfe", b"hot", b"x" * 5_000],
}
MORE = {
    KeyType.STRING: [f"user{number}" for number in range(3_000)],
    KeyType.INT64: [number * 1_000_003 - 10**9 for number in range(3_000)],
    KeyType.BINARY: [b"\x80%d" % number for number in range(3_000)],
}
TYPES = {KeyType.STRING: "string", KeyType.INT64: "bigint", KeyType.BINARY: "binary"}
CHANNELS = 6
FEW = {
    KeyType.STRING: {Scheme.UNIFORM, Engine.SPARK, Scheme.MAGLEV, Scheme.KEY_GROUPS, Scheme.HYBRID},
    KeyType.INT64: {Engine.SPARK, Scheme.HYBRID},
    KeyType.BINARY: {Scheme.CONSISTENT, Scheme.BOUNDED},
}
"""Of each type of keys, outside a soak: every plan is two joins that Spark compiles."""


def keys_of(key_type):
    return NASTY[key_type] + MORE[key_type]


def every_plan(key_type):
    """A plan of every scheme that Spark can place by; explicit maps with and without the null key."""
    keys = NASTY[key_type]
    for scheme in (Scheme.UNIFORM, Engine.SPARK, Scheme.MAGLEV, Scheme.CONSISTENT):
        yield Plan(scheme=scheme, channels=CHANNELS, key_type=key_type, hash=HashName.XXHASH64)
    for groups in (CHANNELS, 2**31 - 1) if SOAK else (2**31 - 1,):
        yield Plan(Scheme.KEY_GROUPS, CHANNELS, key_type, hash=HashName.XXHASH64, max_parallelism=groups)
    for scheme in sorted(MAPPED_SCHEMES):
        explicit = {key: row % CHANNELS for row, key in enumerate(keys) if key is not None or scheme == "hybrid"}
        yield Plan(scheme, CHANNELS, key_type, hash=HashName.XXHASH64, explicit=explicit, replicas=100)
    explicit = {key: row % CHANNELS for row, key in enumerate(keys[::2])}
    yield Plan(Scheme.HYBRID, CHANNELS, key_type, explicit=explicit, base=Engine.SPARK)


def plans(key_type):
    return [plan for plan in every_plan(key_type) if SOAK or plan.scheme in FEW[key_type] or plan.base is Engine.SPARK]


def exported(plan, folder):
    export_plan(plan, Target.SPARK, folder, MADE)
    return folder


def rows_of(spark, key_type):
    return spark.createDataFrame([(key,) for key in keys_of(key_type)], f"`the key` {TYPES[key_type]}")


@pytest.mark.parametrize("key_type", COLUMN_TYPES)
def test_every_scheme_places_every_key_as_the_plan_says(spark, tmp_path, key_type):
    placed, made = rows_of(spark, key_type), plans(key_type)
    for number, plan in enumerate(made):  # one after the other, in a single query
        folder = exported(plan, tmp_path / f"plan [{number}]")
        placed = SparkPlan.load(spark, str(folder)).with_channel(placed, "the key", f"c{number}")
    columns = placed.toArrow()
    assert columns.column_names == ["the key", *(f"c{number}" for number in range(len(made)))]
    assert columns.num_rows == len(keys_of(key_type))
    keys = columns["the key"]
    for number, plan in enumerate(made):
        assert columns[f"c{number}"].to_pylist() == plan.partitioner().channels_of(keys).tolist(), plan
        assert columns.schema.field(f"c{number}").type == pa.int32()


TYPED = {"whole": "int", "day": "date", "money": "decimal(10,2)", "at": "timestamp", "yes": "boolean", "text": "string"}


@pytest.mark.parametrize(
    ("names", "key_type"),
    [
        (["whole"], "int32"),
        (["day"], "date"),
        (["at"], "timestamp"),
        (["text", "whole"], "(string,int32)"),
        (["money", "yes", "day"], "(decimal(10,2),boolean,date)"),
    ],
)
def test_a_plan_over_spark_places_columns_by_their_type(spark, tmp_path, names, key_type):
    """Also the pinned keys, which the plan has as text; others lie where Spark itself has them."""
    rows = spark.range(40).selectExpr(
        *("cast(id % 7 as int) whole", "date_add(date '2024-01-01', cast(id % 5 as int)) day"),
        *("cast((id % 6) / 100 as decimal(10,2)) money", "timestamp_micros(id % 9 * 1000003) at"),
        *("id % 2 = 0 yes", "if(id % 4 = 0, null, concat('u\"', id % 3)) text"),
    )
    assert dict(rows.dtypes) == TYPED
    key = F.expr(stored_key_sql(KeyType(key_type)).format(*names)).alias("key")
    stored = rows.select(key, F.pmod(F.hash(*names), F.lit(CHANNELS)).alias("hashed")).toArrow()
    pinned = {stored["key"][0].as_py(): 5, stored["key"][1].as_py(): 2}
    plan = Plan(Scheme.HYBRID, CHANNELS, KeyType(key_type), base=Engine.SPARK, explicit=pinned)
    loaded = SparkPlan.load(spark, str(exported(plan, tmp_path / "plan")))
    found = loaded.with_channel(rows, names).toArrow()["channel"].to_pylist()
    both = zip(stored["key"].to_pylist(), stored["hashed"].to_pylist(), strict=True)
    assert found == [pinned.get(key, hashed) for key, hashed in both]
    assert found == plan.partitioner().channels_of(stored["key"]).tolist()
    with pytest.raises(ValueError, match="cast it"):
        loaded.with_channel(rows.withColumn(names[0], F.lit(1.5)), names)


@pytest.fixture
def plan():
    return Plan(Scheme.HYBRID, CHANNELS, KeyType.STRING, hash=HashName.XXHASH64, explicit={"hot": 5, None: 2})


def per_partition(rows, counted):
    found = rows.groupBy(F.spark_partition_id().alias("partition")).agg(counted.alias("rows")).collect()
    return {row["partition"]: row["rows"] for row in found}


@pytest.mark.parametrize("adaptive", ["true", "false"] if SOAK else ["true"])
def test_placed_rows_lie_on_the_partitions_of_their_channels(spark, tmp_path, plan, adaptive):
    session = spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", adaptive)
    session.conf.set("spark.sql.ansi.enabled", "true")  # as Spark has it if nothing is said
    session.conf.set("spark.sql.shuffle.partitions", "3")  # of no account here
    rows = rows_of(session, KeyType.STRING)
    placed = SparkPlan.load(session, str(exported(plan, tmp_path / "one"))).place(rows, "the key")
    assert placed.where(F.col("channel") != F.spark_partition_id()).count() == 0
    counted = placed.groupBy("channel", "the key").count()
    assert counted._jdf.queryExecution().executedPlan().toString().count("Exchange REPARTITION_BY_NUM") <= 1
    assert counted.where(F.col("channel") != F.spark_partition_id()).count() == 0
    predicted = plan.partitioner().channels_of(pa.array(keys_of(KeyType.STRING))).tolist()
    assert per_partition(placed, F.count("*")) == {channel: predicted.count(channel) for channel in set(predicted)}


def test_rows_grouped_by_their_route_lie_on_the_partitions_of_their_channels(spark, tmp_path, plan):
    session = spark.newSession()
    loaded = SparkPlan.load(session, str(exported(plan, tmp_path / "one")))
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.shuffle.partitions", str(CHANNELS))
    loaded.check_shuffle(session)
    routed = loaded.with_route(rows_of(session, KeyType.STRING), "the key")
    predicted = plan.partitioner().channels_of(pa.array(keys_of(KeyType.STRING))).tolist()
    counted = routed.groupBy("route").count()
    assert per_partition(counted, F.sum("count")) == {channel: predicted.count(channel) for channel in set(predicted)}


def test_settings_that_would_undo_the_plan_are_named(spark, tmp_path, plan):
    session = spark.newSession()
    loaded = SparkPlan.load(session, str(exported(plan, tmp_path / "one")))
    session.conf.set("spark.sql.shuffle.partitions", "200")
    with pytest.raises(ValueError, match=r"shuffle\.partitions must be 6, the channels of the plan \(got 200\)"):
        loaded.check_shuffle(session)
    session.conf.set("spark.sql.shuffle.partitions", str(CHANNELS))
    session.conf.set("spark.sql.adaptive.enabled", "true")
    with pytest.raises(ValueError, match=r"adaptive\.enabled must be false"):
        loaded.check_shuffle(session)


def test_a_changed_export_is_refused_and_an_older_one_said_to_be_unsealed(spark, tmp_path, plan, caplog):
    folder = exported(plan, tmp_path / "one")
    file = folder / "routing.json"
    whole = file.read_text()
    file.write_text(whole.replace('"null_channel": 2', '"null_channel": 3'))
    with pytest.raises(ValueError, match=r"routing\.json was changed"):
        SparkPlan.load(spark, str(folder))
    older = json.loads(whole)
    del older["seal"]
    file.write_text(json.dumps(older))
    assert SparkPlan.load(spark, str(folder)).routing == older
    assert ["routing.json has no seal" in message for message in caplog.messages] == [True]


def test_columns_that_cannot_be_routed_are_named(spark, tmp_path, plan):
    loaded = SparkPlan.load(spark, str(exported(plan, tmp_path / "one")))
    rows = spark.createDataFrame([("a", 1)], "user string, channel int")
    for column, said in (
        ("usr", "column 'usr' does not exist; available: user, channel"),
        ("channel", "'channel' is int, but the plan"),
    ):
        with pytest.raises(ValueError, match=said):
            loaded.with_channel(rows, column, "c")
    with pytest.raises(ValueError, match="column 'channel' exists already"):
        loaded.place(rows, "user")


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (Plan(Scheme.HYBRID, 4, KeyType.STRING), "build it again with --engine consistent:hash=xxhash64"),
        (Plan(Scheme.JUMP, 4, KeyType.STRING, hash=HashName.XXHASH64), "scheme jump cannot run on Spark"),
        (Plan(Scheme.RENDEZVOUS, 4, KeyType.STRING, hash=HashName.XXHASH64), "--scheme hybrid --engine spark"),
        (Plan(Engine.KAFKA, 4, KeyType.STRING), "no expression for murmur2"),
        (Plan(Engine.FLINK, 4, KeyType.STRING), "hashCode"),
    ],
)
def test_what_spark_cannot_compute_is_refused_with_what_to_build(tmp_path, plan, said):
    with pytest.raises(BadInput, match=said):
        export_plan(plan, Target.SPARK, tmp_path / "one", MADE)
    assert list(tmp_path.iterdir()) == []
