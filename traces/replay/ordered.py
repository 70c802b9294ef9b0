"""Ordered replay of a stored trace, without Spark."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.errors import BadInput, UsageError
from adapt.core.ordered.chain.bound import BoundChain, bind, bind_blocks
from adapt.core.ordered.chain.chain import Chain
from adapt.core.ordered.chain.columns import Words, named_inputs, split_inputs
from adapt.core.ordered.chain.names import Backend, PartitionBy
from adapt.core.ordered.replay.arrivals import Ordered
from adapt.core.ordered.replay.replay import check_chain, replay_ordered
from adapt.core.ordered.replay.sustainable import SEARCH_CASES
from adapt.core.ordered.replay.tables import OrderedRun
from adapt.core.stage.input.keyed_rows import KEY
from adapt.core.stream import KeyType
from adapt.core.values import duration
from adapt.traces.replay.chains import NamedChain
from adapt.traces.replay.egress import EgressTarget, opened_egress
from adapt.traces.replay.files.scratch import Scratch
from adapt.traces.replay.length import Length
from adapt.traces.replay.replay import Asked, Replayed
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.store.plans import NamedPlan
from adapt.traces.store.trace import BLOCK_ROWS, Trace

IN_MEMORY_BYTES = 1 << 27
"""More tuples than this, at 8 bytes per field and row, are kept in a temporary file."""

LONGEST_S = 3600.0
"""Longest time for which rows arrive in a replay."""

MOST_TUPLE_BYTES = 8 << 30
"""Most memory for the tuples of a graph, which are not kept in a file."""

_ANY = "ts"


@dataclass(frozen=True, slots=True)
class OrderedReplay:
    """Replay through a chain by each number of workers.

    The order of the rows is the serial order. The columns that the chain names take 8 bytes per value: in memory, or if
    they are more than `IN_MEMORY_BYTES`, in a temporary file, which is read along with the run.
    """

    chain: NamedChain  # chain of operators
    ordered: Ordered  # workers, backend and settings
    plan: NamedPlan | None = None  # plan for the operators that are partitioned by a plan
    rows: int | None = None  # number of first rows to replay; None for all
    # where the output rows of the run with the most workers are written; None for nowhere
    output: EgressTarget | None = None
    # traces of further inputs of the chain, by their names in it
    more: Mapping[str, Trace] = field(default_factory=dict)
    clock: Callable[[], float] = perf_counter  # seconds, for a serial run
    cpu_clock: Callable[[], float] = process_time  # CPU seconds of this process

    @contextmanager
    def replayed(self, trace: Trace, asked: Asked) -> Iterator[Replayed[OrderedRun]]:
        """Replay a trace."""
        if self.output is not None:
            self.output.check()
            if self.ordered.backend is Backend.SIM:
                raise UsageError(f"--output needs --backend {Backend.THREADS}; the model gives times, and no rows")
        chain, plan, rows = self.chain, self.plan, self.rows
        others = _others(chain, self.more)
        chain.check_columns(trace.columns, *(other.columns for other in others))
        _check_plan(chain, plan)
        if rows is not None and rows < 1:
            raise UsageError(f"--rows must be at least 1 (got {rows})")
        with Scratch() as scratch:
            bound = bound_trace(trace, chain, plan, rows, asked.progress, others, scratch)
            check_chain(bound, self.ordered)
            times_us = None
            if any(each.follows_trace for each in self.ordered.arrivals):
                times_us = read_times_us((trace, *others), bound, asked.progress, chain.chain)
            _check_length(bound, self.ordered, times_us)
            parameters: dict[str, Any] = {"chain": {"name": chain.name, "text": chain.text}, "rows": rows}
            inputs = [each.as_input for each in (trace, *others)]
            if plan is not None:
                parameters["plan"] = plan.plan.content_hash()
                inputs.append(plan.as_input)
            with opened_egress(bound, chain.preset, self.output) as egress:
                run = replay_ordered(
                    bound,
                    self.ordered,
                    clock=self.clock,
                    cpu_clock=self.cpu_clock,
                    parameters=parameters,
                    told=asked.progress,
                    taken=None if self.output is None and chain.preset is None else egress.take,
                    times_us=times_us,
                )
                if self.output is not None and run.outcomes[-1].is_ordered is False:
                    raise RuntimeError("the output differs from the serial run's, so it was not written; this is a bug")
                answer = egress.finish() if self.ordered.backend is Backend.THREADS else None
            run = replace(run, answer=answer)
            yield Replayed(run, inputs)


def _others(chain: NamedChain, more: Mapping[str, Trace]) -> tuple[Trace, ...]:
    """Traces of the inputs after the first, in their order."""
    first, *others = chain.chain.graph.inputs
    telling = chain.chain.input_column
    if telling is not None and more:
        raise UsageError(
            f"--input {next(iter(more))}: {chain.name} takes all inputs from TRACE, whose column {telling!r} "
            "(input_column) names them; omit --input, or remove input_column from the chain"
        )
    if telling is not None:
        return ()
    for name in more:
        if name not in others:
            known = f"its first input, {first!r}, is TRACE" if name == first else f"further inputs: {', '.join(others)}"
            raise UsageError(
                f"--input {name}: {chain.name} has no further input {name!r} ({known if others else 'it has only one'})"
            )
    for name in others:
        if name not in more:
            raise UsageError(f"{chain.name}: input {name!r} has no trace; add --input {name}=TRACE")
    return tuple(more[name] for name in others)


def _check_length(bound: BoundChain, ordered: Ordered, times_us: Words | None) -> None:
    """Refuse a replay that would take hours."""
    is_real = ordered.backend is Backend.THREADS
    numbers = SEARCH_CASES if ordered.finds_workers else len(ordered.workers)
    slow = ", a higher rate of arrivals" if ordered.arrivals and is_real else ""
    instead = f"give --rows, fewer --workers, fewer --repeats{slow}"
    Length(len(bound.tuples), cases=numbers * (ordered.repeats if is_real else 1)).check(instead)
    least_s = arriving_s(ordered, bound.rows, times_us) if is_real else 0.0
    if least_s > LONGEST_S:
        raise UsageError(
            f"rows arrive for {duration(least_s)} in all runs, and at most {duration(LONGEST_S)} is run; {instead}"
        )


def arriving_s(ordered: Ordered, rows: int, times_us: Words | None) -> float:
    """Least seconds for which rows arrive, over all runs of threads."""
    least_s = 0.0
    for each in ordered.arrivals:
        if each.rate is not None:
            least_s += rows / each.rate
        elif each.speedup is not None and times_us is not None:
            least_s += float(times_us[rows - 1] - times_us[0]) / 1e6 / each.speedup
    return least_s * len(ordered.workers) * ordered.repeats


def bound_trace(
    trace: Trace,
    chain: NamedChain,
    plan: NamedPlan | None = None,
    rows: int | None = None,
    progress: Progress = silent,
    others: Sequence[Trace] = (),
    scratch: Scratch | None = None,
) -> BoundChain:
    """Bind a chain to the first rows of its inputs, or all.

    Args:
        scratch: Keeps more than `IN_MEMORY_BYTES` of tuples; None to have all in memory.
    """
    traces = (trace, *others)
    of_each = [each.rows if rows is None else min(rows, each.rows) for each in traces]
    for each, count in zip(traces, of_each, strict=True):
        if not count:
            raise BadInput(f"{each.path} has no rows to run")
    total, columns = sum(of_each), chain.columns() or [_ANY]
    by_plan, size = None if plan is None else plan.plan.partitioner(), total * 8 * (len(columns) + 1)
    if scratch is not None and size > IN_MEMORY_BYTES and chain.chain.graph.is_linear:
        scratch.check(size, f"give --rows {total // 10} or fewer")
        typed = (_typed(chain, trace, block, plan) for block in _blocks(trace, columns, total, progress))
        return bind_blocks(chain.chain, typed, by_plan, scratch.store, f"{chain.name}: ")
    if size > MOST_TUPLE_BYTES:
        most = MOST_TUPLE_BYTES // (8 * (len(columns) + 1))
        raise UsageError(
            f"{total:,} rows with {len(columns)} columns need more than {MOST_TUPLE_BYTES >> 30} GiB of memory, which "
            f"holds all rows of a graph; use --rows {most} or fewer"
        )
    reads = [
        _whole(chain, each, [name for name in columns if name in each.columns], count, plan, progress)
        for each, count in zip(traces, of_each, strict=True)
    ]
    if others and rows is not None:
        reads = _first_rows(reads, rows)
    telling, skipped = chain.chain.input_column, None
    try:
        if telling is not None:
            reads, skipped = split_inputs(chain.chain, telling, reads[0])
        return replace(bind(chain.chain, reads[0], by_plan, reads[1:]), skipped=skipped)
    except BadInput as error:
        raise BadInput(f"{chain.name}: {error}") from error


def _whole(
    chain: NamedChain, trace: Trace, columns: Sequence[str], rows: int, plan: NamedPlan | None, progress: Progress
) -> dict[str, pa.ChunkedArray]:
    """The first rows of a trace, by column."""
    read = [_typed(chain, trace, block, plan) for block in _blocks(trace, columns, rows, progress)]
    return {name: pa.chunked_array([chunk for block in read for chunk in block[name].chunks]) for name in columns}


def _first_rows(reads: Sequence[dict[str, pa.ChunkedArray]], rows: int) -> list[dict[str, pa.ChunkedArray]]:
    """The first rows of several inputs in the order of time, then of the inputs."""
    times = [np.asarray(read[_ANY].cast(pa.int64()).to_numpy(), np.int64) for read in reads]
    of_row = np.repeat(np.arange(len(reads)), [len(each) for each in times])
    first = of_row[np.argsort(np.concatenate(times), kind="stable")[:rows]]
    counts = np.bincount(first, minlength=len(reads)).tolist()
    return [
        {name: column.slice(0, count) for name, column in read.items()}
        for read, count in zip(reads, counts, strict=True)
    ]


def read_times_us(traces: Sequence[Trace], bound: BoundChain, progress: Progress, chain: Chain) -> Words:
    """Times of the rows of all inputs in microseconds since 1970."""
    telling = chain.input_column
    names, rows = [] if telling is None else [telling], bound.rows if bound.skipped is None else bound.skipped.total

    def times(trace: Trace) -> Iterator[Words]:
        for block in _blocks(trace, [_ANY, *names], min(rows, trace.rows), progress):
            if telling is not None:
                block = block.filter(pc.is_in(named_inputs(block[telling], telling), pa.array(chain.graph.inputs)))
            yield np.asarray(block[_ANY].cast(pa.int64()).to_numpy(), np.int64)

    if len(traces) == 1:
        return bound.store(times(traces[0]))
    return np.sort(np.concatenate([block for each in traces for block in times(each)]))[: bound.rows]


def _blocks(trace: Trace, columns: Sequence[str], rows: int, progress: Progress) -> Iterator[pa.Table]:
    """The first rows of a trace, at most `BLOCK_ROWS` at a time."""
    batches: list[pa.RecordBatch] = []
    done = held = 0
    for batch in trace.batches(columns):
        progress("reading", done, rows)
        if held + batch.num_rows > BLOCK_ROWS and batches:
            yield pa.Table.from_batches(batches)
            batches, held = [], 0
        batches.append(batch.slice(0, rows - done))
        done += batches[-1].num_rows
        held += batches[-1].num_rows
        if done >= rows:
            break
    yield pa.Table.from_batches(batches)


def _typed(chain: NamedChain, trace: Trace, block: pa.Table, plan: NamedPlan | None) -> dict[str, pa.ChunkedArray]:
    """Columns of a block by name, with keys of a plan's type."""
    columns = {name: block[name] for name in block.column_names}
    for operator in chain.chain.operators:
        if plan is None or operator.by is not PartitionBy.PLAN or operator.key not in columns:
            continue
        kind = str(columns[operator.key].type)
        key_type = trace.key_type if operator.key == KEY else next((each for each in KeyType if each == kind), None)
        if key_type is not None:
            source = f"column {operator.key!r} of operator {operator.name!r}"
            plan.plan.check_keys(key_type, source, plan.name)
    return columns


def _check_plan(chain: NamedChain, plan: NamedPlan | None) -> None:
    by_plan = [operator.name for operator in chain.chain.operators if operator.by is PartitionBy.PLAN]
    if by_plan and plan is None:
        raise UsageError(
            f"{chain.name}: operator {by_plan[0]!r} is partitioned by a plan; give one with --plan "
            "(made by `adapt partition build`)"
        )
    if plan is not None and not by_plan:
        raise UsageError(
            f'{chain.name}: no operator uses the plan {plan.name}; set by = "plan" on a partitioned operator and '
            "remove its partitions"
        )
