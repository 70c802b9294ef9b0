"""Threaded engine: compiled workers that run without Python's global lock."""

import threading

from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.engine.kernel import worker as kernel
from adapt.core.ordered.engine.kernel.codes import DEAD, FAULTY, FINISHED, GOES_ON
from adapt.core.ordered.engine.memory import Memory
from adapt.core.ordered.engine.outcome import WorkersRun
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.functions.function import NO_MEMORY
from adapt.core.ordered.functions.work import measured_pace


def run_by_workers(chain: BoundChain, settings: RunSettings, pace: int | None = None, keep: int = 0) -> WorkersRun:
    """Run a chain on threads, with the output of the serial run.

    Args:
        pace: Steps of busy work in 1024 ns on this machine; measured if None.
        keep: How many output tuples to keep.

    Raises:
        UsageError: the run would hang or take too much memory.
        MemoryError: a function ran out of memory for its state.
        RuntimeError: an operator's function failed or the run stalled; a bug in the program.
        BaseException: a worker failed; the others are stopped.
    """
    memory = Memory(chain, settings, measured_pace() if pace is None else pace, keep)
    elapsed_s = _run(memory, settings.workers)
    if memory.ended == FAULTY:
        if memory.fault == NO_MEMORY:
            raise MemoryError(f"operator {memory.at_fault!r} ran out of memory for its state or its outputs")
        raise RuntimeError(f"the function of operator {memory.at_fault!r} failed")
    if memory.ended != FINISHED:
        raise RuntimeError(
            f"the run stalled; tuples that arrived, were claimed, were sent, by operator: {memory.stuck()}"
        )
    return memory.run(elapsed_s)


def _run(memory: Memory, workers: int) -> float:
    """Run all workers to the end; returns the seconds it took."""
    _compile(memory)
    deaths: list[BaseException] = []
    threads = [
        threading.Thread(target=_work, args=(memory, worker, deaths), name=f"worker {worker}")
        for worker in range(workers)
    ]
    start = kernel.now_ns()
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:  # an interrupt, or no more threads available
        memory.end(DEAD)
        raise
    elapsed_s = (kernel.now_ns() - start) / 1e9
    memory.release()
    if deaths:
        raise deaths[0]
    return elapsed_s


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
