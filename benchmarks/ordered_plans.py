"""Plan against work queue: does a better partitioner still matter?

Reviews by vendor and a web log by host pass a chain of two operators: a stateless one, and one that is partitioned by a
plan and costs four times as much. The plan is uniform hashing or the hybrid one, the work queue partitioned or hybrid.
The four cells run on real threads in turns, and in the model with eight workers, with 8 and with 64 partitions.

Claim, in the model: where the largest partition allows eight busy workers (speed_up_bound), the hybrid plan gains at
most 5 % of throughput under the hybrid work queue, and every output equals that of a serial run. Arguments: names of
streams (reviews, weblog); default: both.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc_csv

from adapt.cli.terminal.formats import markdown_text
from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.names import Backend, OperatorKind, PartitionBy, WorkQueue
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.replay.arrivals import Ordered
from adapt.core.ordered.replay.replay import replay_ordered
from adapt.core.ordered.replay.tables import OrderedRun
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.table import Cell, Column, Kind, Table

DATA = Path(os.environ.get("ADAPT_DATA", "../shared/data"))
PARTITIONS = (8, 64)
PLANS = (Scheme.UNIFORM, Scheme.HYBRID)
QUEUES = (WorkQueue.PARTITIONED, WorkQueue.HYBRID)
MODELED, REPEATS = 8, 3
MOST_GAIN = 1.05

COLUMNS = (
    Column("partitions", Kind.COUNT),
    Column("plan"),
    Column("queue"),
    Column("imbalance", Kind.RATIO),
    Column("speed_up_bound", Kind.RATIO),
    Column("throughput", Kind.NUMBER, "rows/s"),
    Column("a_cpu_second", Kind.NUMBER, "rows"),
    Column("speed_up", Kind.RATIO),
    Column("processing_p50", Kind.SECONDS),
    Column("processing_p99", Kind.SECONDS),
    Column("ring_max", Kind.COUNT),
    Column("ordered"),
)
Cells: TypeAlias = Mapping[str, Cell]
"""A row of a table, by column."""


def main() -> int:
    """Run the named streams, or both; 0 if the claims hold."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(cores, MODELED)
    met = True
    for name, read, cost_us in (("reviews", reviews, 1.0), ("weblog", web_log, 10.0)):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        keys = read()
        if keys is None:
            print(f"{name}: skipped, not found in ADAPT_DATA")
            continue
        told = f"{name}, {len(keys):,} rows, {cost_us:g} and {4 * cost_us:g} us"
        modeled = [row for each in PARTITIONS for row in by_model(keys, cost_us, each)]
        show(f"{told}; {MODELED} workers in the model", modeled)
        threads = [row for each in PARTITIONS for row in by_threads(keys, cost_us, each, workers)]
        show(f"{told}; {workers} real workers", threads)
        met = claims(name, modeled) and all(row["ordered"] for row in (*threads, *modeled)) and met
    return 0 if met else 1


def show(title: str, rows: Sequence[Cells]) -> None:
    """Print rows, without empty columns."""
    columns = [column for column in COLUMNS if any(row[column.name] is not None for row in rows)]
    print(markdown_text([Table.from_rows(title, columns, [[row[column.name] for column in columns] for row in rows])]))


def claims(name: str, modeled: Sequence[Cells]) -> bool:
    """Print the result of the model's cells, and check the claim."""
    met = True
    for partitions in PARTITIONS:
        cells = {(row["plan"], row["queue"]): row for row in modeled if row["partitions"] == partitions}
        rates = {at: float(row["throughput"] or 0) for at, row in cells.items()}
        owned, shared = (rates["hybrid", queue.value] / rates["uniform", queue.value] for queue in QUEUES)
        hashed = cells["uniform", WorkQueue.HYBRID.value]
        bound, reached = float(hashed["speed_up_bound"] or 0), float(hashed["speed_up"] or 0)
        said = f"the largest partition limits the speed-up to {bound:.2f}, so nothing is claimed"
        if bound >= MODELED:
            met = met and shared <= MOST_GAIN
            said = f"claimed at most {MOST_GAIN:g}x of the latter: {'met' if shared <= MOST_GAIN else 'NOT MET'}"
        print(
            f"{name}, {partitions} partitions, {MODELED} workers in the model: the hybrid plan reaches {owned:.2f}x "
            f"the"
            f" throughput of hashing under partitioned queues, {shared:.2f}x under the hybrid queue, where hashing has"
            f" a speed-up of {reached:.2f}; {said}"
        )
    return met


