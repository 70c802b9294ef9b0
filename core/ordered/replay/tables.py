"""The tables of an ordered replay, and its verdict."""

from collections.abc import Sequence
from dataclasses import asdict, fields, replace

import numpy as np

from adapt.core.ordered.chain.bound import BoundChain, BoundOperator
from adapt.core.ordered.chain.names import CostSource, Engine, OperatorKind
from adapt.core.ordered.engine.contention import Contention
from adapt.core.ordered.engine.outcome import OperatorTally
from adapt.core.ordered.engine.serial import Egress
from adapt.core.ordered.model.operator_costs import Costs
from adapt.core.ordered.replay.outcome import Bound, Latency, WorkersOutcome, bound_of, fullest_share, imbalance_of
from adapt.core.phrases import counted
from adapt.core.table import Cell, Column, Kind, Table
from adapt.core.values import duration, number, share

MOST_PARTITIONS = 10_000
"""Of an operator, in the table of partitions: the fullest."""

_FAR = 4
"""A bound so many times above the most workers is not worth a sentence."""

WORKERS_FIRST = ("workers", "throughput", "speed_up", "latency_p50", "latency_p99", "cores", "ordered")
OPERATORS_FIRST = ("operator", "kind", "time_share", "cost", "selectivity", "imbalance", "ring_max")
"""What people want first of these tables; a report has all of them."""

WORKERS = Column("workers", Kind.COUNT)
OPERATOR = Column("operator")

_ABOUT = {
    "jitter": "share of a cost that is drawn, exponentially",
    "crowding_us": "added to a tuple by each other worker on its operator",
    "send_us": "of a batch, where one worker at a time sends",
    "output_us": "of an output, there",
    "hand_over_us": "from a lock's release to the next worker",
}


def workers_table(outcomes: Sequence[WorkersOutcome]) -> Table:
    """One row a number of workers."""
    columns = (
        WORKERS,
        Column("throughput", Kind.NUMBER, "rows/s"),
        Column("speed_up", Kind.RATIO, about="throughput over that of 1 worker"),
        Column("latency_p50", Kind.SECONDS, about="from the first worklist until the last output has left"),
        Column("latency_p99", Kind.SECONDS, about="likewise"),
        Column("ordered", about="whether the egress is that of the serial run"),
        Column("latency_mean", Kind.SECONDS, about="likewise"),
        Column("latency_p95", Kind.SECONDS, about="likewise"),
        Column("processing_mean", Kind.SECONDS, about="the same without the first worklist"),
        Column("processing_p50", Kind.SECONDS, about="likewise"),
        Column("processing_p95", Kind.SECONDS, about="likewise"),
        Column("processing_p99", Kind.SECONDS, about="likewise"),
        Column("cores", Kind.NUMBER, about="CPU seconds a second, of real workers"),
        Column("ring_max", Kind.COUNT, about="tuples of the ring of an operator in use, at most"),
        Column("delegated", Kind.COUNT, about="tuples left to the worker that was in their partition"),
        Column("blocked", Kind.COUNT, about="sends that a full worklist ended"),
        Column("retries", Kind.COUNT, about="outputs offered to a ring without room"),
        Column("imbalance", Kind.RATIO, about="tuples of the fullest partition over the mean, where it is worst"),
        Column("elapsed", Kind.SECONDS, about="of the whole run"),
    )
    alone = next((one.throughput for one in outcomes if one.workers == 1), None)
    note = "" if alone else "The speed-up is over 1 worker, which --workers does not name."
    return Table.from_rows("Workers", columns, [_workers_row(one, alone) for one in outcomes], note)


def _workers_row(one: WorkersOutcome, alone: float | None) -> list[Cell]:
    operators = one.run.operators
    from_start, whole = _cells(one.processing), _cells(one.end_to_end)
    return [
        one.workers,
        one.throughput,
        one.throughput / alone if alone and one.throughput else None,
        whole[1],
        whole[3],
        one.is_ordered,
        whole[0],
        whole[2],
        *from_start,
        one.cores,
        max(tally.fullest for tally in operators),
        sum(tally.delegated for tally in operators),
        sum(tally.blocked for tally in operators),
        sum(tally.retries for tally in operators),
        one.imbalance,
        one.run.elapsed_s,
    ]


