"""Joins on Spark itself: the largest task, pasted remedies, adaptive execution, and the time of tasks."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adapt
from adapt.core.joins.adaptive import ADVISORY, BROADCAST, FACTOR, THRESHOLD, Adaptive, splits_of
from tests.tiers import soak

PARTITIONS = 16
OFF = {
    BROADCAST: "-1",
    "spark.sql.shuffle.partitions": str(PARTITIONS),
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}
"""Settings with which a join is shuffled, a partition a task."""


@dataclass(frozen=True)
class Pair:
    """Two inputs with columns k or a, b, and values."""

    name: str
    left: pa.Table
    right: pa.Table
    key: str
    right_key: str = ""


def zipf(seed, rows, keys, shape):
    """Keys by a power law."""
    weights = np.arange(1, keys + 1) ** -shape
    return np.random.default_rng(seed).choice(keys, rows, p=weights / weights.sum())


def table(**columns):
    rows = len(next(iter(columns.values())))
    return pa.table(columns).append_column("v" if "v" not in columns else "w", pa.array(np.arange(rows)))


def renamed(rows, **names):
    return rows.rename_columns([names.get(each, each) for each in rows.column_names])


def pairs():
    """Twelve joins: one hot key, several, both inputs, null keys, types, columns."""
    hot = np.where(np.arange(40_000) % 2 == 0, 7, zipf(1, 40_000, 5000, 0.4))
    text = np.array([f"user {at}" for at in range(6000)])
    unique = np.arange(5000)
    other = renamed(table(k=text[unique]), v="r")
    nulls = pa.array(text[hot], mask=np.arange(40_000) % 5 == 0)
    several = np.where(np.arange(40_000) % 3 > 0, np.arange(40_000) % 7, zipf(3, 40_000, 5000, 0.2))
    both = np.where(np.arange(1200) % 6 == 0, 7, zipf(4, 1200, 2000, 0.1))
    odd = np.array(["it's", 'a "b"', "c\\d", "${e}", "ü\n", "", "line\ttab"] + [f"x{at}" for at in range(1000)])
    days = pa.array(zipf(6, 40_000, 300, 0.9).astype("i4")).cast(pa.date32())
    every_day = pa.array(np.arange(300, dtype="i4")).cast(pa.date32())
    return [
        Pair("one hot key", table(k=text[hot]), other, "k"),
        Pair("bigint", table(k=hot), renamed(table(k=unique), v="r"), "k"),
        Pair("int and bigint", table(k=pa.array(hot, pa.int32())), renamed(table(k=unique), v="r"), "k"),
        Pair("int", table(k=pa.array(hot, pa.int32())), renamed(table(k=unique.astype("i4")), v="r"), "k"),
        Pair("null keys", table(k=nulls), other, "k"),
        Pair("several hot keys", table(k=text[several]), other, "k"),
        Pair("hot in both", table(k=text[hot[:2000]]), renamed(table(k=text[both]), v="r"), "k"),
        Pair("hot on the right", renamed(table(k=text[unique]), v="r"), table(k=text[hot]), "k"),
        Pair("other names", table(k=text[hot]), renamed(other, k="id"), "k", "id"),
        Pair(
            "two columns",
            table(a=text[hot], b=pa.array((hot % 3).astype("i4"))),
            renamed(table(a=text[unique], b=pa.array((unique % 3).astype("i4"))), v="r"),
            "a,b",
        ),
        Pair("odd texts", table(k=odd[zipf(5, 40_000, 1007, 1.1)]), renamed(table(k=odd), v="r"), "k"),
        Pair("dates", table(k=days), renamed(table(k=every_day), v="r"), "k"),
    ]


@pytest.fixture
def session(spark):
    """The session, with settings that are taken back."""
    names = (*OFF, THRESHOLD, ADVISORY, FACTOR, "spark.sql.adaptive.enabled")
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in OFF.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def read(session, pair, folder):
    """The inputs as frames of files, and as views."""
    frames = []
    for side in ("left", "right"):
        path = folder / f"{side}.parquet"
        pq.write_table(getattr(pair, side), path, row_group_size=5000)
        frames.append(session.read.parquet(str(path)))
        frames[-1].createOrReplaceTempView(f"{side}_rows")
    return frames


def ran(session, pyspark, frames):
    """A pasted remedy in Python."""
    names = {"spark": session, "left": frames[0], "right": frames[1]}
    exec(pyspark, names)
    return names["joined"]


def queried(session, sql):
    """A pasted remedy in SQL."""
    *settings, query = sql.strip().removesuffix(";").split(";\n")
    for each in settings:
        session.sql(each)
    return session.sql(query)


def rows_of(frame):
    return Counter(map(tuple, frame.collect()))


def tasks_of(session, frame):
    """Of the tasks of the stages of an action that read a shuffle: rows read, run time in ms; and time of all tasks."""
    sc = session.sparkContext
    store = sc._jsc.sc().statusStore()
    before = {int(each.stageId()) for each in stages(store)}
    frame.write.format("noop").mode("overwrite").save()
    sc._jsc.sc().listenerBus().waitUntilEmpty()
    found, total = [], 0
    for stage in stages(store):
        if int(stage.stageId()) in before:
            continue
        total += stage.executorRunTime()
        listed = store.taskList(stage.stageId(), stage.attemptId(), 100_000)
        for at in range(listed.size()):
            metrics = listed.apply(at).taskMetrics()
            if metrics.isDefined():
                told = metrics.get()
                found.append((told.shuffleReadMetrics().recordsRead(), told.executorRunTime()))
    return found, total


def stages(store):
    listed = store.stageList(None, False, False, _no_doubles(store), None)
    return [listed.apply(at) for at in range(listed.size())]


def _no_doubles(store: Any) -> Any:
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    return context._gateway.new_array(context._jvm.double, 0)


@soak
@pytest.mark.parametrize("pair", pairs(), ids=lambda each: each.name)
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_the_largest_task_and_all_pasted_remedies_are_as_foretold(session, tmp_path, pair, adaptive):
    frames = read(session, pair, tmp_path)
    session.conf.set("spark.sql.adaptive.enabled", adaptive)
    found = adapt.verdict(
        str(tmp_path / "left.parquet"),
        join_with=str(tmp_path / "right.parquet"),
        key=pair.key,
        right_key=pair.right_key or pair.key,
        channels=PARTITIONS,
        spark_conf=[f"{BROADCAST}=-1", f"spark.sql.adaptive.enabled={adaptive}"],
    )
    judged = found.judged
    plain = ran(session, judged.remedies[0].code.pyspark, frames)
    tasks, total = tasks_of(session, plain)
    assert max(rows for rows, _ in tasks) == pytest.approx(judged.tasks.rows.max(), rel=0.05)
    wanted = rows_of(plain)
    assert wanted.total() == judged.join.pairs.sum()
    left = rows_of(frames[0].join(frames[1], plain_on(pair), "left"))
    for remedy in judged.remedies:
        answer = left if remedy.way == "nulls" else wanted
        assert rows_of(ran(session, remedy.code.pyspark, frames)) == answer, remedy.words
        assert rows_of(queried(session, remedy.code.sql)) == answer, remedy.words
        for name, value in (OFF | {"spark.sql.adaptive.enabled": adaptive}).items():
            session.conf.set(name, value)
        for name in (THRESHOLD, ADVISORY, FACTOR):
            session.conf.unset(name)
    after, spent = tasks_of(session, ran(session, judged.best.code.pyspark, frames))
    longest = [max(time for _, time in each) for each in (tasks, after)]
    print(
        f"{pair.name}, adaptive {adaptive}: {judged.best.way}; largest {max(rows for rows, _ in tasks):,} rows,"
        f" then {max(rows for rows, _ in after):,}; longest task {longest[0]} ms, then {longest[1]};"
        f" all tasks {total} ms, then {spent}"
    )


def test_a_broadcast_join_of_one_small_file_is_spread_over_tasks(session, tmp_path):
    from pyspark.sql import functions as F

    rows = table(k=np.where(np.arange(4000) % 2 == 0, 7, np.arange(4000)))
    frames = read(session, Pair("small", rows, renamed(rows, v="r"), "k"), tmp_path)
    session.conf.unset(BROADCAST)
    found = adapt.verdict(
        str(tmp_path / "left.parquet"), join_with=str(tmp_path / "right.parquet"), key="k", channels=PARTITIONS
    )
    nothing, spread = found.judged.remedies
    assert found.judged.best.way == "spread"
    for remedy, tasks in ((nothing, 1), (spread, PARTITIONS)):
        for joined in (ran(session, remedy.code.pyspark, frames), queried(session, remedy.code.sql)):
            assert "BroadcastHashJoin" in joined._jdf.queryExecution().executedPlan().toString()
            pairs = [row[1] for row in joined.groupBy(F.spark_partition_id()).count().collect()]
            assert len(pairs) == tasks
            assert sum(pairs) == found.judged.join.pairs.sum()
            assert max(pairs) == pytest.approx(remedy.largest_pairs, rel=0.2)


def plain_on(pair):
    from pyspark.sql import functions as F

    return F.expr(f"{pair.key} = {pair.right_key}") if pair.right_key else pair.key.split(",")


@soak
@pytest.mark.parametrize(
    ("threshold", "advisory", "factor"), [(200, 100, 2), (100, 30, 3), (100, 300, 2), (9999, 64, 2), (1, 8, 1)]
)
def test_adaptive_execution_splits_as_its_rule_says(session, tmp_path, threshold, advisory, factor):
    """The rule on the sizes that Spark's own map tasks wrote: it splits the same partitions into as many parts."""
    frames = read(session, pairs()[0], tmp_path)
    conf = {THRESHOLD: f"{threshold}k", ADVISORY: f"{advisory}k", FACTOR: str(factor)}
    for name, value in (conf | {"spark.sql.adaptive.enabled": "true"}).items():
        session.conf.set(name, value)
    joined = frames[0].repartition(10).join(frames[1].repartition(10), "k")
    joined.collect()
    sizes, parts = left_input(joined._jdf.queryExecution().executedPlan().executedPlan())
    found = splits_of(sizes, 10, Adaptive.from_conf(conf))
    assert found.parts.tolist() == parts


def left_input(plan):
    """Of the first shuffle that a join reads, the bytes of each partition, and the tasks that read it."""
    if plan.nodeName() == "ResultQueryStage":
        return left_input(plan.plan())
    if plan.nodeName() in ("AQEShuffleRead", "ShuffleQueryStage"):
        stage = plan if plan.nodeName() == "ShuffleQueryStage" else plan.child()
        sizes = list(stage.mapStats().get().bytesByPartitionId())
        if stage is plan:
            return np.array(sizes, float), [1] * len(sizes)
        specs = [plan.partitionSpecs().apply(at) for at in range(plan.partitionSpecs().size())]
        cut = Counter(each.reducerIndex() for each in specs if "Partial" in each.getClass().getSimpleName())
        return np.array(sizes, float), [cut[at] or 1 for at in range(len(sizes))]
    return left_input(plan.children().apply(0))
