"""Threaded backend: compiled workers that run without Python's global lock."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from adapt.core.ordered.chain.bound import BoundChain, Words
from adapt.core.ordered.engine.checkpoint import Checkpoint
from adapt.core.ordered.engine.kernel import worker as kernel
from adapt.core.ordered.engine.kernel.codes import DEAD, FAULTY, FINISHED, GOES_ON
from adapt.core.ordered.engine.memory import Memory
from adapt.core.ordered.engine.outcome import WorkersRun
from adapt.core.ordered.engine.scaling import WorkerControl
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.functions.work import measured_pace

KEPT = 1 << 14
"""Output tuples that wait for the caller who takes them; workers wait if there are more."""

_TAKEN_EVERY_S, _WATCHED_EVERY_S = 0.002, 1e-5


def run_by_workers(
    chain: BoundChain,
    settings: RunSettings,
    pace: int | None = None,
    keep: int = 0,
    taken: Callable[[Words], None] | None = None,
    arrivals_ns: Words | None = None,
    control: WorkerControl | None = None,
) -> WorkersRun:
    """Run a chain on threads, with the output of the serial run.

    Args:
        pace: Steps of busy work in 1024 ns on this machine; measured if None.
        keep: How many output tuples to keep.
        taken: Called with the output tuples in order, some at a time, instead of keeping them.
        arrivals_ns: When each tuple arrives, ascending, from the start on; workers take it in then. None if all are
            there at the start.
        control: Decides how many workers are active; others are parked, and take no CPU. None for all of them.

    Raises:
        UsageError: the run would take too much memory.
        BadInput: an own function raised an exception, or a policy.
        MemoryError: a function ran out of memory for its state.
        RuntimeError: an operator's function failed or the run stalled; a bug in the program.
        BaseException: a worker failed, or `taken`, or an interrupt; the workers are stopped.
    """
    pace = measured_pace() if pace is None else pace
    kept, waits = (keep, False) if taken is None else (KEPT, True)
    memory = Memory(chain, settings, pace, kept, waits=waits, arrivals_ns=arrivals_ns)
    elapsed_s = _run(memory, memory.settings.workers, taken, control=control)
    _check_finished(memory)
    return memory.run(elapsed_s)


def run_alone(chain: BoundChain, settings: RunSettings, pace: int) -> WorkersRun:
    """Run a chain for several workers by only one of them."""
    memory = Memory(chain, settings, pace, 0)
    try:
        _compile(memory)
        start = kernel.now_ns()
        kernel.work(memory.address, 0, False)
        elapsed_s = (kernel.now_ns() - start) / 1e9
        _check_finished(memory)
        return memory.run(elapsed_s)
    finally:
        memory.release()


@dataclass(slots=True)
class Crash:
    """All workers stop, wherever they are.

    Attributes:
        after: They stop as soon as more tuples than this are seen to have entered.
        before: No more than this enter, so that a crash cannot come too late.
        entered: How many had entered when they stopped.
    """

    after: int
    before: int
    entered: int = 0

    def watch(self, memory: Memory) -> None:
        """Body of a thread that stops the workers."""
        pause = threading.Event()
        while memory.header["stop"] == GOES_ON:
            if memory.header["fed"] > self.after:
                memory.end_if_running(DEAD)
                break
            pause.wait(_WATCHED_EVERY_S)
        self.entered = int(memory.header["fed"])


def run_segment(
    chain: BoundChain,
    settings: RunSettings,
    begun: Checkpoint,
    taken: Callable[[Words], None],
    pace: int | None = None,
) -> Checkpoint:
    """Run a chain from a checkpoint to the next one.

    Args:
        taken: Called with the output tuples, some at a time.
    """
    memory = Memory(chain, settings, measured_pace() if pace is None else pace, KEPT, waits=True, begun=begun)
    ends = list[Checkpoint]()
    _run(memory, memory.settings.workers, taken, finished=lambda: ends.append(memory.checkpoint()))
    _check_finished(memory)
    return ends[0]


def crash_segment(
    chain: BoundChain, settings: RunSettings, begun: Checkpoint, crash: Crash, pace: int | None = None
) -> None:
    """Run a chain from a checkpoint up to a crash.

    All that it did is lost.
    """
    memory = Memory(chain, settings, measured_pace() if pace is None else pace, KEPT, waits=True, begun=begun)
    memory.header["rows"] = crash.before
    _run(memory, memory.settings.workers, lambda _: None, crash)
    if memory.ended == FAULTY:
        raise memory.failure()


def _check_finished(memory: Memory) -> None:
    if memory.ended == FAULTY:
        raise memory.failure()
    if memory.ended != FINISHED:
        raise RuntimeError(
            f"the run stalled; tuples that arrived, were claimed, were sent, by operator: {memory.stuck()}"
        )


def _run(
    memory: Memory,
    workers: int,
    taken: Callable[[Words], None] | None,
    crash: Crash | None = None,
    finished: Callable[[], None] = lambda: None,
    control: WorkerControl | None = None,
) -> float:
    """Run all workers to the end; returns the seconds."""
    _compile(memory)
    deaths: list[BaseException] = []
    gates = _Gates(memory, workers, workers if control is None else control.workers)
    threads = [
        threading.Thread(target=_work, args=(memory, worker, deaths, gates), name=f"worker {worker}", daemon=True)
        for worker in range(workers)
    ]
    if crash is not None:
        threads.append(threading.Thread(target=crash.watch, args=(memory,), name="crash", daemon=True))
    start = kernel.now_ns()
    memory.header["start_ns"] = start
    try:
        for thread in threads:
            thread.start()
        if control is not None:
            _control(memory, threads[0], taken, control, gates)
        for thread in threads:
            while taken is not None and thread.is_alive():
                _take(memory, taken)
                thread.join(_TAKEN_EVERY_S)
            thread.join()
        elapsed_s = (kernel.now_ns() - start) / 1e9
        while taken is not None and _take(memory, taken):
            pass
        if memory.ended == FINISHED:
            finished()
    finally:  # also on an interrupt, a failure of `taken`, or no more threads
        memory.end_if_running(DEAD)
        gates.open_all()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        memory.release()
    if deaths:
        raise deaths[0]
    return elapsed_s


class _Gates:
    """What parked workers wait at."""

    def __init__(self, memory: Memory, workers: int, active: int) -> None:
        """Let the first workers pass."""
        self._memory = memory
        self._gates: Sequence[threading.Event] = [threading.Event() for _ in range(workers)]
        self.open(active)

    def open(self, active: int) -> None:
        """Let the first workers work, and park the others after their slices."""
        for gate in self._gates[active:]:
            gate.clear()
        self._memory.header["active"] = active
        for gate in self._gates[:active]:
            gate.set()

    def open_all(self) -> None:
        """Let all workers see the end of the run."""
        for gate in self._gates:
            gate.set()

    def wait(self, worker: int) -> None:
        """Wait until a worker may work."""
        self._gates[worker].wait()


def _control(
    memory: Memory,
    first: threading.Thread,
    taken: Callable[[Words], None] | None,
    control: WorkerControl,
    gates: _Gates,
) -> None:
    """Decide on the workers every period, until the first one ends, which is never parked."""
    start, due_s = int(memory.header["start_ns"]), control.period_s
    while first.is_alive():
        if taken is not None:
            _take(memory, taken)
        now_s = (kernel.now_ns() - start) / 1e9
        if now_s >= due_s:
            gates.open(control.decide(memory, now_s))
            due_s = (now_s // control.period_s + 1) * control.period_s
        first.join(min(inf if taken is None else _TAKEN_EVERY_S, max(due_s - now_s, 0.0)))
    gates.open_all()


def _take(memory: Memory, taken: Callable[[Words], None]) -> bool:
    """Hand over the output tuples so far; returns whether there were any."""
    rows = memory.take_kept()
    if len(rows):
        taken(rows)
    return len(rows) > 0


def _compile(memory: Memory) -> None:
    """Compile the worker with a run that is already over."""
    memory.end(FINISHED)
    kernel.work(memory.address, 0, False)
    memory.end(GOES_ON)


def _work(memory: Memory, worker: int, deaths: list[BaseException], gates: _Gates) -> None:
    """Body of a worker thread; a failure ends the whole run."""
    was_parked = False
    try:
        while kernel.work(memory.address, worker, was_parked):
            was_parked = True
            gates.wait(worker)
    except BaseException as death:
        deaths.append(death)
        memory.end(DEAD)
