"""Tables and conclusion of an ordered replay."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from adapt.core.metrics import column_named, columns_named
from adapt.core.ordered.chain.bound import BoundChain, BoundOperator
from adapt.core.ordered.chain.names import Backend, OperatorKind
from adapt.core.ordered.engine.memory import STATIC, runs_functions
from adapt.core.ordered.engine.reference import Egress, OperatorTally
from adapt.core.ordered.engine.settings import Contention
from adapt.core.ordered.model.model import Costs
from adapt.core.ordered.replay.arrivals import Ordered
from adapt.core.ordered.replay.outcome import Bound, Latency, WorkersOutcome, bound_of, fullest_share, imbalance_of
from adapt.core.ordered.replay.sustainable import GAIN, Probe, Speed, break_even, search_table, speeds_of
from adapt.core.phrases import counted, listed, percent
from adapt.core.run import Run
from adapt.core.table import Cell, Column, Kind, Table
from adapt.core.values import duration, number

MOST_PARTITIONS = 10_000
"""Most partitions of an operator in the table, the largest first."""

_FAR = 4
"""A bound this many times above the number of workers is not mentioned."""

_STARVED = 0.9
"""Workers that fall behind are busy: with less than this share of a core, other processes had it."""

BRIEF = "workers, throughput, speed_up: speed-up, processing_p99: p99, cores, ordered: in order"
PACED_BRIEF = "workers, rate, sustainable, keeps_up: keeps up, end_to_end_p99: p99, ordered: in order"
"""Columns of workers shown below the conclusion, and their headings."""

_OF_LOADS = (
    *("workers", "throughput", "rate", "capacity", "sustainable", "keeps_up", "drain", "feeder_lag"),
    *("processing", "wait", "end_to_end", "ordered", "cores"),
)
"""How names of the columns of the table of loads begin."""

WORKERS = Column("workers", Kind.COUNT)
OPERATOR = Column("operator")

_ABOUT = {
    "jitter": "random share of a tuple's cost, drawn from an exponential distribution",
    "contention_us": "time added per tuple by each other worker on its operator",
    "send_us": "time to send a batch, one worker at a time",
    "output_us": "time to send an output, one worker at a time",
    "lock_handover_us": "time from a lock's release until the next waiting worker holds it",
    "query_us": "time to ask the scheduler for an operator, once a slice",
    "query_operator_us": "added to that by each operator of the chain",
    "query_contention_us": "added to that by each other worker that has work",
}


def workers_table(outcomes: Sequence[WorkersOutcome]) -> Table:
    """Throughput and latency by number of workers."""
    columns = (
        WORKERS,
        Column("used", Kind.COUNT, about="workers that the parallelization scheme has operators for, if not all"),
        *columns_named("throughput speed_up"),
        Column("rate", Kind.NUMBER, "rows/s", "at which rows arrive, on average; empty if all are there at the start"),
        Column("capacity", Kind.NUMBER, "rows/s", "throughput with all rows there at the start, for an offered load"),
        column_named("sustainable"),
        Column("sustainable_below", Kind.NUMBER, "rows/s", "lowest rate that did not: the other end of the interval"),
        Column("target_latency", Kind.SECONDS, about="highest p99 from arrival to output at a sustainable rate"),
        Column("keeps_up", about="whether outputs leave at the rate of the arrivals"),
        column_named("drain"),
        Column("feeder_lag_p99", Kind.SECONDS, about="99th percentile of how late idle workers take in a row"),
        Column("feeder_lag_max", Kind.SECONDS, about="the longest of them"),
        Column("throughput_low", Kind.NUMBER, "rows/s", "lowest of all runs"),
        Column("throughput_high", Kind.NUMBER, "rows/s", "highest of these"),
        Column("runs", Kind.COUNT, about="runs of threads with this number of workers"),
        Column("noise", Kind.RATIO, about="slowest time of a fixed loop before each run over the fastest"),
        *_latency_columns("processing", "from the start of the first operator until the last output has left"),
        *_latency_columns(
            "wait",
            "before the first operator; with all rows there at the start, it grows with the first work queue",
        ),
        *_latency_columns("end_to_end", "from the arrival until the last output has left"),
        Column("ordered", about="whether the output equals that of the serial run"),
        Column("cores", Kind.NUMBER, about="CPU seconds per second of real workers"),
        *columns_named("ring_max delegated blocked retries blocked_time partition_imbalance"),
        Column("elapsed", Kind.SECONDS, about="length of the run"),
    )
    alone = next((_full_speed(one) for one in outcomes if one.workers == 1), None)
    note = "" if alone or outcomes[0].paced else "No speed-up: it needs a run with 1 worker; add 1 to --workers."
    return Table.from_rows("Workers", columns, [_workers_row(one, alone) for one in outcomes], note)


def _workers_row(one: WorkersOutcome, alone: float | None) -> list[Cell]:
    operators = one.run.operators
    repeats, speed = one.repeats, _full_speed(one)
    return [
        one.workers,
        one.used if one.used < one.workers else None,
        one.throughput,
        speed / alone if alone and speed else None,
        *_pace_cells(one),
        *((None, None) if repeats is None else (repeats.lowest, repeats.highest)),
        *((None, None) if repeats is None else (repeats.runs, repeats.noise)),
        *_cells(one.processing),
        *_cells(one.wait),
        *_cells(one.end_to_end),
        one.is_ordered,
        one.cores,
        max(tally.fullest for tally in operators),
        sum(tally.delegated for tally in operators),
        sum(tally.blocked for tally in operators),
        sum(tally.retries for tally in operators),
        one.share_of_time(sum(tally.waited_ns for tally in operators)),
        one.imbalance,
        one.run.elapsed_s,
    ]


def loads_table(outcomes: Sequence[WorkersOutcome]) -> Table:
    """Latency by rate of arrivals and number of workers."""
    table = workers_table(outcomes)
    kept = [column for column in table.columns if column.name.startswith(_OF_LOADS)]
    places = [table.columns.index(column) for column in kept]
    rows = tuple(tuple(row[at] for at in places) for row in table.rows)
    return Table("Latency by rate of arrivals", tuple(kept), rows)


def _full_speed(one: WorkersOutcome) -> float | None:
    """Saturated throughput; None if it was not measured."""
    return one.throughput if one.paced is None else one.paced.capacity


def _pace_cells(one: WorkersOutcome) -> tuple[Cell, ...]:
    """Cells of arrivals: rate, capacity, drain and lag."""
    if one.paced is None:
        return (None,) * 9
    found = one.paced.sustained
    sustained = (None,) * 3 if found is None else (found.low, found.high, found.target_s)
    lag = one.feeder_lag_s or (None, None)
    return one.paced.rate, one.paced.capacity, *sustained, one.keeps_up, one.drain_s, *lag


def _latency_columns(name: str, about: str) -> list[Column]:
    """Mean and percentiles of a latency."""
    return [
        Column(f"{name}_mean", Kind.SECONDS, about=f"mean latency {about}"),
        *(Column(f"{name}_p{rank}", Kind.SECONDS, about=f"its {rank}th percentile") for rank in (50, 95, 99)),
    ]


def _cells(latency: Latency | None) -> tuple[float | None, ...]:
    """Mean and percentiles as cells."""
    return (None,) * 4 if latency is None else (latency.mean, latency.p50, latency.p95, latency.p99)


def operators_table(chain: BoundChain, outcomes: Sequence[WorkersOutcome], ring_buffer: int) -> Table:
    """Time, cost and counters by number of workers and operator.

    A note names operators whose ring buffer had to be larger than that of the settings.
    """
    columns = (
        WORKERS,
        OPERATOR,
        Column("kind"),
        Column("reads", about="inputs and operators that it reads; empty if it reads the one before it"),
        Column("time_share", Kind.SHARE, about="share of the time of all workers"),
        Column("cost", Kind.SECONDS, about="worker time per tuple (c)"),
        Column("selectivity", Kind.NUMBER, about="outputs per tuple (s)"),
        column_named("partition_imbalance"),
        Column("largest_share", Kind.SHARE, about="share of its tuples in the largest partition"),
        *columns_named("delegated blocked ring_max partitions"),
        Column("inputs", Kind.COUNT),
        Column("outputs", Kind.COUNT),
        *columns_named("retries blocked_time"),
        Column("ring_buffer", Kind.COUNT, about="size of its ring buffer"),
        Column("slices", Kind.COUNT, about="slices that workers spent on it, each after a query of the scheduler"),
    )
    rows = [
        _operator_row(one, bound, tally, reads)
        for one in outcomes
        for bound, tally, reads in zip(chain.operators, one.run.operators, _reads(chain), strict=True)
    ]
    enlarged = [tally for tally in outcomes[0].run.operators if tally.ring_buffer > ring_buffer]
    note = " ".join(
        f"Operator {tally.name!r} has a ring buffer of {tally.ring_buffer:,} instead of {ring_buffer:,}, with which "
        "all workers could wait for a tuple that none of them takes."
        for tally in enlarged
    )
    return Table.from_rows("Operators", columns, rows, note)


def _reads(chain: BoundChain) -> list[str | None]:
    """What each operator of a graph reads."""
    if chain.graph is None:
        return [None] * len(chain.operators)
    names = [*chain.graph.inputs, *(bound.operator.name for bound in chain.operators)]
    return [", ".join(names[stream] for stream in sources) for sources in chain.graph.sources]


def _operator_row(one: WorkersOutcome, bound: BoundOperator, tally: OperatorTally, reads: str | None) -> list[Cell]:
    is_divided = bound.operator.kind is OperatorKind.PARTITIONED
    return [
        one.workers,
        tally.name,
        bound.operator.kind.value,
        reads,
        one.share_of_time(tally.busy_ns),
        tally.busy_ns / 1e9 / tally.inputs if tally.inputs else None,
        tally.outputs / tally.inputs if tally.inputs else None,
        imbalance_of(tally) if is_divided else None,
        fullest_share(tally) if is_divided else None,
        tally.delegated,
        tally.blocked,
        tally.fullest,
        len(tally.partition_loads) if is_divided else None,
        tally.inputs,
        tally.outputs,
        tally.retries,
        one.share_of_time(tally.waited_ns),
        tally.ring_buffer,
        tally.slices,
    ]


def of_most_workers(operators: Table) -> Table:
    """Rows of the run with the most workers."""
    most = max((cell for cell in operators.values("workers") if isinstance(cell, int)), default=0)
    rows = tuple(row for row in operators.rows if row[0] == most)
    return replace(operators, title=f"Operators, with {counted(most, 'worker')}", rows=rows)


def occupancy_table(outcomes: Sequence[WorkersOutcome]) -> Table:
    """Ring buffer occupancy as chunks are claimed."""
    columns = (
        WORKERS,
        OPERATOR,
        Column(
            "up_to", Kind.COUNT, "tuples", "in use, from the next to be sent to the last claimed; above half of this"
        ),
        Column("chunks", Kind.COUNT, about="chunks of tuples that were claimed at this occupancy"),
        Column("share", Kind.SHARE, about="share of the operator's chunks"),
    )
    rows: list[list[Cell]] = []
    for one in outcomes:
        for tally in one.run.operators:
            chunks = int(tally.in_use.sum())
            rows += [
                [one.workers, tally.name, (1 << bits) - 1, count, count / chunks]
                for bits, count in enumerate(tally.in_use.tolist())
                if count
            ]
    return Table.from_rows("Ring buffer occupancy", columns, rows)


def partitions_table(operators: Sequence[BoundOperator], one: WorkersOutcome) -> Table:
    """Load of partitions, the largest first.

    Equal for all runs, unless there are as many as workers.
    """
    columns = (
        OPERATOR,
        Column("partition", Kind.COUNT),
        Column("tuples", Kind.COUNT),
        Column("share", Kind.SHARE, about="share of the operator's tuples"),
    )
    rows: list[list[Cell]] = []
    omitted = 0
    for bound, tally in zip(operators, one.run.operators, strict=True):
        if bound.operator.kind is OperatorKind.PARTITIONED:
            loads = tally.partition_loads
            order = np.argsort(-loads, kind="stable")[:MOST_PARTITIONS]
            omitted += len(loads) - len(order)
            all_tuples = int(loads.sum()) or 1
            rows += [[tally.name, int(at), int(loads[at]), int(loads[at]) / all_tuples] for at in order]
    note = f"The {MOST_PARTITIONS:,} largest of each operator; {omitted:,} more not shown." if omitted else ""
    return Table.from_rows("Partitions", columns, rows, note)


def costs_table(operators: Sequence[BoundOperator], costs: Costs) -> Table:
    """Costs and selectivities that the model used."""
    columns = (
        OPERATOR,
        Column("cost", Kind.SECONDS, about="cost of a tuple, without sending; empty if each tuple has its own"),
        Column("cost_high", Kind.SECONDS, about="the same by the slowest of the runs that measured it"),
        Column("selectivity", Kind.NUMBER, about="outputs per tuple"),
        Column("cost_from", about="source of the cost"),
    )
    highest = costs.highest_us or (None,) * len(operators)
    rows = [
        [bound.operator.name, *(None if us is None else us / 1e6 for us in range_us), selectivity, source.value]
        for bound, *range_us, selectivity, source in zip(
            operators, costs.us, highest, costs.selectivities, costs.sources, strict=True
        )
    ]
    return Table.from_rows("Operator costs in the model", columns, rows)


def constants_table(contention: Contention) -> Table:
    """Contention that the model assumed."""
    columns = (Column("constant"), Column("value", Kind.NUMBER), Column("meaning"))
    rows = [[name, value, _ABOUT[name]] for name, value in asdict(contention).items()]
    return Table.from_rows("Contention assumed by the model", columns, rows)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OrderedRun(Run):
    """Result of an ordered replay."""

    mechanism: ClassVar[str] = "ordered"
    first: ClassVar[str] = "workers"

    chain: BoundChain
    ordered: Ordered
    # one per number of workers, in their order; of several rates of arrivals, those of the highest
    outcomes: tuple[WorkersOutcome, ...]
    egress: Egress  # output of the serial run, or of the first run without one
    costs: Costs | None  # costs that the model used; None for real workers
    parameters: Mapping[str, Any]  # everything that determines the result, except the trace; JSON data
    # why operators could not be compiled, so that the chain ran serially; empty if all could
    obstacles: tuple[str, ...] = ()
    answer: Table | None = None  # what a chain available by name answers; None for others
    # outcomes at lower rates of arrivals, ascending, each in the order of workers
    lower: tuple[WorkersOutcome, ...] = ()
    probes: tuple[Probe, ...] = ()  # runs of the searches for the sustainable rate

    @property
    def is_timed(self) -> bool:
        """Whether rows arrive by their times."""
        return any(each.follows_trace for each in self.ordered.arrivals)

    def facts(self) -> Table:
        """The run in one row."""
        columns = (
            Column("backend"),
            column_named("rows"),
            Column("tuples_out", Kind.COUNT, about="tuples that left the chain"),
            Column("egress", about="hash of the output, in order"),
            *columns_named("order_violations speed_up_bound"),
            Column("bound_by", about="operator that limits the speed-up"),
            Column("machine_cores", Kind.COUNT, about="cores of this machine"),
            column_named("break_even"),
            Column("parallelism", about="which workers enter which operator, and when"),
        )
        ordered, outcomes = self.ordered, (*self.lower, *self.outcomes)
        even = break_even(speeds_of(outcomes))
        bound = bound_of(self.chain.operators, outcomes[0])
        known = [one.is_ordered for one in outcomes if one.is_ordered is not None]
        row = (
            ordered.backend.value,
            self.chain.rows,
            self.egress.tuples,
            f"{self.egress.hash:016x}",
            known.count(False) if known else None,
            bound and bound.speed_up,
            bound and bound.operator,
            ordered.cores,
            even and even.workers,
            ordered.settings.parallelism.value,
        )
        return Table.from_rows("Run", columns, [row])

    def conclusion(self) -> str:
        """How many workers to use, and what makes that uncertain."""
        outcomes = tuple({one.workers: one for one in (*self.lower, *self.outcomes)}.values())
        wrong = [one.workers for one in outcomes if one.is_ordered is False]
        opening = "In the model, " if self.ordered.backend is Backend.SIM else ""
        bug = "differs from the serial run; this is a bug."
        told = [f"OUT OF ORDER: the output of {_listed(wrong)} workers {bug}"] if wrong else []
        told.append(
            _first_capital(opening + (_speed(outcomes) if outcomes[0].throughput else "the trace has no rows to run."))
        )
        if self.obstacles:
            told.append(f"It ran serially in plain Python, and would with more workers: {'; '.join(self.obstacles)}.")
        elif self.ordered.backend is Backend.THREADS:
            told += _of_threads(outcomes, self.ordered.cores)
        return " ".join(told[:3])

    def notes(self) -> list[str]:
        """The bound, the comparison of outputs, skew, and skipped rows."""
        chain, ordered, outcomes = self.chain, self.ordered, (*self.lower, *self.outcomes)
        skipped = [] if chain.skipped is None else [chain.skipped.sentence()]
        if self.obstacles:
            return skipped
        bound, runs = bound_of(chain.operators, outcomes[0]), runs_functions(chain)
        told = [_bounded(bound)] if bound and bound.speed_up < _FAR * max(one.workers for one in outcomes) else []
        told += _order(outcomes, ordered.backend is Backend.SIM and not runs)
        told += [] if self.costs is None or runs else _even_keys(chain.operators)
        return [*told, *skipped]

    def tables(self) -> dict[str, Table]:
        """Tables of the run by name.

        `workers`, `operators`, `occupancy`, `partitions`; of a chain available by name also `answer`, of several rates
        of arrivals also `loads`, of shares of the sustainable rate also `search`, of workers bound to operators also
        `served`, for a model also `costs` and `constants`.
        """
        tables = {} if self.answer is None else {"answer": self.answer}
        tables |= {
            "workers": workers_table(self.outcomes),
            "operators": operators_table(self.chain, self.outcomes, self.ordered.settings.ring_buffer),
            "occupancy": occupancy_table(self.outcomes),
            "partitions": partitions_table(self.chain.operators, max(self.outcomes, key=lambda one: one.workers)),
        }
        if self.ordered.settings.parallelism in STATIC and not self.obstacles:
            tables["served"] = _served_table(self.chain, self.outcomes)
        if self.lower:
            tables["loads"] = loads_table((*self.lower, *self.outcomes))
        if self.probes:
            tables["search"] = search_table(self.probes)
        if self.costs is not None:
            tables["costs"] = costs_table(self.chain.operators, self.costs)
            tables["constants"] = constants_table(self.ordered.contention)
        return tables

    def leading(self) -> Table:
        """The workers, at each rate if there are several."""
        table = self.tables()["loads" if self.lower else "workers"]
        return table.only(PACED_BRIEF if self.ordered.arrivals else BRIEF)

    def shown(self) -> list[Table]:
        """Answer, workers, loads, operators, a model's assumptions."""
        tables = self.tables()
        first = [tables[name] for name in ("answer", "workers", "loads") if name in tables]
        assumed = [tables[name] for name in ("costs", "constants") if name in tables]
        return [*first, of_most_workers(tables["operators"]), *assumed, self.facts()]