def _cells(latency: Latency | None) -> tuple[float | None, ...]:
    """Mean and percentiles."""
    return (None,) * 4 if latency is None else (latency.mean, latency.p50, latency.p95, latency.p99)


def operators_table(operators: Sequence[BoundOperator], outcomes: Sequence[WorkersOutcome]) -> Table:
    """One row a number of workers and operator."""
    columns = (
        WORKERS,
        OPERATOR,
        Column("kind"),
        Column("time_share", Kind.SHARE, about="of the time of all workers"),
        Column("cost", Kind.SECONDS, about="worker time a tuple (c)"),
        Column("selectivity", Kind.NUMBER, about="outputs a tuple (s)"),
        Column("imbalance", Kind.RATIO, about="tuples of the fullest partition over the mean"),
        Column("fullest", Kind.SHARE, about="of its tuples, in the fullest partition"),
        Column("delegated", Kind.COUNT, about="tuples left to the worker that was in their partition"),
        Column("blocked", Kind.COUNT, about="sends that a full worklist ended"),
        Column("ring_max", Kind.COUNT, about="tuples of its ring in use, at most"),
        Column("partitions", Kind.COUNT),
        Column("inputs", Kind.COUNT),
        Column("outputs", Kind.COUNT),
        Column("retries", Kind.COUNT, about="outputs offered to a ring without room"),
    )
    rows = [
        _operator_row(one, bound, tally)
        for one in outcomes
        for bound, tally in zip(operators, one.run.operators, strict=True)
    ]
    return Table.from_rows("Operators", columns, rows)


def _operator_row(one: WorkersOutcome, bound: BoundOperator, tally: OperatorTally) -> list[Cell]:
    is_divided = bound.operator.kind is OperatorKind.PARTITIONED
    return [
        one.workers,
        tally.name,
        bound.operator.kind.value,
        one.share_of_time(tally),
        tally.busy_ns / 1e9 / tally.inputs if tally.inputs else None,
        tally.outputs / tally.inputs if tally.inputs else None,
        imbalance_of(tally) if is_divided else None,
        fullest_share(tally) if is_divided else None,
        tally.delegated,
        tally.blocked,
        tally.fullest,
        bound.partitions if is_divided else None,
        tally.inputs,
        tally.outputs,
        tally.retries,
    ]


def of_most_workers(operators: Table) -> Table:
    """The rows of the run with the most workers."""
    most = max((cell for cell in operators.values("workers") if isinstance(cell, int)), default=0)
    rows = tuple(row for row in operators.rows if row[0] == most)
    return replace(operators, title=f"Operators, with {counted(most, 'worker')}", rows=rows)


def with_columns(table: Table, names: Sequence[str]) -> Table:
    """Some of the columns, without those in which nothing is defined."""
    kept = [name for name in names if any(cell is not None for cell in table.values(name))]
    places = [[column.name for column in table.columns].index(name) for name in kept]
    rows = tuple(tuple(row[at] for at in places) for row in table.rows)
    return replace(table, columns=tuple(table.columns[at] for at in places), rows=rows)


def occupancy_table(outcomes: Sequence[WorkersOutcome]) -> Table:
    """How full the rings were when a worker claimed a batch: one row a number of workers, operator and power of two."""
    columns = (
        WORKERS,
        OPERATOR,
        Column("up_to", Kind.COUNT, "tuples", "in use, from the next to be sent to the last claimed; above the half"),
        Column("batches", Kind.COUNT, about="that found it so when they were claimed"),
        Column("share", Kind.SHARE, about="of the operator's batches"),
    )
    rows: list[list[Cell]] = []
    for one in outcomes:
        for tally in one.run.operators:
            all_batches = int(tally.in_use.sum())
            rows += [
                [one.workers, tally.name, (1 << bits) - 1, count, count / all_batches]
                for bits, count in enumerate(tally.in_use.tolist())
                if count
            ]
    return Table.from_rows("Rings in use", columns, rows)


