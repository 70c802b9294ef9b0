"""Pre-aggregation against a plain count, and against Spark's own partial aggregation."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from adapt.core.engines.names import Engine
from adapt.core.engines.registry import placement_of
from adapt.core.verdict.remedies import TwoPhase
from adapt.traces.counting.population import two_phase
from adapt.traces.store.trace import open_trace
from tests.traces.small_traces import write_trace


@pytest.mark.parametrize(("tasks", "bundle", "pane"), [(1, 7, 30), (3, 4, 100), (5, 1, 11), (2, 1000, 64), (4, 6, 600)])
def test_rows_before_and_after_are_those_of_a_plain_count(tasks, bundle, pane):
    chance, workers, rows = np.random.default_rng(tasks), 3, 577
    names = [None, *(f"k{at}" for at in range(40))]
    stream = [names[at] for at in np.minimum(chance.zipf(1.4, rows), 40)]
    worker = {name: at % workers for at, name in enumerate(names)}
    shape = (-(-rows // pane), workers)
    found = TwoPhase(tasks, bundle, pane, np.zeros(shape), np.zeros(shape))
    first = 0
    while first < rows:
        batch = stream[first : first + int(chance.integers(1, 90))]
        encoded = pa.array(batch, pa.string()).dictionary_encode(null_encoding="encode")
        keys = encoded.dictionary
        channels = np.array([worker[key] for key in keys.to_pylist()])
        at_random = keys.is_null().to_numpy(False)
        found.add(keys, encoded.indices.to_numpy().astype(np.int64), channels, at_random, first)
        first += len(batch)
    before, after, by_key = np.zeros(shape), np.zeros(shape), {}
    sent = set()
    for row, key in enumerate(stream):
        window, place = divmod(row, pane)
        owners = range(workers) if key is None else [worker[key]]
        is_new = (bundled := (window, place // (tasks * bundle), place % tasks, key)) not in sent
        sent.add(bundled)
        for owner in owners:
            before[window, owner] += 1 / len(owners)
            after[window, owner] += is_new / len(owners)
        held = by_key.setdefault(key, [0, 0])
        by_key[key] = [held[0] + 1, held[1] + is_new]
    np.testing.assert_allclose(found.before, before)
    np.testing.assert_allclose(found.after, after)
    data = found.as_data()
    assert [each["after"] for each in data["windows"]] == pytest.approx(after.sum(axis=1))
    hottest = sorted(by_key.values(), key=lambda each: -each[0])[:3]
    assert [[each["before"], each["after"]] for each in data["keys"][:3]] == hottest
    assert found.remedy(None).rows_sent == pytest.approx(after.sum() / rows)


def test_rows_after_are_those_that_local_spark_shuffles(tmp_path, spark):
    rows, workers = 900, 4
    ids = np.arange(rows)
    keys = pa.array([f"k{at * at % 61 % 23}" for at in ids.tolist()])
    write_trace(tmp_path / "x.trace", {"ts": ids * 1000, "key": keys})
    found = two_phase(open_trace(tmp_path / "x.trace"), placement_of(Engine.SPARK, workers), Engine.SPARK)
    key = F.concat(F.lit("k"), F.col("id") * F.col("id") % 61 % 23)
    frame = spark.range(0, rows, 1, workers).select(key.alias("key"))
    had = {name: spark.conf.get(name) for name in ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions")}
    try:
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        spark.conf.set("spark.sql.shuffle.partitions", str(workers))
        counted = frame.groupBy("key").count()
        by_reducer = counted.groupBy(F.spark_partition_id()).count()  # forces the shuffle by key, then another
        by_reducer.collect()
        plan, written = by_reducer._jdf.queryExecution().executedPlan(), []
        while plan is not None:
            if "Exchange" in plan.nodeName():
                written.append(plan.metrics().apply("shuffleRecordsWritten").value())
            plan = plan.children().apply(0) if plan.children().size() else None
    finally:
        for name, value in had.items():
            spark.conf.set(name, value)
    assert written[-1] == found.after.sum() == found.as_data()["windows"][0]["after"]
    assert found.before.sum() == rows
