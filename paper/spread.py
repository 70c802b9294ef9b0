"""Measuring what is not measured yet: spread over Spark tasks, or alone where times are taken."""

import json
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from adapt.traces.spark.session import spark_failures
from adapt.traces.spark.spark_tasks import in_tasks
from paper.experiments import Data, Experiment, Kept

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent

_TOGETHER = 4
"""Experiments of one Spark task, at most: starting one costs as much as a small experiment."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what was measured, experiments done, experiments in all."""


def measure_missing(
    wanted: Iterable[Experiment], kept: Kept, session: "Callable[[], SparkSession]", progress: Progress
) -> int:
    """Measure every experiment, and those it needs, whose result is not kept; how many these were.

    Each result is kept as soon as it is there, so that a run that is interrupted goes on where it was. Spark is asked
    for only if there is work for it.

    Args:
        wanted: What is to be known in the end.
        kept: Where results are and go.
        session: Gives the Spark session.
        progress: Told of each result.
    """
    missing = [experiment for experiment in _with_needs(wanted) if experiment not in kept]
    shared = [experiment for experiment in missing if not experiment.alone]
    done = 0
    for experiment, result in _on_spark(shared, kept, session) if shared else ():
        kept.keep(experiment, result)
        done += 1
        progress(experiment.label, done, len(missing))
    for experiment in missing:
        if experiment.alone:
            kept.keep(experiment, experiment.measure([kept[needed] for needed in experiment.needs]))
            done += 1
            progress(experiment.label, done, len(missing))
    return len(missing)


def _with_needs(wanted: Iterable[Experiment]) -> list[Experiment]:
    """Every experiment once, after those that it needs."""
    ordered: dict[Experiment, None] = {}

    def add(experiment: Experiment) -> None:
        if experiment not in ordered:
            for needed in experiment.needs:
                add(needed)
            ordered[experiment] = None

    for experiment in wanted:
        add(experiment)
    return list(ordered)


def _on_spark(
    experiments: Sequence[Experiment], kept: Kept, session: "Callable[[], SparkSession]"
) -> Iterator[tuple[Experiment, Data]]:
    """Results as they come; as many tasks at once as there are cores, needs before who needs them.

    The caller keeps each result before it asks for the next one.
    """
    spark = session()
    cores = spark.sparkContext.defaultParallelism
    waiting, unknown = list(experiments), set(experiments)
    running: dict[Future[list[Data]], Sequence[Experiment]] = {}
    with ThreadPoolExecutor(cores) as pool, spark_failures("measuring the papers"):
        try:
            while waiting or running:
                ready = [each for each in waiting if unknown.isdisjoint(each.needs)]
                waiting = [each for each in waiting if not unknown.isdisjoint(each.needs)]
                size = min(_TOGETHER, -(-len(ready) // (2 * cores)))
                for at in range(0, len(ready), max(size, 1)):
                    together = ready[at : at + size]
                    running[pool.submit(_in_a_task, spark, together, kept)] = together
                for finished in wait(running, return_when=FIRST_COMPLETED).done:
                    for experiment, result in zip(running.pop(finished), finished.result(), strict=True):
                        yield experiment, result
                        unknown.remove(experiment)
        finally:
            pool.shutdown(cancel_futures=True)


def _in_a_task(spark: "SparkSession", experiments: Sequence[Experiment], kept: Kept) -> list[Data]:
    """The results of some experiments, from a Spark task of their own."""
    # A worker of Spark knows where installed packages are, not where this one is: it must be told before it unpacks.
    root = str(ROOT)
    packed = pickle.dumps([(each, [kept[needed] for needed in each.needs]) for each in experiments])

    def work(_number: int) -> Iterator[pa.RecordBatch]:
        if root not in sys.path:
            sys.path.insert(0, root)
        for experiment, given in pickle.loads(packed):
            yield pa.record_batch({"result": [json.dumps(experiment.measure(given))]})

    rows: list[Any] = in_tasks(spark, [[0]], work, "result string").collect()
    return [json.loads(row["result"]) for row in rows]