def _served_table(chain: BoundChain, outcomes: Sequence[WorkersOutcome]) -> Table:
    """Tuples by worker and operator."""
    columns = (
        Column("workers", Kind.COUNT),
        Column("worker", Kind.COUNT, about="its number, from 1 on"),
        Column("operator"),
        Column("tuples", Kind.COUNT, about="tuples that it processed"),
        Column("share", Kind.SHARE, about="share of the operator's tuples"),
    )
    rows: list[list[Cell]] = []
    for one in outcomes:
        totals = one.run.served.sum(axis=0)
        for worker, at in zip(*(places.tolist() for places in one.run.served.nonzero()), strict=True):
            name, tuples = chain.operators[at].operator.name, int(one.run.served[worker, at])
            rows.append([one.workers, worker + 1, name, tuples, tuples / int(totals[at])])
    return Table.from_rows("Tuples by worker", columns, rows)


def _speed(outcomes: Sequence[WorkersOutcome]) -> str:
    """How many workers to use, by throughput, or at the rate of the arrivals."""
    first = outcomes[0]
    if first.paced is not None:
        return _paced(outcomes)
    speeds = speeds_of(outcomes)
    best, most = break_even(speeds) or speeds[0], speeds[-1]
    one = next(each for each in outcomes if each.workers == best.workers)
    at, p99 = counted(best.workers, "worker"), f", p99 latency {duration(one.processing.p99)}" if one.processing else ""
    spread = ""
    if one.repeats is not None and one.repeats.runs > 1:
        low, high = number(one.repeats.lowest), number(one.repeats.highest)
        spread = f" (median of {one.repeats.runs} runs, {low} to {high})"
    process = f"{'processes' if best.workers == 1 else 'process'} {number(best.median)} rows/s{spread}{p99}"
    if len(speeds) == 1:
        return f"{at} {process}."
    least = speeds[0]
    if best is least:
        return (
            f"more than {at} {'does' if best.workers == 1 else 'do'} not help: {at} {process}; {_beyond(best, speeds)}."
        )
    times = f"{best.median / least.median:.2f} times as fast as {least.workers:,}"
    more = "more were not tried" if best is most else _beyond(best, speeds)
    return f"use {at}: they {process}, {times}; {more}."


