"""Ordered engine against C++, oneTBB, Java streams, and Python.

All do the same arithmetic on the same rows, and must give the same hash of the outputs in order; with a key, over 64
partitions and two hashed fields. Five runs each, in turns, and 25 at 0 us (not of Python), where a run takes 10 ms
and what else uses the core changes its CPU time by up to a third; the median with the lowest and the highest CPU time
per row. Claims, for chunks of the same size and one worker: without a key at most 1.5 times the CPU time of oneTBB,
and over 64 partitions at most 2.5 times that of oneTBB without a key; from 1 us per row on, at most 3 % above serial
C++ plus 10 ns; and two workers at 1 us process at least 1.9 times the rows of one, each run divided by the share of
its cores that it got.

oneTBB is found by the compiler, or in the folder TBB_ROOT (with usr/include and usr/lib). Peers that are not there (a
compiler, oneTBB, javac) are named and left out.

    python -m benchmarks.ordered_peers [--quick] [--results FILE]

Runs in FILE are not repeated, so that a benchmark that was interrupted goes on.
"""

import json
import multiprocessing
import os
import platform
import resource
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa

from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.columns import Words
from adapt.core.ordered.chain.mixing import FOLD, MASK, folded, mixed
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.functions.work import measured_pace

FACTOR = 0xD1342543DE82EF95
SEED = mixed(1)
ROWS = {0.0: 2_000_000, 1.0: 200_000, 10.0: 20_000}
PYTHON_ROWS = {0.0: 50_000, 1.0: 1000, 10.0: 100}
PARTITIONS, KEYS, REPEATS, SHORT_REPEATS, CHUNKS = 64, 1000, 5, 25, (64, 1024)
HERE = Path(__file__).parent
OF = {False: "stateless", True: "keyed"}


@dataclass(frozen=True, slots=True)
class Work:
    """A stream and its operator."""

    chain: BoundChain
    keys: Words | None
    file: str
    steps: int
    pace: int

    @property
    def rows(self) -> int:
        return len(self.chain.tuples)


Timed = tuple[int, float, float]
"""Hash, CPU seconds, wall seconds."""

Peer = Callable[[Work, int], Timed]


Case = tuple[bool, float, str, int]
"""Whether keyed, microseconds per row, peer, workers."""

Results = dict[Case, list[tuple[float, float]]]
"""CPU and wall seconds per row of each run."""


def main() -> int:
    """Print a table by case, and the claims; 0 if all are met."""
    repeats, costs = (3, (0.0, 1.0)) if "--quick" in sys.argv else (REPEATS, (0.0, 1.0, 10.0))
    file = Path(sys.argv[sys.argv.index("--results") + 1]) if "--results" in sys.argv else None
    print(
        f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores, {repeats} runs each ({SHORT_REPEATS} at 0 us); "
        "CPU ns per row"
    )
    results = kept_in(file)
    with TemporaryDirectory() as folder:
        measure(results, Path(folder), repeats, costs, file)
    for (keyed, cost_us, name, workers), times in results.items():
        cpu = sorted(1e9 * cpu_s for cpu_s, _ in times)
        print(
            f"{OF[keyed]}, {cost_us:g} us, {name}, {workers} workers: {median(cpu):,.1f} "
            f"({cpu[0]:,.1f} to {cpu[-1]:,.1f}); wall {1e9 * median(wall_s for _, wall_s in times):,.1f}"
        )
    cpu_ns = {case: 1e9 * median(cpu_s for cpu_s, _ in times) for case, times in results.items()}
    return 0 if all([*claims(cpu_ns, costs)]) else 1


def kept_in(file: Path | None) -> Results:
    """CPU and wall seconds per row of the runs in a file, so that an interrupted benchmark goes on."""
    results = Results()
    for line in file.read_text().splitlines() if file is not None and file.exists() else ():
        keyed, cost_us, name, workers, cpu_s, wall_s = json.loads(line)
        results.setdefault((keyed, cost_us, name, workers), []).append((cpu_s, wall_s))
    return results


def measure(
    results: dict[Case, list[tuple[float, float]]],
    folder: Path,
    repeats: int,
    costs: tuple[float, ...],
    file: Path | None,
) -> None:
    """Run all peers in turns, as often as they have not run yet.

    Raises:
        RuntimeError: an output differs from that of the engine.
    """
    pace, peers, works, expected = measured_pace(), dict(found_peers(folder)), dict[Any, Work](), dict[Any, int]()
    for turn, keyed, cost_us, (name, peer), workers in product(
        range(SHORT_REPEATS), (False, True), costs, peers.items(), (1, 2)
    ):
        case = keyed, cost_us, name, workers
        if turn >= repeats and (cost_us > 0 or name.startswith("Python")):
            continue
        if (name == "C++, serial" and workers > 1) or len(results.get(case, ())) > turn:
            continue
        rows = (PYTHON_ROWS if name.startswith("Python") else ROWS)[cost_us]
        of = keyed, cost_us, rows
        if of not in works:
            works[of] = work_of(keyed, cost_us, rows, pace, folder)
            expected[of] = run_by_workers(works[of].chain, RunSettings(), pace).egress.hash
        gives, cpu_s, wall_s = peer(works[of], workers)
        if gives != expected[of]:
            raise RuntimeError(f"the output of {name} differs ({workers} workers, {cost_us:g} us)")
        results.setdefault(case, []).append((cpu_s / rows, wall_s / rows))
        if file is not None:
            with file.open("a") as kept:
                print(json.dumps([*case, cpu_s / rows, wall_s / rows]), file=kept)


