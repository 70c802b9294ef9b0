"""Progress of Spark jobs, from Spark's stage counters."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeAlias

from adapt.traces.spark.connect import is_remote
from adapt.traces.spark.lazy import SparkSession

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with a stage name, tasks done, and tasks in total (0 while unknown)."""


def silent(_what: str, _done: int, _total: int) -> None:
    """Report no progress."""


OF_COMMAND: ContextVar[Progress] = ContextVar("progress of the command", default=silent)
"""The progress of the running command, for work to which none is passed."""


@contextmanager
def watched(spark: SparkSession, what: str, progress: Progress, every_s: float = 0.25) -> Iterator[None]:
    """Report Spark's stage counters while the body runs its jobs."""
    if progress is silent:
        yield
        return
    progress(what, 0, 0)
    if is_remote():
        told: Any = partial(_tell, what, progress)
        spark.registerProgressHandler(told)
        try:
            yield
        finally:
            spark.removeProgressHandler(told)
        return
    over = threading.Event()
    watcher = threading.Thread(target=_poll, args=(spark, what, progress, every_s, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _tell(what: str, progress: Progress, stages: Any, **_others: Any) -> None:
    """What a server of Spark Connect says of the stages of a query."""
    if stages:
        progress(what, sum(stage.num_completed_tasks for stage in stages), sum(stage.num_tasks for stage in stages))


def _poll(spark: SparkSession, what: str, progress: Progress, every_s: float, over: threading.Event) -> None:
    """Report until the body ends; if Spark is gone, the body reports the failure."""
    from py4j.protocol import Py4JError

    with suppress(Py4JError, ConnectionError):
        _report(spark, what, progress, every_s, over)


def _report(spark: SparkSession, what: str, progress: Progress, every_s: float, over: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not over.wait(every_s):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        if known:
            progress(what, sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known))
