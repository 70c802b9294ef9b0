"""Lossy counting on Spark: one summary per block, merged inside Spark.

No machine holds all keys. Blocks depend on row numbers alone and are counted with half the error each, so the result is
the same on any cluster; the other half of the error is spent at the end, to keep at most 2/epsilon keys.
"""

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.counting.frequencies import CounterMemory, Frequencies
from adapt.core.counting.lossy import DISTINCT_LIMIT, FLUSH_ROWS, LossyCounter, LossySummary, check_epsilon, summary_of
from adapt.core.counting.sketches import DistinctSketch
from adapt.core.counting.sliding import SlidingWindow
from adapt.core.counting.timeline import Pane, Panes, Timeline
from adapt.core.engines.spark.export import spark_key_type, stored_key_sql
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.stream import KeyType, Weight
from adapt.traces.block_cache import Work, kept_blocks, rows_held
from adapt.traces.counting.exact import WEIGHT_COLUMNS, chosen_weight, no_keys, spark_key, weights_of
from adapt.traces.sources.reading.table_files import quoted
from adapt.traces.spark.lazy import Column, DataFrame, F, T, Window
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.runner import BlockSums, added, may_overflow, runner_for
from adapt.traces.spark.session import Spark
from adapt.traces.store.trace import BLOCK_ROWS, Trace, TraceBlock, blocks_from, read_pieces


def key_column(frame: DataFrame, name: str) -> tuple[Column, KeyType]:
    """A column of keys as counts store them, with its type."""
    key_type, column = key_type_in(frame.schema, name), "`" + name.replace("`", "``") + "`"
    return F.expr(stored_key_sql(key_type).format(column)), key_type


def key_type_in(schema: "T.StructType", name: str) -> KeyType:
    """The key type of a column."""
    kind = _type_of(schema, name)
    key_type = spark_key_type(kind.simpleString())
    if key_type is None:
        raise UsageError(
            f"key column {name!r} must be text, binary, whole numbers, decimals, dates or times (got"
            f" {kind.simpleString()})"
        )
    return key_type


def amount_column(frame: DataFrame, name: str) -> tuple[Column, bool]:
    """A column of amounts, and whether it holds integers.

    Integers are bigint, others double.
    """
    is_whole = is_whole_in(frame.schema, name)
    return quoted(name).cast("bigint" if is_whole else "double"), is_whole


def is_whole_in(schema: "T.StructType", name: str) -> bool:
    """Whether a column of amounts is taken as integers."""
    kind = _type_of(schema, name)
    if not isinstance(kind, T.NumericType):
        raise UsageError(f"column {name!r} must be numeric (got {kind.simpleString()})")
    return isinstance(kind, T.IntegralType)


def _type_of(schema: "T.StructType", name: str) -> "T.DataType":
    if name not in schema.names:
        raise UsageError(f"column {name!r} does not exist{did_you_mean(name, schema.names)}")
    return schema[name].dataType


Integers: TypeAlias = NDArray[np.int64]

MOST_GROUPS = 10_000
"""The most panes or streams that are counted at once."""

_LARGEST_LIMIT = 1 << 30
_KEYS_A_PARTITION = 1 << 19
_GROUP, _TOLD, _KEY, _COUNT, _SPARED, _BLOCK = "group", "told", "key", "count", "spared", "block"
_BY = (_GROUP, _TOLD, _KEY)


def count_lossy(
    trace: Trace,
    epsilon: float,
    *,
    weight: Weight | None = None,
    window: SlidingWindow | None = None,
    spark_options: Spark = None,
    progress: Progress = silent,
) -> Frequencies:
    """Count the keys of a trace by lossy counting.

    Args:
        epsilon: The largest undercount, as a share of the total.
        weight: What a row weighs (default: its cost if the trace has costs, else 1).
        window: Count only the window of a sliding counter after the last row.

    Returns:
        At most 2/epsilon keys, by descending count; all keys, exactly, if the trace has at most `FLUSH_ROWS` rows.
    """
    check_epsilon(epsilon)
    chosen = chosen_weight(trace, weight)
    blocks = trace.blocks()
    if window is not None:
        span_us = trace.last_us - trace.first_us
        window.check_bucket(epsilon, trace.rows / span_us if span_us else None)
        blocks = blocks_from(blocks, _window_start(trace, window))
    summaries = _counted(trace, blocks, epsilon, chosen, _Ungrouped(), spark_options, progress)
    return summaries[""].summary.frequencies(epsilon, chosen, trace.key_type)


