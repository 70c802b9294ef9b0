"""Running missing experiments on Spark, or alone where times are measured."""

import json
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from adapt.traces.spark.runner import in_tasks
from adapt.traces.spark.session import spark_failures
from paper.experiments import Data, Experiment, Kept

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent

_TOGETHER = 4
"""Most experiments per Spark task, since starting a task costs as much as a small experiment."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Progress callback: what was measured, experiments done, experiments in total."""


def measure_missing(
    wanted: Iterable[Experiment], kept: Kept, session: "Callable[[], SparkSession]", progress: Progress
) -> int:
    """Run every experiment without a stored result; returns how many.

    Includes the experiments they need.

    Each result is stored at once, so that an interrupted run resumes where it stopped. Spark starts only if there is
    work for it.

    Args:
        wanted: Experiments to have results for.
        kept: Store of results.
        session: Returns the Spark session.
        progress: Called for each result.
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
    """Every experiment once, after the experiments it needs."""
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
    """Yield results as they arrive, with a task per core; needed experiments run first.

    The caller stores each result before it asks for the next one.
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
    """Results of some experiments, run in one Spark task."""
    # Spark's workers know installed packages, not this one: its path must be set before it is unpickled.
    root = str(ROOT)
    packed = pickle.dumps([(each, [kept[needed] for needed in each.needs]) for each in experiments])

    def work(_number: int) -> Iterator[pa.RecordBatch]:
        if root not in sys.path:
            sys.path.insert(0, root)
        for experiment, given in pickle.loads(packed):
            yield pa.record_batch({"result": [json.dumps(experiment.measure(given))]})

    rows: list[Any] = in_tasks(spark, [[0]], work, "result string").collect()
    return [json.loads(row["result"]) for row in rows]
