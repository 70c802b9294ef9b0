"""What `adapt verdict EVENTLOG` foretells that even tasks win, against runs of the pasted remedies on local Spark.

In one session, a skewed join and a skewed aggregation run plain and with the code that the verdict on their event log
prints, five times in turn. Foretold is the median of the plain runs' verdicts; won is the median of the differences of
task time, which is the time in which any task ran. The remedy's includes its search for hot keys. The same follows in
CPU time, which other work on the machine hardly changes: each stage takes as long as its tasks on two slots.

Run: python benchmarks/spark_stages.py FOLDER [JOB ...]
"""

import json
import sys
from collections.abc import Callable, Iterator
from heapq import heapreplace
from math import ceil
from pathlib import Path
from statistics import fmean, median
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from adapt.core.spark_stages.answer import StagesAnswer
from adapt.traces.units.spark_tasks import read_tasks

ROWS, KEYS, MATCHES, RUNS, SLOTS, MORE = 2_000_000, 1_000, 8, 5, 2, 4
Span: TypeAlias = tuple[int, int]
"""First and last byte of a part of a log."""

CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
}


def inputs(spark: SparkSession) -> dict[str, DataFrame]:
    """Two inputs of a join; nine of ten rows of the left have one key."""
    key, number = F.col("id") % KEYS, F.col("id")
    left = spark.range(0, ROWS, 1, 6).select(F.when(number % 10 < 9, F.lit(7)).otherwise(key).alias("k"), number)
    right = spark.range(0, KEYS * MATCHES, 1, 2).select(key.alias("k"), number.alias("w"))
    left = left.withColumnRenamed("id", "v")
    rows = left.sparkSession.range(0, MORE * ROWS, 1, 6).select(
        F.when(number % 10 < 9, F.lit(7)).otherwise(key).alias("k"), number.alias("v")
    )
    return {"left": left, "right": right, "rows": rows, "df": rows.withColumn("_input3", F.sha2(_work("v"), 512))}


def _work(*columns: str) -> Any:
    return F.sha2(F.concat_ws("-", *columns), 512)


def joined(result: DataFrame) -> list[Any]:
    """The sum of some work on each pair."""
    return result.select(F.sum(F.crc32(F.sha2(_work("v", "w"), 512)))).collect()


def aggregated(result: DataFrame) -> list[Any]:
    """The rows of a result in order."""
    return sorted(tuple(row) for row in result.collect())


def plain_aggregation(frames: dict[str, DataFrame]) -> DataFrame:
    """An aggregation after its rows were shuffled by key."""
    return frames["rows"].repartition(8, "k").groupBy("k").agg(F.count("*"), F.sum("v"), F.max(F.sha2(_work("v"), 512)))


JOBS: dict[str, tuple[Callable[[dict[str, DataFrame]], DataFrame], Callable[[DataFrame], list[Any]]]] = {
    "join": (lambda frames: frames["left"].join(frames["right"], ["k"]), joined),
    "aggregation": (plain_aggregation, aggregated),
}


