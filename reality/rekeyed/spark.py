"""The three jobs on Spark, as a batch."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from adapt.core.costs.profile import CostSource
from adapt.core.engines.rekey.sql import SPARK, original, rekeyed
from adapt.traces.spark.session import SparkOptions, spark_session
from reality import service
from reality.engines.spark import SETTINGS, importable, slowest_s, worked
from reality.rekeyed.run import Run
from reality.rekeyed.workload import MERGE_S, WORKERS, Keys, Result, Skewed
from reality.rows import Processed, profile
from reality.scenarios import Engine

LOGGED = "numbers array<bigint>, workers array<int>, taken_s array<double>, done_s array<double>"
PARTIAL = f"rekeyed string, count bigint, total bigint, most bigint, {LOGGED}"
MERGED = f"key string, count bigint, total bigint, most bigint, {LOGGED}, messages int"


def aggregated(port: int) -> Callable[[Any, pd.DataFrame], pd.DataFrame]:
    """A function that works on the rows of a key, and aggregates them."""
    work = worked(port)

    def aggregate(key: Any, rows: pd.DataFrame) -> pd.DataFrame:
        done, value = work(rows), rows["value"]
        aggregates = {"count": len(rows), "total": int(value.sum()), "most": int(value.max())}
        logged = {"numbers": done["number"], "workers": done["worker"], "taken_s": done["taken_s"]}
        lists = {name: [each.tolist()] for name, each in {**logged, "done_s": done["done_s"]}.items()}
        return pd.DataFrame({"rekeyed": [key[0]], **aggregates, **lists})

    return aggregate


def merged(port: int) -> Callable[[Any, pd.DataFrame], pd.DataFrame]:
    """A function that merges partial results of a key; each waits for the service."""
    work = worked(port)

    def merge(key: Any, parts: pd.DataFrame) -> pd.DataFrame:
        work(pd.DataFrame({"number": range(len(parts)), "cost_s": MERGE_S, "due_s": 0.0, "sent_s": 0.0}))
        aggregates = {"count": parts["count"].sum(), "total": parts["total"].sum(), "most": parts["most"].max()}
        names = ("numbers", "workers", "taken_s", "done_s")
        lists = {name: [np.concatenate(parts[name].tolist()).tolist()] for name in names}
        return pd.DataFrame({"key": [key[0]], **aggregates, **lists, "messages": len(parts)})

    return merge


def missing() -> str:
    """Nothing: Spark is part of the product."""
    return ""


@contextmanager
def started(workload: Skewed, folder: Path) -> Iterator["Running"]:  # noqa: ARG001 - as of other engines
    """Start a session whose tasks are as many as the workers, and run a job to start Python's workers."""
    earlier = SparkSession.getActiveSession()
    if earlier is not None:
        earlier.stop()  # that of an ingest has as many tasks as the machine has cores
    with ExitStack() as stack:
        spark = spark_session(SparkOptions(f"local[{WORKERS}]"))
        stack.callback(spark.stop)
        assert spark.sparkContext.defaultParallelism == WORKERS
        found = Running(workload, spark, stack.enter_context(service.running()))
        found.run(Keys.SPLIT)
        yield found


@dataclass(frozen=True, slots=True)
class Running:
    """A session with a job of all rows."""

    workload: Skewed
    spark: SparkSession
    port: int

    def run(self, keys: Keys) -> Run:
        """Run one of the jobs."""
        for name, value in {**SETTINGS, "spark.sql.shuffle.partitions": str(WORKERS)}.items():
            if self.spark.conf.isModifiable(name):
                self.spark.conf.set(name, value)
        job = self._job(keys)
        began_s = time.monotonic()
        found: Any = job.toPandas()
        ended_s = time.monotonic()
        rows = _processed(found, began_s, ended_s)
        keyed = zip(found["key"], found["count"], found["total"], found["most"], strict=True)
        results = {(0, str(key)): Result(*map(int, aggregates)) for key, *aggregates in keyed}
        return Run(
            wall_s=ended_s - began_s,
            rows=np.bincount(rows.worker, minlength=WORKERS).tolist(),
            messages=int(found["messages"].sum()),
            results_are_right=len(results) == len(found) and results == self.workload.expected(Engine.SPARK),
            profile=profile(CostSource.SPARK, rows, self.workload.costs_s),
            batch_s=ended_s - began_s - slowest_s(rows),
        )

    def _job(self, keys: Keys) -> DataFrame:
        """The job with the expressions that adapt exports."""
        workload = self.workload
        columns = {"number": range(len(workload.keys)), "key": workload.keys, "value": workload.values}
        waits = {"cost_s": workload.costs_s, "due_s": 0.0, "sent_s": 0.0}
        rows = importable(self.spark).createDataFrame(pd.DataFrame({**columns, **waits}))
        table = None if keys is Keys.NATURAL else workload.table(Engine.SPARK, keys)
        by = "key" if table is None else rekeyed(table, SPARK, turn="number")
        parts = rows.withColumn("rekeyed", F.expr(by)).groupBy("rekeyed").applyInPandas(aggregated(self.port), PARTIAL)
        parts = parts.withColumn("key", F.expr("rekeyed" if table is None else original(table, SPARK)))
        if keys is not Keys.SPLIT:
            return parts.withColumn("messages", F.lit(0))
        return parts.groupBy("key").applyInPandas(merged(self.port), MERGED)


def _processed(found: pd.DataFrame, began_s: float, ended_s: float) -> Processed:
    """The rows in the order in which they were done."""
    number, worker, taken_s, done_s = (
        np.concatenate(found[name].tolist()) for name in ("numbers", "workers", "taken_s", "done_s")
    )
    order = np.argsort(done_s, kind="stable")
    began, ended = np.full(len(order), began_s), np.full(len(order), ended_s)
    return Processed(number[order], worker[order], began, taken_s[order], taken_s[order], done_s[order], ended)