def _beyond(best: Speed, speeds: Sequence[Speed]) -> str:
    """What more workers than the best number do."""
    most = speeds[-1]
    said = f"up to {most.workers:,}, more add less than {percent(GAIN)} of throughput"
    if any(more.median > (1 + GAIN) * best.median for more in speeds if more.workers > best.workers):
        said += " or less than the noise of the runs"
    if best.is_worth_more_than(most):
        said += f", and {most.workers:,} are {percent(1 - most.median / best.median)} slower"
    return said


def _paced(outcomes: Sequence[WorkersOutcome]) -> str:
    """The fewest workers that keep up where all get the same rate; else each number of workers at its own."""
    rates = {one.paced and one.paced.rate for one in outcomes}
    if len(outcomes) == 1 or len(rates) > 1 or any(one.paced and one.paced.sustained for one in outcomes):
        return "; ".join(f"{_sustained(one)}{_pace(one)}" for one in outcomes) + "."
    enough = [one for one in outcomes if one.keeps_up]
    if not enough:
        return f"no number of workers keeps up: {'; '.join(map(_pace, outcomes))}."
    best = min(enough, key=lambda one: one.workers)
    fewer = [one for one in outcomes if one.workers < best.workers]
    untried = ["fewer were not tried"] if best.workers > 1 and not fewer else []
    return f"use {counted(best.workers, 'worker')}: {'; '.join([_pace(best), *map(_pace, fewer[-1:]), *untried])}."