def count_panes(
    trace: Trace,
    panes: Panes,
    epsilon: float,
    *,
    weight: Weight | None = None,
    spark_options: Spark = None,
    progress: Progress = silent,
) -> Timeline:
    """Count keys per pane, as summaries that merge into windows.

    Args:
        panes: Of rows, or of time since the first row; empty panes are omitted.
        epsilon, weight, spark_options, progress: As in `count_lossy`; the error is a share of each pane's total.
    """
    check_epsilon(epsilon)
    chosen = chosen_weight(trace, weight)
    last = trace.rows - 1 if panes.length.in_rows else trace.last_us - trace.first_us
    number = int(panes.numbers(np.array([last]))[0]) + 1
    if number > MOST_GROUPS:
        raise UsageError(
            f"steps of {panes.length} are {number:,} steps, but the limit is {MOST_GROUPS:,}; use longer ones"
        )
    grouping = _ByPane(panes, trace.first_us)
    found = _counted(trace, trace.blocks(), epsilon, chosen, grouping, spark_options, progress)
    ordered = sorted((int(number), group) for number, group in found.items())
    told = tuple(Pane(number, group.first_us, group.last_us, group.summary) for number, group in ordered)
    return Timeline(panes, trace.first_us, told, epsilon, chosen, trace.key_type)


def count_streams(
    trace: Trace,
    epsilon: float,
    *,
    weight: Weight | None = None,
    spark_options: Spark = None,
    progress: Progress = silent,
) -> dict[str | None, Frequencies]:
    """Count the keys of each stream of a trace.

    Args:
        trace: A trace with a stream column.
        epsilon, weight, spark_options, progress: As in `count_lossy`.

    Returns:
        Counted keys by stream name, by descending total; rows without a stream under None.
    """
    check_epsilon(epsilon)
    chosen = chosen_weight(trace, weight)
    if "stream" not in trace.columns:
        raise UsageError(f"{trace.path} has no stream column; ingest it with --stream EXPR")
    found = _counted(trace, trace.blocks(), epsilon, chosen, _ByStream(), spark_options, progress)
    if len(found) > MOST_GROUPS:
        raise _too_many_streams()
    by_total = sorted(found.items(), key=lambda item: (-item[1].summary.total, item[0]))
    return {json.loads(name): group.summary.frequencies(epsilon, chosen, trace.key_type) for name, group in by_total}


@dataclass(frozen=True, slots=True)
class _Found:
    """The summary of one group."""

    summary: LossySummary
    first_us: int
    last_us: int


@dataclass(frozen=True, slots=True)
class _Told:
    """Facts about a group: one part for each block, and a sketch of the keys of all."""

    parts: list[dict[str, Any]]
    distinct: DistinctSketch

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> "_Told":
        """Facts that `packed` packed, together; sketches as large as one at a time."""
        parts: list[dict[str, Any]] = []
        distinct = DistinctSketch.empty(DISTINCT_LIMIT)
        for told in map(json.loads, texts):
            parts += told["parts"]
            hashes = np.frombuffer(base64.b64decode(told["distinct"]), "<u8")
            distinct = distinct.merged(DistinctSketch(hashes, DISTINCT_LIMIT))
        return cls(sorted(parts, key=itemgetter("block")), distinct)

    def packed(self) -> str:
        """As a text."""
        hashes = base64.b64encode(self.distinct.smallest.astype("<u8").tobytes()).decode()
        return json.dumps({"parts": self.parts, "distinct": hashes})