def reviews() -> pa.Array | None:
    """Vendors of the reviews, by time, then by position."""
    path = DATA / "reviews/anonreviews.csv.bz2"
    if not path.exists():
        return None
    table = pc_csv.read_csv(path, convert_options=pc_csv.ConvertOptions(column_types={"vendorId": pa.string()}))
    order = np.argsort(np.asarray(table["date"].cast(pa.string())), kind="stable")
    return table["vendorId"].combine_chunks().take(pa.array(order))


def web_log() -> pa.Array | None:
    """Client hosts of the log, whose lines are in time order."""
    path = DATA / "weblog-2015/apache_logs"
    if not path.exists():
        return None
    return pa.array(line.partition(" ")[0] for line in path.read_text(errors="replace").splitlines() if line.strip())


def chain_of(keys: pa.Array, scheme: Scheme, partitions: int, cost_us: float) -> BoundChain:
    """The chain, partitioned by a plan for these keys."""
    plan = build_plan(frequencies_of(count_keys(keys)), Recipe(scheme), partitions)
    operators = (
        Operator("parse", OperatorKind.STATELESS, cost=cost_us),
        Operator("by key", OperatorKind.PARTITIONED, "key", by=PartitionBy.PLAN, cost=4 * cost_us),
    )
    return bind(Chain(operators), {"key": keys}, plan.partitioner())


def by_threads(keys: pa.Array, cost_us: float, partitions: int, workers: int) -> list[Cells]:
    """Run the four cells in turns; returns the medians, without speed-ups."""
    chains = {plan: chain_of(keys, plan, partitions, cost_us) for plan in PLANS}
    runs: dict[tuple[Scheme, WorkQueue], list[Cells]] = {(plan, queue): [] for plan in PLANS for queue in QUEUES}
    for repeat in range(REPEATS):
        for (plan, queue), done in runs.items():
            ordered = Ordered((workers,), settings=RunSettings(work_queue=queue), check=None if repeat == 0 else 0)
            run = replay_ordered(chains[plan], ordered, clock=perf_counter, cpu_clock=process_time)
            done.append(cells_of(partitions, plan, queue, run))
    return [{name: middle([one[name] for one in done]) for name in done[0]} for done in runs.values()]


def by_model(keys: pa.Array, cost_us: float, partitions: int) -> list[Cells]:
    """Run the four cells in the model, with 1 and 8 workers."""
    rows = []
    for plan in PLANS:
        chain = chain_of(keys, plan, partitions, cost_us)
        for queue in QUEUES:
            ordered = Ordered((1, MODELED), Backend.SIM, settings=RunSettings(work_queue=queue))
            run = replay_ordered(chain, ordered, clock=perf_counter, cpu_clock=process_time)
            rows.append(cells_of(partitions, plan, queue, run))
    return rows


def cells_of(partitions: int, plan: Scheme, queue: WorkQueue, run: OrderedRun) -> Cells:
    """Results of the run with the most workers."""
    workers = run.tables()["workers"].records()[-1]
    rate, cores = run.outcomes[-1].throughput, run.outcomes[-1].cores
    named = {"partitions": partitions, "plan": plan.value, "queue": queue.value}
    bound = {"speed_up_bound": run.summary().records()[0]["speed_up_bound"]}
    return {**workers, **named, **bound, "a_cpu_second": rate / cores if rate and cores else None}


def middle(cells: Sequence[Cell]) -> Cell:
    """The median of numbers, the first of other values."""
    numbers = [cell for cell in cells if isinstance(cell, int | float) and not isinstance(cell, bool)]
    return median(numbers) if len(numbers) == len(cells) else cells[0]


if __name__ == "__main__":
    sys.exit(main())
