"""Spark as an engine: a batch job, and a stateful query of Structured Streaming."""

import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupState

import adapt
from adapt.core.costs.profile import CostSource
from adapt.traces.spark.session import SparkOptions, is_running, spark_session
from reality import service
from reality.engines.spark_source import WARMING, TraceSource
from reality.predictions import BATCH_ROWS
from reality.rows import Processed, latencies, profile, rows_per_worker, throughput
from reality.scenarios import Engine, Kind, Placement, Scenario
from reality.workload import WORKERS, Workload


def importable(spark: SparkSession) -> SparkSession:
    """The session, whose tasks import this package; they search no current folder."""
    spark.sparkContext.environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    return spark


PROCESSED = "number bigint, worker int, due_s double, sent_s double, taken_s double, done_s double"
SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # it would merge the small partitions
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.ui.enabled": "false",
}


@contextmanager
def _session(folder: Path) -> Iterator[tuple[SparkSession, int]]:
    """A session whose tasks are as many as the workers, and the port of the service."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        if is_running():  # the workload was made on it, with a task for each core
            spark_session().stop()
        spark = spark_session(SparkOptions(f"local[{WORKERS}]"))
        stack.callback(spark.stop)
        for name, value in SETTINGS.items():
            if spark.conf.isModifiable(name):
                spark.conf.set(name, value)
        spark.conf.set("spark.sql.shuffle.partitions", str(WORKERS))
        yield spark, stack.enter_context(service.running())


def worked(port: int) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """A function that waits for the service for the cost of each row."""

    def work(rows: pd.DataFrame) -> pd.DataFrame:
        worker = TaskContext.get().partitionId()  # type: ignore[union-attr]
        taken_s, done_s = [], []
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for cost_s in rows["cost_s"]:
                taken_s.append(time.monotonic())
                connection.sendall(service.REQUEST.pack(cost_s))
                if not connection.recv(1):
                    raise OSError("the service has ended")
                done_s.append(time.monotonic())
        return pd.DataFrame(
            {
                "number": rows["number"],
                "worker": worker,
                "due_s": rows["due_s"],
                "sent_s": rows["sent_s"],
                "taken_s": taken_s,
                "done_s": done_s,
            }
        )

    return work


def _records(frame: pd.DataFrame) -> Any:
    """Rows as records; shown when they are done, until a batch says when."""
    frame = frame.assign(shown_s=frame.get("shown_s", frame["done_s"]))
    return frame[list(Processed.__slots__)].to_records(index=False)


def _costs(rows: Processed, costs_s: Any, batches: list[tuple[float, float, float]]) -> dict[str, Any]:
    """Costs of rows, and what a batch takes beyond its slowest task, in which rows are on their way.

    Args:
        batches: Start, end and time of the slowest task of each.
    """
    overhead_s = [end_s - start_s - slowest for start_s, end_s, slowest in batches]
    there = replace(rows, sent_s=rows.taken_s)
    return {"profile": profile(CostSource.SPARK, there, costs_s), "batch_s": float(np.mean(overhead_s))}


def slowest_s(rows: Processed) -> float:
    """Time for which the busiest worker did work of rows."""
    return float(np.bincount(rows.worker, rows.done_s - rows.taken_s).max())


class SparkBatch:
    """A batch job, in the session that the product starts."""

    def missing(self) -> str:
        """Nothing: Spark is part of the product."""
        return ""

    @contextmanager
    def started(self, workload: Workload, folder: Path) -> Iterator["RunningBatch"]:
        """Start a session, and run a job to start Python's workers."""
        with _session(folder) as (spark, port):
            started = RunningBatch(workload, spark, port)
            started.run(Scenario(Engine.SPARK, Kind.BATCH, Placement.PLAN), 0)
            yield started


@dataclass(frozen=True, slots=True)
class RunningBatch:
    """A session with a job of all rows."""

    workload: Workload
    spark: SparkSession
    port: int

    def run(self, scenario: Scenario, rate: float) -> dict[str, Any]:  # noqa: ARG002
        """Group all rows, and work on them."""
        workload = self.workload
        importable(self.spark).conf.set("spark.sql.shuffle.partitions", str(scenario.workers))
        numbers = np.arange(len(workload.keys))
        columns = {"number": numbers, "key": workload.keys, "cost_s": workload.costs_s, "due_s": 0.0, "sent_s": 0.0}
        rows: DataFrame = self.spark.createDataFrame(pd.DataFrame(columns))
        grouped = "key"
        if scenario.placement is Placement.PLAN:
            plan = adapt.SparkPlan.load(self.spark, str(workload.export("spark", scenario.workers)))
            rows, grouped = plan.with_route(rows, "key"), "route"
        job = rows.groupBy(grouped).applyInPandas(worked(self.port), PROCESSED)
        began_s = time.monotonic()
        found: Any = job.toPandas()
        ended_s = time.monotonic()
        processed = Processed.of(_records(found.assign(shown_s=ended_s, due_s=began_s)))
        assert np.array_equal(np.sort(processed.number), numbers), "not every row was processed once"
        metrics = rows_per_worker(processed.worker, scenario.workers) | throughput(processed)
        batches = [(began_s, ended_s, slowest_s(processed))]
        return {"metrics": metrics, "costs": _costs(processed, workload.costs_s, batches)}


