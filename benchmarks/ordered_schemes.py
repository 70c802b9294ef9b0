"""Parallelization schemes side by side: dynamic scheduling, replicas, micro-batches, a pipeline.

    python -m benchmarks.ordered_schemes

Two chains: a retail query of the ordered paper (Q2, five operators), and reviews by vendor (three operators). The model
runs them with 1 to 16 workers, with all rows there at the start, and then at half of the throughput of dynamic
scheduling, for the latency that a scheme adds. Threads run them with one worker and two, in turns; medians.

Claim: every output equals that of the serial run, and in the model no other scheme is more than 5 % faster than dynamic
scheduling with 2 to 16 workers. Arguments: names of chains (retail, vendors); default: both.
"""

import sys
from collections.abc import Mapping
from statistics import median
from time import process_time

import numpy as np

from adapt.cli.terminal.formats import markdown_text
from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.columns import Words
from adapt.core.ordered.chain.names import OperatorKind, Parallelism
from adapt.core.ordered.engine.reference import WorkersRun, run_serially
from adapt.core.ordered.engine.settings import RunSettings, assumed_contention
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.functions.work import measured_pace
from adapt.core.ordered.model.model import run_model
from adapt.core.table import Cell, Column, Kind, Table
from benchmarks.ordered_plans import reviews
from paper.ordered.pipelines import query

ROWS, REPEATS, BATCH, TIMED = 100_000, 5, 1000, 10_000
MODELED, REAL = (1, 2, 4, 8, 16), (1, 2)
MOST_GAIN = 1.05

VENDORS = (
    Operator("parse", OperatorKind.STATELESS, cost=1.0),
    Operator("by vendor", OperatorKind.PARTITIONED, "key", 64, cost=4.0),
    Operator("alerts", OperatorKind.STATEFUL, cost=0.2, selectivity=0.5),
)


def main() -> int:
    """Run the named chains, or both; 0 if the claim is met."""
    met = True
    for name in sys.argv[1:] or ("retail", "vendors"):
        chain = chain_of(name)
        if chain is None:
            print(f"{name}: skipped, not found in ADAPT_DATA")
            continue
        modeled = {at: found for workers in MODELED for at, found in by_model(chain, workers).items()}
        show(f"{name}, {chain.rows:,} rows; model", "rows/s", modeled)
        for workers in MODELED:
            fastest = max(Parallelism, key=lambda how: modeled[how, workers][0])
            gain = modeled[fastest, workers][0] / modeled[Parallelism.DYNAMIC, workers][0]
            met = met and (workers == 1 or gain <= MOST_GAIN)
            print(f"{name}, {workers} workers in the model: fastest is {fastest}, {gain:.2f}x of dynamic scheduling")
        show(f"{name}; threads", "rows per CPU second", by_threads(chain))
    return 0 if met else 1


def chain_of(name: str) -> BoundChain | None:
    """A chain with its rows; None without data."""
    if name == "retail":
        return query("Q2", ROWS, 0, threads=True)
    keys = reviews()
    return None if keys is None else bind(Chain(VENDORS), {"key": keys.slice(0, ROWS)})


def settings_of(how: Parallelism, workers: int, rows: int) -> RunSettings:
    """Settings of a scheme, with timed rows."""
    batch = BATCH if how is Parallelism.MICRO_BATCH else 0
    return RunSettings(workers, mark_every=max(rows // TIMED, 1), parallelism=how, batch=batch)


def by_model(chain: BoundChain, workers: int) -> dict[tuple[Parallelism, int], tuple[float, ...]]:
    """Throughput, median processing latency, and median and p99 from end to end at half of dynamic's throughput."""

    def ran(how: Parallelism, arrivals_ns: Words | None = None) -> WorkersRun:
        settings, random = settings_of(how, workers, chain.rows), np.random.default_rng(0)
        return run_model(chain, settings, assumed_contention(), random, arrivals_ns=arrivals_ns).run

    found, dynamic = {}, ran(Parallelism.DYNAMIC)
    gaps_s = np.random.default_rng(1).exponential(2 * dynamic.elapsed_s / chain.rows, chain.rows)
    arrivals_ns = (np.cumsum(gaps_s) * 1e9).astype(np.int64)
    for how in Parallelism:
        done, at_half_s = ran(how), ran(how, arrivals_ns).marks.end_to_end_s()
        assert done.egress == dynamic.egress, (how, workers)
        latencies = np.median(done.marks.processing_s()), np.median(at_half_s), np.quantile(at_half_s, 0.99)
        found[how, workers] = (chain.rows / done.elapsed_s, *map(float, latencies))
    return found


def by_threads(chain: BoundChain) -> dict[tuple[Parallelism, int], tuple[float, ...]]:
    """Rows per CPU second and median processing latency, medians of runs in turns."""
    serial, pace = run_serially(chain).egress, measured_pace()
    runs: dict[tuple[Parallelism, int], list[tuple[float, float]]] = {}
    for repeat in range(REPEATS + 1):
        for workers in REAL:
            for how in Parallelism:
                start = process_time()
                done = run_by_workers(chain, settings_of(how, workers, chain.rows), pace)
                taken = chain.rows / (process_time() - start), float(np.median(done.marks.processing_s()))
                assert done.egress == serial, (how, workers)
                if repeat:  # the first compiles
                    runs.setdefault((how, workers), []).append(taken)
    return {at: tuple(median(each) for each in zip(*taken, strict=True)) for at, taken in runs.items()}


def show(title: str, speed: str, results: Mapping[tuple[Parallelism, int], tuple[float, ...]]) -> None:
    """Print the results of all schemes."""
    columns = [Column("workers", Kind.COUNT), Column("parallelism"), Column(speed, Kind.NUMBER)]
    columns += [Column(name, Kind.SECONDS) for name in ("processing_p50", "at_half_p50", "at_half_p99")]
    rows: list[list[Cell]] = [[workers, how.value, *found] for (how, workers), found in results.items()]
    width = max(map(len, rows))
    print(markdown_text([Table.from_rows(title, columns[:width], rows)]))


if __name__ == "__main__":
    sys.exit(main())