def claims(ns: dict[Case, float], costs: tuple[float, ...]) -> Iterator[bool]:
    """Whether each claim is met."""
    for chunk, keyed in product(CHUNKS, (False, True)):
        ours, tbb = ns[keyed, 0.0, f"adapt, chunks of {chunk}", 1], f"oneTBB, chunks of {chunk}"
        if (False, 0.0, tbb, 1) in ns:
            what = f"{OF[keyed]}, chunks of {chunk}, over oneTBB"
            yield told(f"{what} without a key", ours / ns[False, 0.0, tbb, 1], 2.5 if keyed else 1.5)
            print(f"{what} on the same stream: {ours / ns[keyed, 0.0, tbb, 1]:.3f}")
    for keyed, cost_us in product((False, True), [cost for cost in costs if cost >= 1]):
        serial = ns.get((keyed, cost_us, "C++, serial", 1))
        if serial is not None:
            ratio = ns[keyed, cost_us, "adapt", 1] / (1.03 * serial + 10)
            yield told(f"{OF[keyed]}, {cost_us:g} us, over serial C++ + 3 % + 10 ns", ratio, 1.0)
    for keyed in (False, True):
        ratio = ns[keyed, 1.0, "adapt", 2] / ns[keyed, 1.0, "adapt", 1]
        yield told(f"{OF[keyed]}, 1 us, CPU time of two workers over one", ratio, 2 / 1.9)


def told(claim: str, ratio: float, most: float) -> bool:
    """Print a claim; whether it is met."""
    print(f"{claim}: {ratio:.3f}, claimed at most {most:.3f}: {'met' if ratio <= most else 'NOT MET'}")
    return ratio <= most


def work_of(keyed: bool, cost_us: float, rows: int, pace: int, folder: Path) -> Work:
    """The stream of a case."""
    keys = np.random.default_rng(1).integers(0, KEYS, rows)
    columns = {"row": pa.array(np.arange(rows)), "key": pa.array(keys)}
    operator = (
        Operator("work", OperatorKind.PARTITIONED, key="key", partitions=PARTITIONS, cost=cost_us)
        if keyed
        else Operator("work", OperatorKind.STATELESS, cost=cost_us)
    )
    chain = bind(Chain((operator,)), columns)
    steps = (round(cost_us * 1000) * pace) >> 10
    if not keyed:
        return Work(chain, None, "-", steps, pace)
    of_rows = np.ascontiguousarray(chain.tuples[:, chain.operators[0].key_at])
    file = folder / f"{rows}.keys"
    of_rows.tofile(file)
    return Work(chain, of_rows, str(file), steps, pace)


def found_peers(folder: Path) -> Iterator[tuple[str, Peer]]:
    """The pipelines that can run here."""
    yield "adapt", ours(0)
    for chunk in (1, *CHUNKS):
        yield f"adapt, chunks of {chunk}", ours(chunk)
    yield from in_cpp(folder)
    yield from in_java(folder)
    yield "Python, threads", by_python_threads
    yield "Python, processes", by_python_processes


def ours(chunk: int) -> Peer:
    """The ordered engine."""

    def run(work: Work, workers: int) -> Timed:
        cpu, wall = process_time(), perf_counter()
        egress = run_by_workers(work.chain, RunSettings(workers, chunk=chunk or None), work.pace).egress
        return egress.hash, process_time() - cpu, perf_counter() - wall

    return run


def in_cpp(folder: Path) -> Iterator[tuple[str, Peer]]:
    """C++ serially and by threads, and oneTBB if there."""
    compiler = next(filter(None, map(shutil.which, ("g++", "clang++", "c++"))), None)
    if compiler is None:
        print("C++ and oneTBB: left out, no compiler found (g++ or clang++)")
        return
    program, source = str(folder / "peers"), str(HERE / "ordered_peers.cpp")
    root = os.environ.get("TBB_ROOT")
    where = [f"-I{root}/usr/include", f"-L{root}/usr/lib", f"-L{root}/usr/lib/x86_64-linux-gnu"] if root else []
    build = [compiler, "-O3", "-std=c++17", "-pthread", "-o", program, source]
    has_tbb = subprocess.run([*build, "-DTBB", *where, "-ltbb"], capture_output=True, check=False).returncode == 0
    if not has_tbb:
        print("oneTBB: left out, not found (Debian: libtbb-dev; or name its folder in TBB_ROOT)")
        subprocess.run(build, check=True)
    library = {"LD_LIBRARY_PATH": f"{root}/usr/lib:{root}/usr/lib/x86_64-linux-gnu"} if root else {}

    def peer(engine: str, chunk: int) -> Peer:
        def run(work: Work, workers: int) -> Timed:
            line = [program, engine, work.file, *map(str, (work.rows, work.steps, workers, chunk, SEED))]
            return timed_line(subprocess.run(line, check=True, capture_output=True, text=True, env=library).stdout)

        return run

    yield "C++, serial", peer("serial", 1)
    for chunk in CHUNKS:
        yield f"C++, threads, chunks of {chunk}", peer("threads", chunk)
    for chunk in (1, *CHUNKS) if has_tbb else ():
        yield f"oneTBB, {f'chunks of {chunk}' if chunk > 1 else 'a row per token'}", peer("tbb", chunk)