class SparkStreaming:
    """A stateful query, in the session that the product starts."""

    def missing(self) -> str:
        """Nothing: Spark is part of the product."""
        return ""

    @contextmanager
    def started(self, workload: Workload, folder: Path) -> Iterator["RunningQuery"]:
        """Start a session; the first batch of each query starts Python's workers."""
        with _session(folder) as (spark, port):
            spark.dataSource.register(TraceSource)
            yield RunningQuery(workload, folder, spark, port, count(time.time_ns()))


@dataclass(frozen=True, slots=True)
class RunningQuery:
    """A session with a query of a trace."""

    workload: Workload
    folder: Path
    spark: SparkSession
    port: int
    numbers: Iterator[int]

    def run(self, scenario: Scenario, rate: float) -> dict[str, Any]:
        """Run a query until all rows are processed."""
        out = self.folder / f"query-{next(self.numbers)}"
        workload, speedup = self.workload, self.workload.speedup(rate) if rate else 0.0
        most = BATCH_ROWS if scenario.kind is Kind.SATURATED else len(workload.keys)
        reader = importable(self.spark).readStream.format("adapt-trace").option("path", self._file())
        rows = reader.option("speedup", repr(speedup)).option("most", most).load()
        grouped = "route" if scenario.placement is Placement.PLAN else "key"
        work = worked(self.port)

        def count_rows(_key: Any, frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
            (before,) = state.get if state.exists else (0,)
            for frame in frames:
                before += len(frame)
                yield work(frame)
            state.update((before,))

        processed = rows.groupBy(grouped).applyInPandasWithState(
            count_rows, PROCESSED, "rows bigint", "append", "NoTimeout"
        )
        batches: list[tuple[pd.DataFrame, float]] = []

        def show(batch: DataFrame, _number: int) -> None:
            found = batch.toPandas()
            batches.append((found, time.monotonic()))

        query = processed.writeStream.foreachBatch(show).option("checkpointLocation", str(out)).start()
        try:
            while sum(len(batch) for batch, _ in batches[1:]) < len(workload.keys):
                if query.awaitTermination(1):
                    raise RuntimeError(f"the query ended: {query.exception()}")
        finally:
            query.stop()
        return self._measured(scenario, batches)

    def _measured(self, scenario: Scenario, batches: list[tuple[pd.DataFrame, float]]) -> dict[str, Any]:
        """Metrics of all batches but the first, which only warmed up."""
        frames = [batch.assign(shown_s=ended_s) for batch, ended_s in batches]
        every = pd.concat([frame[frame["number"] != WARMING] for frame in frames], ignore_index=True)
        rows = Processed.of(_records(every))
        assert np.array_equal(np.sort(rows.number), np.arange(len(self.workload.keys))), (
            "not every row was processed once"
        )
        metrics = rows_per_worker(rows.worker, scenario.workers)
        metrics |= throughput(rows) if scenario.kind is Kind.SATURATED else latencies(rows)
        timed = [
            (float(frame["sent_s"].min()), ended_s, slowest_s(Processed.of(_records(frame))))
            for frame, (_, ended_s) in zip(frames, batches, strict=True)
            if len(frame) and frame["number"].iloc[0] != WARMING
        ]
        starts = [ended_s for _, ended_s, _ in timed[:-1]]  # a batch begins when the one before has ended
        timed = [(start_s, ended_s, slowest) for start_s, (_, ended_s, slowest) in zip(starts, timed[1:], strict=True)]
        return {"metrics": metrics, "costs": _costs(rows, self.workload.costs_s, timed) | {"batches": len(frames) - 1}}

    def _file(self) -> str:
        """The rows for the source, with the route of the plan."""
        file = self.folder / "rows.tsv"
        if not file.exists():
            workload = self.workload
            plan = adapt.SparkPlan.load(self.spark, str(workload.export("spark")))
            keys = self.spark.createDataFrame([(key,) for key in sorted(set(workload.keys))], "key string")
            route = {one["key"]: one["route"] for one in plan.with_route(keys, "key").collect()}
            rows = zip(workload.arrivals_s, workload.costs_s, workload.keys, strict=True)
            file.write_text("".join(f"{at:.6f}\t{cost:.9f}\t{route[key]}\t{key}\n" for at, cost, key in rows))
        return str(file)
