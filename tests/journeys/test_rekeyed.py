"""The engines themselves place replacement keys where the plan says, and leave every other key where it was.

100,000 keys, 1,000 of them pinned and 20 split: Spark's own shuffle, Flink's own class and a running job, and real
producers through a broker.
"""

import csv
import os
import subprocess
from pathlib import Path

import confluent_kafka
import numpy as np
import pyarrow as pa
import pytest

from adapt.core.engines.names import Engine
from adapt.core.engines.rekey.build import rekey_table
from adapt.core.engines.rekey.export import rekey_bundle
from adapt.core.engines.rekey.sql import (
    FLINK,
    SPARK,
    joined,
    merging_query,
    merging_top,
    original,
    partial_query,
    partial_top,
    rekeyed,
)
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType
from tests.core.engines.rekey.references import CHANNELS_OF, keys_of, plan_of
from tests.kafka_broker import create_topic
from tests.tiers import soak

HERE = Path(__file__).parent
KEYS, PINNED, SPLIT = 100_000, 1_000, 20
SHAPES = ((2, 128), (3, 60), (16, 128), (128, 128), (10, 32_768), (1_000, 32_768))
"""Parallelisms and max parallelisms of Flink."""

pytestmark = soak


STREAM = [f"clé-{at}-日本" if at % 10 == 0 else f"user-{at:06}" for at in range(KEYS)]
"""Distinct keys: most ASCII, some of every width."""


def a_plan(engine, channels, groups=None):
    """1,000 keys pinned at random, 20 split over up to 8 channels."""
    chance = np.random.default_rng(channels)
    hot = [STREAM[at] for at in chance.permutation(KEYS)[: PINNED + SPLIT]]
    splits = {key: tuple(chance.permutation(channels)[: min(8, channels)].tolist()) for key in hot[:SPLIT]}
    pins = {key: int(chance.integers(channels)) for key in hot[SPLIT:]}
    return Plan(
        *(Scheme.HYBRID, channels, KeyType.STRING),
        base=engine,
        explicit=pins,
        splits=splits,
        max_parallelism=groups,
    )


def check(plan, table, natural, placed):
    """Every pair of a key and what it was sent as is where the plan says.

    `natural` is the channel of each key in order as it was; `placed` maps each key as sent to its channel.
    """
    new = table.as_mapping()
    assert len(plan.explicit) == PINNED
    assert len(plan.splits) == SPLIT
    for key, was in zip(STREAM, natural, strict=True):
        found = sorted(placed[each] for each in new.get(key, (key,)))
        if key in plan.splits:
            assert found == sorted(plan.splits[key]), key
        else:
            assert found == [plan.explicit.get(key, was)], key


def test_spark_s_shuffle_places_every_key(spark):
    from pyspark.sql import functions as F

    plan = a_plan(Engine.SPARK, 200)
    table = rekey_table(plan, keys=[pa.array(STREAM)])
    keys = [(at, key) for at, key in enumerate(STREAM)]
    spark.createDataFrame(keys, "row bigint, key string").createOrReplaceTempView("keys")
    spark.sql(
        "SELECT row, key, turn FROM keys CROSS JOIN (SELECT explode(sequence(0, 7)) AS turn)"
    ).createOrReplaceTempView("stream")
    rows = list(csv.DictReader(table.to_csv().splitlines()))
    spark.createDataFrame(rows).selectExpr(
        "key", "replacement", "CAST(turn AS INT) AS turn", "CAST(turns AS INT) AS turns"
    ).createOrReplaceTempView("rekey")

    def shuffled(frame, by):
        return frame.repartition(200, by).select("row", by, F.spark_partition_id().alias("channel")).toArrow()

    natural = np.full(KEYS, -1)
    was = shuffled(spark.table("keys"), "key")
    natural[was["row"].to_numpy()] = was["channel"].to_numpy()
    sent = spark.sql(f"SELECT row, rekeyed FROM ({joined('turn')})")
    found = shuffled(sent, "rekeyed")
    assert found.num_rows == 8 * KEYS
    check(
        plan,
        table,
        natural.tolist(),
        dict(zip(found["rekeyed"].to_pylist(), found["channel"].to_pylist(), strict=True)),
    )
    back = spark.sql(f"SELECT count(*) AS wrong FROM ({joined('turn')}) WHERE key <> {original(table, SPARK)}")
    assert back.first()["wrong"] == 0
    hot = spark.sql(
        f"SELECT key, turn, {rekeyed(table, SPARK, turn='turn')} AS new FROM stream WHERE row % 97 = 0"
    ).toArrow()
    for key, turn, new in zip(*(hot[name].to_pylist() for name in ("key", "turn", "new")), strict=True):
        wanted = table.as_mapping().get(key, (key,))
        assert new == wanted[turn % len(wanted)]