def timed_line(line: str) -> Timed:
    """What a program in another language prints."""
    gives, cpu_ns, wall_ns = map(int, line.split())
    return gives, cpu_ns / 1e9, wall_ns / 1e9


def in_java(folder: Path) -> Iterator[tuple[str, Peer]]:
    """Java's ordered parallel streams.

    The mean of the last four of eight runs in a process counts, after the compiler has done its work.
    """
    if shutil.which("javac") is None:
        print("Java: left out, no javac found")
        return
    subprocess.run(["javac", "-d", str(folder), str(HERE / "OrderedPeers.java")], check=True)

    def run(work: Work, workers: int) -> Timed:
        line = ["java", "-cp", str(folder), "OrderedPeers", work.file]
        line += map(str, (work.rows, work.steps, workers, SEED, 8))
        return timed_line(subprocess.run(line, check=True, capture_output=True, text=True).stdout.splitlines()[-1])

    yield "Java, parallel streams", run


def burn(steps: int) -> int:
    """The busy work, in Python."""
    word = steps
    for _ in range(steps):
        word = (word ^ (word >> 7)) * FACTOR & MASK
    return word


def output_of(work_steps: int, states: dict[int, int] | None, key: int, value: int) -> int:
    """The operator, in Python."""
    if work_steps:
        burn(work_steps)
    if states is not None:
        value = states[key] = (states.get(key, 0) * FACTOR + value) & MASK
    return mixed((value + SEED) & MASK)


def hash_of(keys: list[int] | None, outputs: list[int]) -> int:
    """Hash of the outputs in order."""
    fold = FOLD
    for row, output in enumerate(outputs):
        if keys is not None:
            fold = folded(fold, keys[row])
        fold = folded(fold, output)
    return fold


def by_python_threads(work: Work, workers: int) -> Timed:
    """Threads with a queue, and a dictionary of outputs that wait.

    A keyed operator runs under a lock.
    """
    keys = None if work.keys is None else work.keys.tolist()
    cpu, wall = process_time(), perf_counter()
    queue, waiting, out, lock = deque(range(work.rows)), dict[int, int](), list[int](), threading.Lock()
    states: dict[int, int] | None = None if keys is None else {}

    def put(row: int, output: int) -> None:
        waiting[row] = output
        while len(out) in waiting:
            out.append(waiting.pop(len(out)))

    def run() -> None:
        with suppress(IndexError):  # the queue is empty
            while keys is None:
                row = queue.popleft()
                output = output_of(work.steps, None, 0, row)
                with lock:
                    put(row, output)
            while True:
                with lock:
                    row = queue.popleft()
                    put(row, output_of(work.steps, states, keys[row], row))

    threads = [threading.Thread(target=run) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gives = hash_of(keys, out)
    return gives, process_time() - cpu, perf_counter() - wall


def _serve(connection: Connection, steps: int, keyed: bool) -> None:
    """Body of a worker process: outputs of the rows of its partitions."""
    states: dict[int, int] | None = {} if keyed else None
    while (rows := connection.recv()) is not None:
        connection.send([output_of(steps, states, key, value) for key, value in rows])


def by_python_processes(work: Work, workers: int) -> Timed:
    """Processes that each have some of the partitions.

    They take 1,024 rows at a time, which are put back in order.
    """
    keys = None if work.keys is None else work.keys.tolist()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu, wall, context = process_time(), perf_counter(), multiprocessing.get_context("fork")
    pipes = [context.Pipe() for _ in range(workers)]
    processes = [
        context.Process(target=_serve, args=(theirs, work.steps, keys is not None), daemon=True) for _, theirs in pipes
    ]
    for process in processes:
        process.start()
    out: list[int] = []
    for first in range(0, work.rows, 1024):
        rows = range(first, min(first + 1024, work.rows))
        of = [(row if keys is None else keys[row] % PARTITIONS) % workers for row in rows]
        for worker, (pipe, _) in enumerate(pipes):
            mine = [row for row, owner in zip(rows, of, strict=True) if owner == worker]
            pipe.send([(0 if keys is None else keys[row], row) for row in mine])
        given = [iter(pipe.recv()) for pipe, _ in pipes]
        out += [next(given[owner]) for owner in of]
    for pipe, _ in pipes:
        pipe.send(None)
    for process in processes:
        process.join()
    gives, after = hash_of(keys, out), resource.getrusage(resource.RUSAGE_CHILDREN)
    children_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return gives, process_time() - cpu + children_s, perf_counter() - wall


if __name__ == "__main__":
    sys.exit(main())