class _Group:
    """One group while a block is counted."""

    def __init__(self, counter: LossyCounter, weight: Weight) -> None:
        self._counter = counter
        self._weight = weight
        self.rows = 0
        self._first_us = self._last_us = 0

    def add(self, keys: pa.Array, weights: Any, times_us: Integers | None = None) -> None:
        self._counter.update(keys, weights)
        if times_us is not None:
            self._first_us = int(times_us[0]) if not self.rows else self._first_us
            self._last_us = int(times_us[-1])
        self.rows += len(keys)

    def as_rows(self, name: str, block: int) -> pa.RecordBatch:
        """One row per listed key, then one with the facts about the block."""
        summary = self._counter.summary()
        part = {
            "block": block,
            "rows": summary.rows,
            "total": summary.total,
            "missed": summary.missed,
            "entries": summary.memory.entries,
            "buffer": summary.memory.buffer,
            "first_us": self._first_us,
            "last_us": self._last_us,
        }
        told = _Told([part], summary.distinct)
        size = len(summary) + 1
        kind = pa.float64() if self._weight is Weight.COST else pa.int64()
        spared = summary.missed - summary.errors
        return pa.RecordBatch.from_arrays(
            [
                pa.array([name] * size, pa.string()),
                pa.concat_arrays([pa.nulls(size - 1, pa.string()), pa.array([told.packed()])]),
                pa.concat_arrays([summary.keys, pa.nulls(1, summary.keys.type)]),
                pa.concat_arrays([pa.array(summary.counts, kind), pa.array([0], kind)]),
                pa.concat_arrays([pa.array(spared, kind), pa.array([0], kind)]),
                pa.array(np.full(size, block, np.int64)),
            ],
            names=[_GROUP, _TOLD, _KEY, _COUNT, _SPARED, _BLOCK],
        )


@dataclass(frozen=True, slots=True)
class _Ungrouped:
    """All rows in one group."""

    columns: tuple[str, ...] = ()
    least_rows: int = BLOCK_ROWS

    def groups_of(self, _block: TraceBlock) -> list[str] | None:
        """The groups of a block's rows; None if only the rows tell."""
        return [""]

    def cut(self, batch: pa.RecordBatch, _first_row: int) -> Iterator[tuple[str, pa.RecordBatch]]:
        yield "", batch


@dataclass(frozen=True, slots=True)
class _ByPane:
    """Rows by pane."""

    panes: Panes
    origin_us: int
    columns: tuple[str, ...] = ("ts",)

    @property
    def least_rows(self) -> int:
        """Fewest rows of a group that follow each other, but for the last group."""
        return self.panes.length.size // self.panes.per_length if self.panes.length.in_rows else 0

    def groups_of(self, block: TraceBlock) -> list[str] | None:
        """As `_Ungrouped.groups_of`."""
        first, last = self.panes.numbers(np.array([block.first_row, block.first_row + block.rows - 1]))
        return [str(number) for number in range(first, last + 1)] if self.panes.length.in_rows else None

    def cut(self, batch: pa.RecordBatch, first_row: int) -> Iterator[tuple[str, pa.RecordBatch]]:
        rows = self.panes.length.in_rows
        positions = np.arange(first_row, first_row + len(batch)) if rows else _times(batch) - self.origin_us
        numbers = self.panes.numbers(positions)
        for first, end in _runs(numbers):
            yield str(numbers[first]), batch.slice(first, end - first)


@dataclass(frozen=True, slots=True)
class _ByStream:
    """Rows by stream, in order within each stream."""

    columns: tuple[str, ...] = ("ts", "stream")
    least_rows: int = 0

    def groups_of(self, _block: TraceBlock) -> list[str] | None:
        """As `_Ungrouped.groups_of`."""
        return None

    def cut(self, batch: pa.RecordBatch, _first_row: int) -> Iterator[tuple[str, pa.RecordBatch]]:
        encoded = pc.dictionary_encode(batch.column("stream"), null_encoding="encode")
        codes = encoded.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        names, together = encoded.dictionary.to_pylist(), batch.take(pa.array(order))
        for first, end in _runs(codes[order]):
            yield json.dumps(names[codes[order[first]]]), together.slice(first, end - first)


