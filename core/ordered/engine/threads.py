"""Threaded backend: compiled workers that run without Python's global lock."""

import threading
from collections.abc import Callable

from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.columns import Words
from adapt.core.ordered.engine.kernel import worker as kernel
from adapt.core.ordered.engine.kernel.layout import DEAD, FAULTY, FINISHED, GOES_ON
from adapt.core.ordered.engine.memory import Memory
from adapt.core.ordered.engine.reference import WorkersRun
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.functions.work import measured_pace

KEPT = 1 << 14
"""Output tuples that wait for the caller who takes them; workers wait if there are more."""

_TAKEN_EVERY_S = 0.002


def run_by_workers(
    chain: BoundChain,
    settings: RunSettings,
    pace: int | None = None,
    keep: int = 0,
    taken: Callable[[Words], None] | None = None,
    arrivals_ns: Words | None = None,
) -> WorkersRun:
    """Run a chain on threads, with the output of the serial run.

    Args:
        pace: Steps of busy work in 1024 ns on this machine; measured if None.
        keep: How many output tuples to keep.
        taken: Called with the output tuples in order, some at a time, instead of keeping them.
        arrivals_ns: When each tuple arrives, ascending, from the start on; workers take it in then. None if all are
            there at the start.
    """
    pace = measured_pace() if pace is None else pace
    kept, waits = (keep, False) if taken is None else (KEPT, True)
    memory = Memory(chain, settings, pace, kept, waits=waits, arrivals_ns=arrivals_ns)
    elapsed_s = _run(memory, memory.settings.workers, taken)
    _check_finished(memory)
    return memory.run(elapsed_s)


def _check_finished(memory: Memory) -> None:
    if memory.ended == FAULTY:
        raise memory.failure()
    if memory.ended != FINISHED:
        raise RuntimeError(
            f"the run stalled; tuples that arrived, were claimed, were sent, by operator: {memory.stuck()}"
        )


def _run(memory: Memory, workers: int, taken: Callable[[Words], None] | None) -> float:
    """Run all workers to the end; returns the seconds."""
    _compile(memory)
    deaths: list[BaseException] = []
    threads = [
        threading.Thread(target=_work, args=(memory, worker, deaths), name=f"worker {worker}", daemon=True)
        for worker in range(workers)
    ]
    start = kernel.now_ns()
    memory.header["start_ns"] = start
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while taken is not None and thread.is_alive():
                _take(memory, taken)
                thread.join(_TAKEN_EVERY_S)
            thread.join()
        elapsed_s = (kernel.now_ns() - start) / 1e9
        while taken is not None and _take(memory, taken):
            pass
    finally:  # also on an interrupt, a failure of `taken`, or no more threads
        memory.end_if_running(DEAD)
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        memory.release()
    if deaths:
        raise deaths[0]
    return elapsed_s


def _take(memory: Memory, taken: Callable[[Words], None]) -> bool:
    """Hand over the output tuples so far; returns whether there were any."""
    rows = memory.take_kept()
    if len(rows):
        taken(rows)
    return len(rows) > 0


def _compile(memory: Memory) -> None:
    """Compile the worker with a run that is already over."""
    memory.end(FINISHED)
    kernel.work(memory.address, 0)
    memory.end(GOES_ON)


def _work(memory: Memory, worker: int, deaths: list[BaseException]) -> None:
    """Body of a worker thread; a failure ends the whole run."""
    try:
        kernel.work(memory.address, worker)
    except BaseException as death:
        deaths.append(death)
        memory.end(DEAD)