def test_spark_merges_partial_results_to_those_of_whole_keys(spark):
    chance = np.random.default_rng(7)
    plan = a_plan(Engine.SPARK, 200)
    table = rekey_table(plan, keys=[pa.array(STREAM)])
    hot = [*plan.splits, *list(plan.explicit)[:100], *STREAM[:50]]
    drawn, values = chance.integers(len(hot), size=20_000).tolist(), chance.integers(500, size=20_000).tolist()
    rows = [(hot[at], x) for at, x in zip(drawn, values, strict=True)]
    spark.createDataFrame(rows, "key string, x bigint").createOrReplaceTempView("stream")
    for turn in SPARK.turns.values():
        by = rekeyed(table, SPARK, turn=turn.replace("second", "x"))
        spark.sql(f"SELECT *, {by} AS rekeyed FROM stream").localCheckpoint().createOrReplaceTempView("rekeyed_stream")
        spark.sql(partial_query(SPARK)).createOrReplaceTempView("partials")
        spark.sql(partial_top(3)).createOrReplaceTempView("top_partials")
        merged = spark.sql(f"{merging_query(table, SPARK)} ORDER BY key").collect()
        exact = "SELECT key, COUNT(*), SUM(x), MIN(x), MAX(x), AVG(x), COUNT(DISTINCT x) FROM stream"
        whole = spark.sql(f"{exact} GROUP BY key ORDER BY key").collect()
        assert [row[:5] for row in merged] == [row[:5] for row in whole]
        assert [float(row[5]) for row in merged] == pytest.approx([row[5] for row in whole])
        assert [row[6] for row in merged] == pytest.approx([row[6] for row in whole], rel=0.1)
        assert spark.sql("SELECT * FROM partials").count() > len(whole)
        top = spark.sql(f"{merging_top(table, SPARK, 3)} ORDER BY key, x").collect()
        ranked = "SELECT key, x, ROW_NUMBER() OVER (PARTITION BY key ORDER BY x DESC) AS place FROM stream"
        assert top == spark.sql(f"SELECT key, x FROM ({ranked}) WHERE place <= 3 ORDER BY key, x").collect()


def compiled(folder, classpath, *sources):
    """Java sources compiled into a folder."""
    subprocess.run(["javac", "-cp", f"{folder}:{classpath}", "-d", folder, *sources], check=True, capture_output=True)