def run(folder: Path, adaptive: str, chosen: list[str]) -> None:
    """Some jobs with adaptive execution on or off."""
    folder.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder.master(f"local[{SLOTS}]").config("spark.sql.adaptive.enabled", adaptive)
    for name, value in {**CONF, "spark.eventLog.dir": folder.absolute().as_uri()}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    log = folder / spark.sparkContext.applicationId
    live = log.with_name(f"{log.name}.inprogress")
    frames, marks, codes = inputs(spark), [], {}

    def timed(name: str, what: Callable[[], list[Any]]) -> list[Any]:
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        start = live.stat().st_size
        rows = what()
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        marks.append((name, start, live.stat().st_size))
        return rows

    jobs = {job: of for job, of in JOBS.items() if job in chosen}
    for job, (plain, finish) in jobs.items():
        for turn in range(RUNS + 1):  # the first compiles
            rows = timed(f"{job} plain {turn}", lambda: finish(plain(frames)))  # noqa: B023 - called at once
            if not turn:
                codes[job] = verdict(live, *marks[-1][1:], folder)[1]
                print(codes[job], flush=True)
            there = timed(f"{job} remedy {turn}", lambda: finish(remedied(codes[job], frames, spark)))  # noqa: B023
            if rows != there:
                raise SystemExit(f"{job}: the remedy's rows are not the plain ones")
    found = {name: verdict(live, start, end, folder)[0] for name, start, end in marks}
    spark.stop()
    for job in jobs:
        turns = range(1, RUNS + 1)
        pairs = [(found[f"{job} plain {turn}"], found[f"{job} remedy {turn}"]) for turn in turns]
        foretold = [before.stages[0].won_s for before, _ in pairs]
        won = [before.task_s - after.task_s for before, after in pairs]
        print(f"adaptive={adaptive} {job}: foretold {median(foretold):.2f} s, won {median(won):.2f} s", end="; ")
        print(f"ratio {median(foretold) / median(won):.3f}; of {median(b.task_s for b, _ in pairs):.2f} s", end="; ")
        print(f"each {[round(a / b, 2) for a, b in zip(foretold, won, strict=True)]}", flush=True)
        spent = [[cpu_s(log, span) for span in spans] for spans in _spans(marks, job)]
        foretold, won = [before[1] for before, _ in spent], [before[0] - after[0] for before, after in spent]
        print(f"  in CPU time: foretold {median(foretold):.2f} s, won {median(won):.2f} s", end="; ")
        print(f"ratio {median(foretold) / median(won):.3f}; of {median(b[0] for b, _ in spent):.2f} s", flush=True)


def _spans(marks: list[tuple[str, int, int]], job: str) -> list[tuple[Span, Span]]:
    """Parts of the log of each plain run and its remedy."""
    of = {name: (start, end) for name, start, end in marks}
    return [(of[f"{job} plain {turn}"], of[f"{job} remedy {turn}"]) for turn in range(1, RUNS + 1)]


def cpu_s(log: Path, span: Span) -> tuple[float, float]:
    """CPU seconds that the stages of a part of a log take on the slots, and what even tasks of one win at most."""
    stages: dict[int, list[tuple[int, float]]] = {}
    for line in log.read_bytes()[slice(*span)].splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerTaskEnd":
            spent = sum(event["Task Metrics"][f"Executor {part}CPU Time"] for part in ("", "Deserialize "))
            stages.setdefault(event["Stage ID"], []).append((event["Task Info"]["Launch Time"], spent / 1e9))
    whole, won = 0.0, 0.0
    for tasks in stages.values():
        seconds, free = [each for _, each in sorted(tasks)], [0.0] * SLOTS
        for each in seconds:
            heapreplace(free, free[0] + each)
        whole += max(free)
        won = max(won, max(free) - ceil(len(seconds) / SLOTS) * fmean(seconds))
    return whole, won


def remedied(code: str, frames: dict[str, DataFrame], spark: SparkSession) -> DataFrame:
    """The result of pasted code."""
    names: dict[str, Any] = {**frames, "spark": spark}
    exec(code, names)
    result: DataFrame = names["result"]
    return result


def verdict(log: Path, start: int, end: int, folder: Path) -> tuple[StagesAnswer, str]:
    """What the log of a part of a session says."""
    part = folder / "part.log"
    with log.open("rb") as file, part.open("wb") as out:
        out.writelines(_header(file))
        file.seek(start)
        out.write(file.read(end - start))
    answer = read_tasks(part).stages
    assert answer is not None
    return answer, answer.code


def _header(file: Any) -> Iterator[bytes]:
    """Events before the first query."""
    for line in file:
        if "SQLExecutionStart" in json.loads(line)["Event"]:
            return
        yield line


if __name__ == "__main__":
    for mode in ("false", "true"):
        run(Path(sys.argv[1]) / mode, mode, sys.argv[2:] or [*JOBS])