_Grouping: TypeAlias = _Ungrouped | _ByPane | _ByStream


def _counted(
    trace: Trace,
    blocks: Sequence[TraceBlock],
    epsilon: float,
    weight: Weight,
    grouping: _Grouping,
    spark_options: Spark,
    progress: Progress,
) -> dict[str, _Found]:
    """The summary of each group over some blocks, each counted with half the error."""
    if not blocks:
        raise no_keys(trace.path)
    # Memory fits as many keys as rows between two purges, so a short trace is counted exactly.
    short = sum(block.rows for block in blocks) <= FLUSH_ROWS
    most = FLUSH_ROWS if short else int(2 / epsilon)
    work = kept_blocks(
        trace.path,
        trace.manifest.files,
        blocks,
        _block_counter(blocks, ARROW_TYPES[trace.key_type], epsilon / 2, weight, grouping, most),
        lambda block: ["counts", epsilon, weight, most, grouping.columns] if _only(grouping, block) else None,
    )
    grouped = bool(grouping.columns)
    asked = BlockSums(
        "counting keys",
        len(blocks),
        partial(_named, work, [_only(grouping, block) for block in blocks]),
        _schema(trace.key_type, weight),
        _BY,
        _amounts(weight),
        _BLOCK,
        partitions=-(-len(blocks) * most // _KEYS_A_PARTITION),
        together=partial(_together, amounts=_amounts(weight)),
        narrow=partial(_narrowed, most=len(blocks) + most + 1, grouped=grouped),
        most=None if grouped else len(blocks) + min(most + 1, int(trace.profile["distinct_keys"])),
    )
    many = range(MOST_GROUPS)
    together = None if grouped else rows_together(trace, weight)
    rows = rows_held(blocks, lambda block: (most + 1) * len(grouping.groups_of(block) or many), together)
    runner = runner_for(rows, spark_options, progress)
    sums = runner.sums(asked)
    return _summaries(sums, trace.key_type, weight, most, len(blocks), grouped=grouped)


def rows_together(trace: Trace, weight: Weight) -> int | None:
    """Most rows of all blocks added up; None for floats."""
    return None if weight is Weight.COST else int(trace.profile["distinct_keys"]) + len(trace.blocks())


def _block_counter(
    blocks: Sequence[TraceBlock], kind: pa.DataType, epsilon: float, weight: Weight, grouping: _Grouping, room: int
) -> Callable[[int], Iterator[pa.RecordBatch]]:
    """The function that counts a block, by its index in `blocks`, with `room` keys per group."""
    columns = [*grouping.columns, "key", *([WEIGHT_COLUMNS[weight]] if weight is not Weight.COUNT else [])]
    # Dictionary-encoded keys stay encoded, so rows are never decoded; but each slice carries the whole dictionary.
    encoded = ("key",) if weight is Weight.COUNT and grouping.least_rows >= FLUSH_ROWS else ()
    most, too_many = MOST_GROUPS, _too_many_streams()
    flush_rows = BLOCK_ROWS if weight is Weight.COST else FLUSH_ROWS  # float sums as in exact counting

    def work(place: int) -> Iterator[pa.RecordBatch]:
        block = blocks[place]
        whole = _only(grouping, block) is not None
        groups: dict[str, _Group] = {}
        row = block.first_row
        for batch in read_pieces(block.pieces, columns, encoded):
            for name, part in [("", batch)] if whole else grouping.cut(batch, row):
                if name not in groups:
                    if len(groups) == most:
                        raise too_many
                    counter = LossyCounter(epsilon, kind, weight, flush_rows=flush_rows, purge_above=room)
                    groups[name] = _Group(counter, weight)
                times = _times(part) if "ts" in columns else None
                groups[name].add(part.column("key"), weights_of(part, weight), times)
            row += batch.num_rows
        for name, group in groups.items():
            yield group.as_rows(name, block.index)

    return work


def _only(grouping: _Grouping, block: TraceBlock) -> list[str] | None:
    """The group of all rows of a block; None if there may be several."""
    groups = grouping.groups_of(block)
    return groups if groups is not None and len(groups) == 1 else None


def _named(work: Work, groups: Sequence[list[str] | None], place: int) -> Iterator[pa.RecordBatch]:
    """The rows of a block, with the name of its group where it has but one."""
    for batch in work(place):
        only = groups[place]
        yield batch if only is None else batch.set_column(0, _GROUP, pa.array(only * len(batch), pa.string()))


def _too_many_streams() -> BadInput:
    return BadInput(
        f"the trace has more than {MOST_GROUPS:,} streams, the limit for counting each; use --over time or omit --over"
    )


def _schema(key_type: KeyType, weight: Weight) -> str:
    number = "double" if weight is Weight.COST else "bigint"
    return (
        f"{_GROUP} string, {_TOLD} string, {_KEY} {spark_key(key_type)}, {_COUNT} {number}, {_SPARED} {number},"
        f" {_BLOCK} bigint"
    )


def _amounts(weight: Weight) -> dict[str, Weight]:
    return {_COUNT: weight, _SPARED: weight}


def _narrowed(sums: DataFrame, *, most: int, grouped: bool) -> DataFrame:
    """The rows of `most` keys of each group, inside Spark; facts about blocks are rows of their own and stay.

    Keys rank by count plus error, the most they may weigh; one key more than wanted bounds the weight of those omitted.
    """
    hottest = [F.col(_TOLD).isNull(), (F.col(_COUNT) - F.col(_SPARED)).desc(), F.asc_nulls_first(_KEY)]
    if grouped:
        ranked = sums.withColumn("rank", F.row_number().over(Window.partitionBy(_GROUP).orderBy(*hottest)))
        return ranked.where(F.col(_TOLD).isNotNull() | (F.col("rank") <= most)).drop("rank")
    return sums.orderBy(*hottest).limit(most) if most <= _LARGEST_LIMIT else sums


def _together(rows: pa.Table, amounts: dict[str, Weight]) -> pa.Table:
    """Rows of some blocks as fewer: facts of a group in one row, and whole amounts of a key in one.

    Floats stay apart, as they are added in the order of blocks, and so do amounts that may overflow.
    """
    told, keys = rows.filter(pc.is_valid(rows[_TOLD])), rows.filter(pc.is_null(rows[_TOLD]))
    if Weight.COST not in amounts.values() and not any(may_overflow(keys[amount]) for amount in amounts):
        keys = added(keys, _BY, amounts)
        keys = keys.append_column(_BLOCK, pa.array(np.zeros(len(keys), np.int64)))
    names = told[_GROUP].to_pylist()
    facts = _told(told)
    firsts = told.take([names.index(name) for name in facts])
    texts = pa.array([each.packed() for each in facts.values()], pa.string())
    return pa.concat_tables([keys, firsts.set_column(firsts.schema.get_field_index(_TOLD), _TOLD, texts)])


def _told(rows: pa.Table) -> dict[str, _Told]:
    """The facts about each group, from rows of facts."""
    texts: dict[str, list[str]] = {}
    for name, text in zip(rows[_GROUP].to_pylist(), rows[_TOLD].to_pylist(), strict=True):
        texts.setdefault(name, []).append(text)
    return {name: _Told.of_texts(each) for name, each in texts.items()}


def _summaries(
    table: pa.Table, key_type: KeyType, weight: Weight, most: int, blocks: int, *, grouped: bool
) -> dict[str, _Found]:
    """One summary per group from the sums over its blocks, with at most `most` keys."""
    told = _told(table.filter(pc.is_valid(table[_TOLD])))
    keys = table.filter(pc.is_null(table[_TOLD]))
    if keys[_COUNT].null_count:
        raise BadInput(f"the total {weight} of one key overflows an int64; use a larger unit")
    of_group = _by_group(keys) if grouped else {"": keys}
    kind = ARROW_TYPES[key_type]
    room = {name: most + 1 + (blocks - len(facts.parts)) for name, facts in told.items()}
    hottest = {name: _hottest(of_group.get(name, keys[:0]), room[name]) for name in told}
    return {name: _found(hottest[name], facts, kind, weight, most) for name, facts in told.items()}


def _hottest(keys: pa.Table, most: int) -> pa.Table:
    """The keys that `_narrowed` keeps of one group."""
    if len(keys) <= most:
        return keys
    negative = pc.negate(pc.subtract(keys[_COUNT], keys[_SPARED]))
    ranked = pa.table({"weight": negative, "known": pc.is_valid(keys[_KEY]), "key": keys[_KEY]})
    order = pc.sort_indices(ranked, [(name, "ascending") for name in ranked.column_names])
    return keys.take(order[:most])


def _by_group(keys: pa.Table) -> dict[str, pa.Table]:
    """The rows of each group with keys."""
    encoded = keys[_GROUP].combine_chunks().dictionary_encode()
    codes = encoded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    names, together = encoded.dictionary.to_pylist(), keys.take(pa.array(order))
    return {names[codes[order[first]]]: together.slice(first, end - first) for first, end in _runs(codes[order])}


def _found(keys: pa.Table, facts: _Told, kind: pa.DataType, weight: Weight, most: int) -> _Found:
    """The summary of one group from its keys and the facts about its blocks."""
    parts = facts.parts
    missed, total = sum(part["missed"] for part in parts), sum(part["total"] for part in parts)
    if weight is not Weight.COST and total >= 2**63:
        raise BadInput(f"the total {weight} of all rows overflows an int64; use a larger unit")
    column = keys[_KEY].combine_chunks().cast(kind)
    counts = keys[_COUNT].combine_chunks().to_numpy(zero_copy_only=False)
    errors = np.maximum(missed - keys[_SPARED].combine_chunks().to_numpy(zero_copy_only=False), 0)
    rows = sum(part["rows"] for part in parts)
    summary = summary_of(column, counts, errors, missed, total, rows, facts.distinct).cut(most)
    memory = CounterMemory(max(part["entries"] for part in parts), max(part["buffer"] for part in parts))
    return _Found(replace(summary, memory=memory), parts[0]["first_us"], parts[-1]["last_us"])


def _window_start(trace: Trace, window: SlidingWindow) -> int:
    """The first row of the counter in use at the end of the trace."""
    last = trace.rows - 1 if window.length.in_rows else trace.last_us - trace.first_us
    start = window.panes.start(window.in_use(int(window.panes.numbers(np.array([last]))[0])))
    return start if window.length.in_rows else _rank_of(trace, trace.first_us + start)


def _rank_of(trace: Trace, time_us: int) -> int:
    """The first row not before a time, by bisection over blocks."""
    blocks = trace.blocks()
    low, high = 0, len(blocks) - 1
    while low < high:
        middle = (low + high + 1) // 2
        first = next(iter(read_pieces(blocks[middle].pieces[:1], ["ts"])))
        low, high = (middle, high) if int(_times(first)[0]) < time_us else (low, middle - 1)
    times = np.concatenate([_times(batch) for batch in read_pieces(blocks[low].pieces, ["ts"])])
    return blocks[low].first_row + int(np.searchsorted(times, time_us))


def _times(batch: pa.RecordBatch) -> Integers:
    times: Integers = batch.column("ts").cast(pa.int64()).to_numpy()
    return times


def _runs(numbers: Integers) -> Iterator[tuple[int, int]]:
    """Start and end of each run of equal numbers."""
    return pairwise([0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)] if len(numbers) else [])