def _sustained(one: WorkersOutcome) -> str:
    """The sustainable rate of a number of workers, if it was searched."""
    found = None if one.paced is None else one.paced.sustained
    if found is None:
        return ""
    return (
        f"{counted(one.workers, 'worker')} {'sustains' if one.workers == 1 else 'sustain'} {number(found.low)} rows/s,"
        f" less than {number(found.high)}, with a p99 latency of at most {duration(found.target_s)}; "
    )


def _pace(one: WorkersOutcome) -> str:
    """Whether the workers keep up with the arrivals, and the latency."""
    paced, workers = one.paced, counted(one.workers, "worker")
    at = "with all rows arriving at once" if paced is None or not paced.rate else f"at {number(paced.rate)} rows/s"
    if paced is not None and paced.rate and paced.sustained is not None:
        at += f" ({percent(paced.rate / paced.sustained.low)} of that)"
    elif paced is not None and paced.rate and paced.capacity:
        at += f" ({percent(paced.rate / paced.capacity)} of capacity)"
    keeps = "keeps" if one.workers == 1 else "keep"
    if one.keeps_up:
        latency = (
            "" if one.end_to_end is None else f", p99 latency {duration(one.end_to_end.p99)} from arrival to output"
        )
        return f"{workers} {keeps} up {at}{latency}"
    late = f"the last output leaves {duration(one.drain_s or 0.0)} after the last arrival"
    if one.cores is not None and one.cores < _STARVED:
        return (
            f"it is unknown whether {workers} {keeps} up {at}: {late}, but the run got only {one.cores:.2f} of a core,"
            " as other processes ran; run it on an idle machine"
        )
    return f"{workers} {'falls' if one.workers == 1 else 'fall'} behind {at}, and {late}"