def java(folder, classpath, *arguments):
    """What a Java program prints."""
    line = ["java", "-Xmx2g", "-cp", f"{folder}:{classpath}", *map(str, arguments)]
    ran = subprocess.run(line, capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout.splitlines()


def test_flink_s_class_places_every_key(flink_jar, tmp_path):
    compiled(tmp_path, flink_jar, HERE / "Subtasks.java")
    plans = [a_plan(Engine.FLINK, *shape) for shape in SHAPES]
    tables = [rekey_table(plan, keys=[pa.array(STREAM)]) for plan in plans]
    sent = [[*STREAM, *table.replacements.to_pylist()] for table in tables]
    asked = []
    for at, (shape, keys) in enumerate(zip(SHAPES, sent, strict=True)):
        (tmp_path / f"keys{at}").write_text("".join(f"{key}\n" for key in keys))
        asked += [tmp_path / f"keys{at}", *shape]
    said = iter(map(int, java(tmp_path, flink_jar, "Subtasks", *asked)))
    for plan, table, keys in zip(plans, tables, sent, strict=True):
        subtasks = [next(said) for _ in keys]
        check(plan, table, subtasks[:KEYS], dict(zip(keys, subtasks, strict=True)))


@pytest.mark.parametrize(("parallelism", "groups"), [(4, 128), (3, 60)])
def test_a_running_flink_job_places_every_key(flink_jar, tmp_path, parallelism, groups):
    plan = a_plan(Engine.FLINK, parallelism, groups)
    table = rekey_table(plan, keys=[pa.array(STREAM)])
    (tmp_path / "Rekey.java").write_bytes(rekey_bundle(table).files["Rekey.java"].content)
    (tmp_path / "keys").write_text("".join(f"{key}\n" for key in STREAM))
    compiled(tmp_path, flink_jar, tmp_path / "Rekey.java", HERE / "CountRekeyed.java")

    def placed(times, how):
        rows = [
            line.partition("> ")[2].split(",")
            for line in java(tmp_path, flink_jar, "CountRekeyed", tmp_path / "keys", times, parallelism, groups, how)
            if "> " in line
        ]
        assert len(rows) == times * KEYS
        found = {}
        for subtask, key, _ in rows:
            assert found.setdefault(key, int(subtask)) == int(subtask)
        return found, rows

    natural, _ = placed(1, "natural")
    after, rows = placed(4, "rekeyed")
    check(plan, table, [natural[key] for key in STREAM], after)
    last = {key: int(count) for _, key, count in rows if int(count) == 4}
    assert len(last) == KEYS - SPLIT + sum(len(table.as_mapping()[key]) == 1 for key in plan.splits)


def by_sql(table_path, folder, keys, shape, sql, *mode):
    """The fields of each result of a job of SQL over a stream of keys, with its subtask first."""
    (folder / "keys").write_text("".join(f"{key}\n" for key in keys))
    (folder / "job.sql").write_text(sql)
    if not (folder / "GroupSql.class").exists():
        compiled(folder, table_path, HERE / "GroupSql.java")
    said = java(folder, table_path, "GroupSql", folder / "keys", *shape, folder / "job.sql", *mode)
    found = (line.rpartition("> ")[2] for line in said)  # without the number of the printing task, if it has one
    return [line.split(",") for line in found if line]


@pytest.mark.parametrize(("parallelism", "groups"), [(4, 128), (3, 60)])
def test_a_running_sql_job_places_every_key(table_path, tmp_path, parallelism, groups):
    plan = a_plan(Engine.FLINK_SQL, parallelism, groups)
    table = rekey_table(plan, keys=[pa.array(STREAM)])
    sent = [*STREAM, *table.replacements.to_pylist()]
    query = "SELECT key, COUNT(*) AS n FROM `stream` GROUP BY key"
    rows = by_sql(table_path, tmp_path, sent, (parallelism, groups), query)
    placed = {key: int(subtask) for subtask, key, _ in rows}
    check(plan, table, [placed[key] for key in STREAM], placed)
    assert max(int(count) for *_, count in rows) == 2  # a split key that is one of its own replacements


@pytest.mark.parametrize("key_type", [KeyType.STRING, KeyType.INT64])
def test_flink_sql_merges_partial_results_to_those_of_whole_keys(table_path, tmp_path, key_type):
    made = plan_of(Engine.FLINK_SQL, key_type, 4, 60, 3, 128)
    table, place = rekey_table(made), CHANNELS_OF[Engine.FLINK_SQL]
    chance = np.random.default_rng(5)
    keys = [*keys_of(key_type, 80), *list(made.splits) * 20]
    stream = [keys[at] for at in chance.integers(len(keys), size=4000)]
    comment = "-- numbers\n" if key_type is KeyType.INT64 else ""
    values = {key: [row % 50 for row, each in enumerate(stream) if each == key] for key in {*stream}}
    for turn in FLINK.turns.values():
        by = rekeyed(table, FLINK, turn=turn.replace("second", "x"))
        views = f"CREATE TEMPORARY VIEW rekeyed_stream AS SELECT *, {by} AS rekeyed FROM `stream`;\n"
        partial = f"{comment}{views}SELECT rekeyed, COUNT(*) AS n FROM rekeyed_stream GROUP BY rekeyed"
        parts = by_sql(table_path, tmp_path, stream, (4, 128), partial)
        typed = str if key_type is KeyType.STRING else int
        assert all(int(subtask) == place(typed(key), 4, 128) for subtask, key, _ in parts)
        assert {typed(key) for _, key, _ in parts} >= {*table.replacements.to_pylist()}
        views += f"CREATE TEMPORARY VIEW partials AS {partial_query(FLINK)};\n"
        merged = by_sql(table_path, tmp_path, stream, (4, 128), f"{comment}{views}{merging_query(table, FLINK)}")
        last = {typed(key): (int(rows), int(least), int(most)) for _, key, rows, _, least, most, *_ in merged}
        assert last == {key: (len(each), min(each), max(each)) for key, each in values.items()}
        if turn != FLINK.turns["at random"]:
            distinct = {typed(fields[1]): int(fields[-1]) for fields in merged}
            assert distinct == {key: len({*each}) for key, each in values.items()}


def test_flink_sql_joins_and_ranks_as_exported(table_path, tmp_path):
    made = plan_of(Engine.FLINK_SQL, KeyType.STRING, 4, 60, 3, 128)
    table, keys = rekey_table(made), keys_of(KeyType.STRING, 80)
    stream = [keys[at] for at in np.random.default_rng(6).integers(len(keys), size=2000)]
    rows = ", ".join(
        f"({FLINK.literal(row['key'])}, {FLINK.literal(row['replacement'])}, {row['turn']}, {row['turns']})"
        for row in csv.DictReader(table.to_csv().splitlines())
    )
    views = f"CREATE TEMPORARY VIEW rekey AS SELECT * FROM (VALUES {rows}) AS r (key, replacement, turn, turns);\n"
    shape, new = (4, 128), table.as_mapping()
    found = by_sql(table_path, tmp_path, stream, shape, f"{views}SELECT * FROM ({joined('x', FLINK)})", "batch")
    wanted = [(key, str(row % 50), new.get(key, (key,))) for row, key in enumerate(stream)]
    assert sorted((key, x, last) for _, key, x, *_, last in found) == sorted(
        (key, x, each[int(x) % len(each)]) for key, x, each in wanted
    )
    by = rekeyed(table, FLINK, turn="x")
    views = f"CREATE TEMPORARY VIEW rekeyed_stream AS SELECT *, {by} AS rekeyed FROM `stream`;\n"
    views += f"CREATE TEMPORARY VIEW top_partials AS {partial_top(3)};\n"
    found = by_sql(table_path, tmp_path, stream, shape, views + merging_top(table, FLINK, 3), "batch")
    values = {key: sorted(row % 50 for row, each in enumerate(stream) if each == key)[-3:] for key in {*stream}}
    assert sorted((key, int(x)) for _, key, x in found) == sorted((key, x) for key in values for x in values[key])


PARTITIONS = 12


def by_java(broker, topic, keys, folder):
    """Java's client, with its default partitioner."""
    jar = os.environ.get("ADAPT_KAFKA_JAR")
    if jar is None:
        pytest.skip("Java's client is not there; set ADAPT_KAFKA_JAR to kafka-clients.jar")
    import pyspark

    logging = sorted((Path(pyspark.__path__[0]) / "jars").glob("slf4j-api-*.jar"))[0]
    (folder / "keys").write_text("".join(f"{key.encode().hex()}\n" for key in keys))
    compiled(folder, jar, HERE.parent / "core" / "engines" / "Produce.java")
    java(folder, f"{jar}:{logging}", "Produce", broker, topic, folder / "keys")


def by_librdkafka(broker, topic, keys, folder):
    """librdkafka, with its default partitioner."""
    del folder
    sender = confluent_kafka.Producer({"bootstrap.servers": broker, "queue.buffering.max.messages": 1_000_000})
    for row, key in enumerate(keys):
        sender.produce(topic, key=key.encode(), value=str(row))
        if row % 1000 == 0:
            sender.poll(0)
    assert sender.flush(60) == 0


@pytest.mark.parametrize(("engine", "send"), [(Engine.KAFKA, by_java), (Engine.LIBRDKAFKA, by_librdkafka)])
def test_a_producer_sends_every_key_to_its_partition(broker, tmp_path, engine, send):
    plan = a_plan(engine, PARTITIONS)
    table = rekey_table(plan, keys=[pa.array(STREAM)])
    sent = [*STREAM, *table.replacements.to_pylist()]
    topic = f"rekeyed-{engine.family}"
    create_topic(broker, topic, PARTITIONS)
    send(broker, topic, sent, tmp_path)
    found = partitions_read(broker, topic, len(sent))
    check(plan, table, found[:KEYS], dict(zip(sent, found, strict=True)))


def partitions_read(broker, topic, records):
    """The partition of each record, by the number that is its value."""
    reader = confluent_kafka.Consumer({"bootstrap.servers": broker, "group.id": "none", "enable.auto.commit": False})
    reader.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found, read = [-1] * records, 0
    while read < records:
        got = reader.consume(5000, 30)
        assert got, f"{read} records of {records} arrived"
        for record in got:
            assert record.error() is None
            found[int(record.value())] = record.partition()
        read += len(got)
    reader.close()
    return found