def partitions_table(operators: Sequence[BoundOperator], one: WorkersOutcome) -> Table:
    """The load of partitions, which is the same for every number of workers; the fullest first."""
    columns = (
        OPERATOR,
        Column("partition", Kind.COUNT),
        Column("tuples", Kind.COUNT),
        Column("share", Kind.SHARE, about="of the operator's tuples"),
    )
    rows: list[list[Cell]] = []
    left_out = 0
    for bound, tally in zip(operators, one.run.operators, strict=True):
        if bound.operator.kind is OperatorKind.PARTITIONED:
            loads = tally.partition_loads
            order = np.argsort(-loads, kind="stable")[:MOST_PARTITIONS]
            left_out += len(loads) - len(order)
            all_tuples = int(loads.sum()) or 1
            rows += [[tally.name, int(at), int(loads[at]), int(loads[at]) / all_tuples] for at in order]
    note = f"Of each operator the {MOST_PARTITIONS:,} fullest; {left_out:,} are left out." if left_out else ""
    return Table.from_rows("Partitions", columns, rows, note)


def costs_table(operators: Sequence[BoundOperator], costs: Costs) -> Table:
    """What the model was given."""
    columns = (
        OPERATOR,
        Column("cost", Kind.SECONDS, about="of a tuple, without sending; none where each brings its own"),
        Column("selectivity", Kind.NUMBER, about="outputs a tuple"),
        Column("cost_from"),
    )
    rows = [
        [bound.operator.name, None if us is None else us / 1e6, selectivity, source.value]
        for bound, us, selectivity, source in zip(operators, costs.us, costs.selectivities, costs.sources, strict=True)
    ]
    return Table.from_rows("What the model was given", columns, rows)


def constants_table(contention: Contention) -> Table:
    """What was assumed of contention."""
    columns = (Column("constant"), Column("value", Kind.NUMBER), Column("meaning"))
    rows = [[name, value, _ABOUT[name]] for name, value in asdict(contention).items()]
    return Table.from_rows("What it assumes of contention", columns, rows)


def ordered_summary(
    chain: BoundChain,
    outcomes: Sequence[WorkersOutcome],
    egress: Egress,
    engine: Engine,
    cores: int,
    costs: Costs | None,
    contention: Contention,
) -> Table:
    """The whole in one row, with its verdict.

    Args:
        cores: That the machine has.
        costs: What a model was given; None for real workers.
    """
    columns = (
        Column("verdict"),
        Column("engine"),
        Column("rows", Kind.COUNT, about="of the stream"),
        Column("left", Kind.COUNT, about="tuples that left the chain"),
        Column("egress", about="hash of all that left, in its order"),
        Column("disordered", Kind.COUNT, about="numbers of workers with another egress than the serial run"),
        Column("speed_up_bound", Kind.RATIO, about="no number of workers does more than so many times one"),
        Column("bound_by", about="the operator with the work that one worker at a time has to do"),
        Column("machine_cores", Kind.COUNT, about="of this machine"),
    )
    bound = bound_of(chain.operators, outcomes[0])
    known = [one.is_ordered for one in outcomes if one.is_ordered is not None]
    row = (
        _verdict(chain.operators, outcomes, engine, cores, bound, costs, contention),
        engine.value,
        chain.rows,
        egress.tuples,
        f"{egress.hash:016x}",
        known.count(False) if known else None,
        bound and bound.speed_up,
        bound and bound.operator,
        cores,
    )
    return Table.from_rows("The run", columns, [row])


def _verdict(
    operators: Sequence[BoundOperator],
    outcomes: Sequence[WorkersOutcome],
    engine: Engine,
    cores: int,
    bound: Bound | None,
    costs: Costs | None,
    contention: Contention,
) -> str:
    told = [_speed(outcomes, engine)]
    if engine is Engine.THREADS:
        told += _of_threads(outcomes, cores)
    if bound is not None and bound.speed_up < _FAR * max(one.workers for one in outcomes):
        told.append(_bounded(bound))
    told += _order(outcomes, engine)
    if costs is not None:
        told += [_where_from(costs), *_even_keys(operators), _assumed(contention)]
    return " ".join(told)


