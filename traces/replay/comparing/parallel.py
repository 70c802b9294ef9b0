"""Where scenarios run: in this process, in others, or in Spark tasks."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import Any, TypeAlias

import pyarrow as pa

from adapt.core.errors import EnvironmentFailure
from adapt.traces.replay.comparing.worker import die_with_command
from adapt.traces.spark.executors import parallelism
from adapt.traces.spark.lazy import SparkSession
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.runner import in_tasks, log_ran
from adapt.traces.spark.session import Spark, spark_failures, spark_session

Work: TypeAlias = Callable[[Any], str]
"""Work on one scenario, called in any process; its result is a text."""

_SAFE_PATH = "PYTHONSAFEPATH"

RunAll: TypeAlias = Callable[[Work, Sequence[Any]], Iterator[str]]
"""Runs work on several scenarios and yields results as they come, until the first failure."""


@contextmanager
def runner_of_scenarios(runner: RunnerName, jobs: int | None, spark: Spark) -> Iterator[RunAll]:
    """What runs scenarios; its processes stay for further ones.

    Args:
        jobs: Processes on this machine; None, one per core. Ignored on Spark.
    """
    if runner is RunnerName.SPARK:
        yield lambda work, each: _on_spark(work, each, spark)
        return
    processes = jobs or len(os.sched_getaffinity(0))
    if processes == 1:
        yield _in_this_process
        return
    pools: list[ProcessPoolExecutor] = []
    others = {process.pid for process in active_children()}  # those of a calling program
    try:
        yield lambda work, each: _in_processes(work, each, processes, pools)
    except BaseException as error:
        for process in active_children():
            if process.pid not in others:
                process.terminate()
        if isinstance(error, BrokenProcessPool):
            raise EnvironmentFailure(
                "a process that ran a scenario ended, possibly out of memory; use --jobs 1. A Python script must call"
                " this below `if __name__ == '__main__':`"
            ) from error
        raise
    finally:
        for pool in pools:
            pool.shutdown(cancel_futures=True)


def _in_this_process(work: Work, each: Sequence[Any]) -> Iterator[str]:
    if each:
        log_ran(RunnerName.IN_PROCESS)
    for one in each:
        yield work(one)


def _in_processes(work: Work, each: Sequence[Any], processes: int, pools: list[ProcessPoolExecutor]) -> Iterator[str]:
    """Run in a pool of processes, which the first call starts."""
    if len(each) == 1 and not pools:
        yield from _in_this_process(work, each)
    elif each:
        log_ran(RunnerName.IN_PROCESS)
        with _safe_path():
            if not pools:
                pools.append(ProcessPoolExecutor(processes, get_context("spawn"), die_with_command))
            futures = [pools[0].submit(work, one) for one in each]
        yield from _as_done(futures)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Start processes that import nothing from the current folder."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        del os.environ[_SAFE_PATH]
        if before is not None:
            os.environ[_SAFE_PATH] = before


def _on_spark(work: Work, each: Sequence[Any], options: Spark) -> Iterator[str]:
    """Run a Spark task per scenario, as many at once as there are cores."""
    if not each:
        return
    log_ran(RunnerName.SPARK)
    spark = spark_session(options)
    with ThreadPoolExecutor(parallelism(spark)) as pool, spark_failures("running scenarios"):
        yield from _as_done([pool.submit(_in_a_task, spark, work, one) for one in each])


def _in_a_task(spark: SparkSession, work: Work, one: Any) -> str:
    """Run a scenario in a Spark task of its own."""

    def rows(_number: int) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"result": [work(one)]})

    return str(in_tasks(spark, [[0]], rows, "result string").collect()[0]["result"])


def _as_done(futures: Sequence[Future[str]]) -> Iterator[str]:
    """Yield results as they come, until the first failure."""
    running = set(futures)
    try:
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for one in finished:
                yield one.result()
    finally:
        for one in running:
            one.cancel()