def _first_capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _of_threads(outcomes: Sequence[WorkersOutcome], cores: int) -> list[str]:
    """Limits of the machine that hide what workers could do."""
    more = [one.workers for one in outcomes if one.workers > cores]
    told = []
    if more:
        told.append(
            f"This machine has only {counted(cores, 'core')}, so the results for {_listed(more)} workers do not show "
            f"what "
            "as many cores would do; use --backend sim for those."
        )
    starved = [
        one
        for one in outcomes
        if one.paced is None and one.cores is not None and one.cores < 0.9 * min(one.workers, cores)
    ]
    if starved:
        worst = min(starved, key=lambda one: (one.cores or 0.0) / min(one.workers, cores))
        told.append(
            f"The machine was busy with other processes: {counted(worst.workers, 'worker')} got {worst.cores:.2f} of "
            f"{counted(min(worst.workers, cores), 'core')}."
        )
    return told


def _bounded(bound: Bound) -> str:
    where = "stateful operator" if bound.kind is OperatorKind.STATEFUL else "the largest partition of operator"
    return (
        f"The speed-up cannot exceed {bound.speed_up:.3g}: {where} {bound.operator!r} has {percent(bound.share)} of"
        " all work, for one worker at a time."
    )


def _order(outcomes: Sequence[WorkersOutcome], of_copies: bool) -> list[str]:
    known = [one for one in outcomes if one.is_ordered is not None]
    if any(not one.is_ordered for one in known):
        return []
    if not known:
        return ["The output was not compared with a serial run."]
    serial = "that of the model's serial run" if of_copies else "that of the serial run, tuple for tuple"
    return [f"The output equals {serial}."]


def _even_keys(operators: Sequence[BoundOperator]) -> list[str]:
    """A caveat on keys that are made in the chain, which the model does not compute."""
    made = [
        repr(bound.operator.name)
        for bound in operators
        if bound.operator.kind is OperatorKind.PARTITIONED and bound.partition_of is None
    ]
    if not made:
        return []
    which = f"{'operators' if made[1:] else 'operator'} {listed(made)}"
    return [f"The keys of {which} are made in the chain, so the model ignores their skew."]


def _listed(numbers: Sequence[int]) -> str:
    return listed([f"{one:,}" for one in numbers])