def _speed(outcomes: Sequence[WorkersOutcome], engine: Engine) -> str:
    first, *_ = outcomes
    if not first.throughput:
        return "There is no row to run."
    opening = "In the model " if engine is Engine.SIM else ""
    said = f"{opening}{counted(first.workers, 'worker')} {_does(first)} {number(first.throughput)} rows/s"
    if first.end_to_end:
        said += f" ({duration(first.end_to_end.p99)} at the 99th percentile)"
    others = [one for one in outcomes[1:] if one.throughput]
    if not others:
        return f"{said}."
    best = max(others, key=lambda one: one.throughput or 0.0)
    times = (best.throughput or 0.0) / first.throughput
    said += f"; {counted(best.workers, 'worker')} {_does(best)} {times:.2f} times as many"
    if best.end_to_end:
        said += f" ({duration(best.end_to_end.p99)})"
    return f"{said}{', the most' if len(others) > 1 else ''}."


def _of_threads(outcomes: Sequence[WorkersOutcome], cores: int) -> list[str]:
    """What the machine itself keeps workers from showing."""
    more = [one.workers for one in outcomes if one.workers > cores]
    told = []
    if more:
        told.append(
            f"This machine has {counted(cores, 'core')}: with {_listed(more)} workers more threads than cores take "
            "turns, and what they do says nothing of as many cores; --engine sim models those."
        )
    starved = [one for one in outcomes if one.cores is not None and one.cores < 0.9 * min(one.workers, cores)]
    if starved:
        worst = min(starved, key=lambda one: (one.cores or 0.0) / min(one.workers, cores))
        told.append(
            f"Others used the machine too: {counted(worst.workers, 'worker')} got the CPU time of {worst.cores:.2f} "
            f"cores out of {min(worst.workers, cores)}."
        )
    return told


def _bounded(bound: Bound) -> str:
    where = "has one state" if bound.kind is OperatorKind.STATEFUL else "has a fullest partition"
    return (
        f"No number of workers does more than {bound.speed_up:.3g} times one: operator {bound.operator!r} {where}, "
        f"with {share(bound.share)} of all work for one worker at a time."
    )


def _order(outcomes: Sequence[WorkersOutcome], engine: Engine) -> list[str]:
    known = [one for one in outcomes if one.is_ordered is not None]
    wrong = [one.workers for one in known if not one.is_ordered]
    if wrong:
        return [f"OUT OF ORDER: what leaves {_listed(wrong)} workers is not what leaves a serial run; this is a bug."]
    if not known:
        return ["Nothing was held against a serial run."]
    serial = "the model's serial run" if engine is Engine.SIM else "the serial run, tuple for tuple"
    return [f"What leaves is what leaves {serial}."]


def _where_from(costs: Costs) -> str:
    sources = list(dict.fromkeys(costs.sources))
    if sources == [CostSource.CHAIN]:
        return "All costs are those that the chain says."
    measured = " and ".join(source.value for source in sources if source is not CostSource.CHAIN)
    opening = "Costs that the chain does not say" if CostSource.CHAIN in sources else "Costs"
    return f"{opening} were measured on this machine, by {measured}."


def _even_keys(operators: Sequence[BoundOperator]) -> list[str]:
    """What a model says of keys that come into being in the chain, which it does not compute."""
    made = [
        repr(bound.operator.name)
        for bound in operators
        if bound.operator.kind is OperatorKind.PARTITIONED and bound.partition_of is None
    ]
    if not made:
        return []
    *others, last = made
    which = f"operators {', '.join(others)} and {last}" if others else f"operator {last}"
    return [f"The keys of {which} are made in the chain, and their skew is not modelled."]


def _assumed(contention: Contention) -> str:
    values = [f"{field.name} {getattr(contention, field.name):g}" for field in fields(contention)]
    return f"Contention is assumed: {', '.join(values)}."


def _does(one: WorkersOutcome) -> str:
    return "does" if one.workers == 1 else "do"


def _listed(numbers: Sequence[int]) -> str:
    *most, last = [f"{one:,}" for one in numbers]
    return f"{', '.join(most)} and {last}" if most else last
