"""Binding of a chain to a trace, with integer keys and partitions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.atomics import STACK_WORDS
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.keys.partitioner import Partitioner
from adapt.core.ordered.chain.chain import (
    TIME,
    VALUE,
    Chain,
    Operator,
    Punctuations,
    made_before,
    made_keys,
    role_of,
)
from adapt.core.ordered.chain.columns import (
    Columns,
    Merged,
    Skipped,
    Words,
    column_of,
    cost_ns,
    encoded_column,
    key_column,
    numbered,
    range_partitions,
    whole_numbers,
    whole_words,
)
from adapt.core.ordered.chain.graph import FROM, Graph
from adapt.core.ordered.chain.layouts import (
    Layouts,
    cost_field,
    is_from,
    key_field,
    layouts_of,
    payload_bytes,
    payload_fields,
    payload_of,
    places_of,
    reaching,
)
from adapt.core.ordered.chain.mixing import mixed
from adapt.core.ordered.chain.names import PartitionBy, PartitionCount
from adapt.core.ordered.chain.own import OwnFunction, WordType
from adapt.core.partitioning.schemes.uniform import UniformPartitioner

PartitionOf: TypeAlias = NDArray[np.int64]
"""Partition of each key by its number, shape (keys,)."""
Store: TypeAlias = Callable[[Iterator[Words]], Words]
"""Puts blocks of words together, one after the other: in memory, or in a file."""

END = (1 << 62) - 1
"""Time of the punctuation at the end of a stream."""


@dataclass(frozen=True, slots=True)
class Edge:
    """How an operator takes the tuples of a stream in a graph."""

    # for each field that it is given, its place in the tuple, or -1 and a word; None for the tuple itself
    places: tuple[tuple[int, int], ...] | None
    key_at: int  # place of its key in the tuple; -1 without one
    cost_at: int  # place of its cost in the tuple; -1 without one
    goes_on: bool  # whether the tuple goes on too, behind the outputs: a later operator reads it, or it leaves


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """How an operator of a graph works in a chain.

    It passes on the tuples of streams that it does not read.

    The last word of a tuple is the number of its stream.
    """

    inner: "BoundOperator"  # the operator with its own fields
    edges: Mapping[int, Edge]  # the streams that it reads
    stream: int  # the stream that it makes
    streams: int  # number of streams of the graph
    passes: tuple[int, ...]  # streams behind it that are made before it


@dataclass(frozen=True, slots=True, eq=False)
class BoundOperator:
    """An operator with the layout of its tuples."""

    operator: Operator
    number: int  # place in the chain, from 0
    fields: tuple[str, ...]  # names of the words of its inputs
    gives: tuple[str, ...]  # names of the words of its outputs
    partition_of: PartitionOf | None  # the partition of each key; None if it has no key, or a key made in the chain
    partitions: int  # number of partitions; 1 if it has no key
    # types of the fields that own functions read; others are integers
    types: Mapping[str, WordType] = field(default_factory=dict)
    # how it works in a graph, where fields are places for those of any stream; None in a chain
    route: Route | None = None
    texts: Mapping[str, pa.Array] = field(default_factory=dict)  # texts by field, in the order of their numbers

    @property
    def value_at(self) -> int:
        """The word of a tuple that the operator changes."""
        return self.fields.index(VALUE)

    @property
    def key_at(self) -> int:
        """Word of a tuple with its key's number; -1 without a key.

        Also -1 in a graph, where streams differ.

        Keys that are made in the chain are stored as they are.
        """
        key = self.operator.key
        if key is None or self.route is not None:
            return -1
        return self.fields.index(key if self.partition_of is None else key_field(key))

    @property
    def cost_at(self) -> int:
        """Word of a tuple with its cost in nanoseconds; -1 if constant."""
        if self.route is not None:
            return self.route.inner.cost_at
        return self.fields.index(cost_field(self.operator.cost)) if isinstance(self.operator.cost, str) else -1

    @property
    def keys(self) -> int:
        """Number of keys of the trace with a state; at least 1."""
        return 1 if self.partition_of is None else len(self.partition_of)

    def places(self, *names: str) -> tuple[int, ...]:
        """Words of a tuple with these fields."""
        return tuple(self.fields.index(name) for name in names)

    def partition(self, row: Sequence[int]) -> int:
        """Partition of a tuple."""
        if self.operator.key is None:
            return 0
        key = row[self.key_at]
        return mixed(key) % self.partitions if self.partition_of is None else int(self.partition_of[key])


def in_memory(blocks: Iterator[Words]) -> Words:
    """Blocks of words in one array."""
    first, *more = blocks
    return np.concatenate([first, *more]) if more else first


@dataclass(frozen=True, slots=True, eq=False)
class BoundChain:
    """A chain with its input tuples."""

    operators: tuple[BoundOperator, ...]  # operators in the order of processing
    tuples: Words  # input tuples in serial order, shape (tuples, fields)
    # indexes of the tuples that are punctuations, ascending; only their first word, the time, has a meaning
    punctuations: Words = field(default_factory=lambda: np.zeros(0, np.int64))
    types: Mapping[str, WordType] = field(default_factory=dict)  # types of the output's fields; others are integers
    texts: Mapping[str, pa.Array] = field(default_factory=dict)  # texts by column, in the order of their numbers
    times: Mapping[str, pa.DataType] = field(default_factory=dict)  # types of the columns that hold times
    graph: Graph | None = None  # which streams each operator reads; None if they follow each other
    streams: tuple[tuple[str, ...], ...] = ()  # in a graph, the fields of each stream
    stream_types: tuple[Mapping[str, WordType], ...] = ()  # in a graph, the types of these fields
    store: Store = in_memory  # keeps what is as long as the tuples
    runs: bool = False  # whether a model runs built-in functions on the stream, instead of drawing outputs
    skipped: Skipped | None = None  # rows of the trace that name no input; None unless a column names the inputs

    def part(self, first: int, end: int) -> "BoundChain":
        """The chain over some consecutive tuples."""
        at = self.punctuations
        inside = at[(at >= first) & (at < end)] - first
        return replace(self, tuples=self.tuples[first:end], punctuations=inside)

    def by_workers(self, workers: int) -> "BoundChain":
        """The chain for a run by a number of workers.

        Until then, operators with a partition per worker have a single partition.
        """
        if all(bound.operator.partitions is not PartitionCount.WORKERS for bound in self.operators):
            return self
        return replace(self, operators=tuple(_by_workers(bound, workers, self.texts) for bound in self.operators))

    def taken(self, places: Iterable[Words]) -> "BoundChain":
        """The chain over some tuples, in blocks of rising places."""
        at, kept, done = np.append(self.punctuations, -1), [self.punctuations[:0]], 0

        def blocks() -> Iterator[Words]:
            nonlocal done
            for block in places:
                is_punctuation = at[np.searchsorted(self.punctuations, block)] == block
                kept.append(done + np.flatnonzero(is_punctuation))
                done += len(block)
                yield self.tuples[block]

        return replace(self, tuples=self.store(blocks()), punctuations=np.concatenate(kept))

    @property
    def rows(self) -> int:
        """Number of tuples that are rows of the trace."""
        return len(self.tuples) - len(self.punctuations)

    def column(self, name: str) -> Words:
        """Words of a field, in rows of inputs that have it."""
        if self.graph is None:
            return self.tuples[:, self.fields.index(name)] if name in self.fields else self.tuples[:0, 0]
        of_inputs = enumerate(self.streams[: len(self.graph.inputs)])
        found = [
            self.tuples[self.tuples[:, -1] == at, fields.index(name)] for at, fields in of_inputs if name in fields
        ]
        return np.concatenate([self.tuples[:0, 0], *found])

    def rows_by_input(self) -> Words:
        """The input of each row of a graph."""
        is_row = np.ones(len(self.tuples), bool)
        is_row[self.punctuations] = False
        of_rows: Words = self.tuples[is_row, -1]
        return of_rows

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the words of an input tuple."""
        return self.operators[0].fields

    @property
    def gives(self) -> tuple[str, ...]:
        """Names of the words of an output tuple."""
        return self.operators[-1].gives


def columns_by_operator(chain: Chain) -> tuple[tuple[str, ...], ...]:
    """Columns of its inputs that each operator reads."""
    keys_made = made_keys(chain.operators, chain.graph)
    named = []
    for number, (operator, before) in enumerate(
        zip(chain.operators, made_before(chain.operators, chain.graph), strict=True)
    ):
        made = before | _made_at_ingress(chain)
        key = [operator.key] if operator.key is not None and operator.name not in keys_made else []
        cost = [operator.cost] if isinstance(operator.cost, str) else []
        reads = [name for name in role_of(operator.function).reads if not is_from(chain, name)]
        if operator.key is not None and operator.name in keys_made and reaching(chain, number, operator.key):
            reads.append(operator.key)
        of_inputs = (name for name in reads if name not in made or (name != VALUE and reaching(chain, number, name)))
        named.append(tuple(dict.fromkeys((*key, *cost, *of_inputs))))
    return tuple(named)


def columns_of(chain: Chain) -> tuple[str, ...]:
    """Columns of its inputs that a chain reads, without duplicates."""
    times = () if chain.punctuations is None else (chain.punctuations.column,)
    merging = (TIME,) if chain.inputs[1:] else ()
    named = (name for columns in columns_by_operator(chain) for name in columns)
    telling = () if chain.input_column is None else (chain.input_column,)
    return tuple(dict.fromkeys((*named, *times, *merging, *telling)))


def bind(
    chain: Chain,
    columns: Columns,
    plan: Partitioner | None = None,
    more: Sequence[Columns] = (),
) -> BoundChain:
    """Bind a chain to a trace; row order is the serial order.

    Args:
        columns: Columns of the trace by name, all of one length; at least those of `columns_of`.
        plan: Maps the keys of operators that are partitioned by a plan.
        more: Columns of further inputs. Rows of all are ordered by `ts`, then by input.
    """
    graph = chain.graph
    if len(more) + 1 != len(graph.inputs):
        raise UsageError(f"the chain has {len(graph.inputs)} inputs: {', '.join(graph.inputs)} (got {len(more) + 1})")
    if graph.is_linear:
        return bind_blocks(chain, [columns], plan, in_memory)
    binder, rows = _Binder(chain, ""), Merged(graph.inputs, (columns, *more), TIME)
    encoded, layouts = binder.encoded(rows), binder.layouts
    tuples = np.zeros((rows.rows, _width(graph, layouts, 0) + 1), np.int64)
    for stream, place in enumerate(rows.places):
        for at, name in enumerate(layouts.streams[stream]):
            tuples[place, at] = encoded.words[name][place]
        tuples[place, -1] = stream
    tuples = in_memory(iter([binder.punctuated(tuples, rows), *binder.ends(tuples.shape[1])]))
    bound = tuple(_routed(graph, each, layouts) for each in binder.operators(plan))
    of_streams = graph, layouts.streams, tuple(binder.types)
    return BoundChain(bound, tuples, np.concatenate(binder.punctuations), {}, encoded.texts, binder.times, *of_streams)


def bind_blocks(
    chain: Chain, blocks: Iterable[Columns], plan: Partitioner | None, store: Store, where: str = ""
) -> BoundChain:
    """Bind a linear chain by blocks of rows.

    One block at a time is in memory.

    Args:
        blocks: Columns of consecutive rows, at least one block.
        store: Keeps the tuples, and later their arrival times.
        where: How errors of a column begin.
    """
    binder = _Binder(chain, where)
    tuples = store(binder.tuples(blocks))
    bound, punctuations = tuple(binder.operators(plan)), np.concatenate(binder.punctuations)
    return BoundChain(bound, tuples, punctuations, binder.types[-1], binder.texts, binder.times, store=store)


class _Binder:
    """What is known of a stream so far, while it is bound block by block."""

    def __init__(self, chain: Chain, where: str) -> None:
        self._chain, self._where = chain, where
        self._rows = self._tuples = 0
        self._stretch: Words = np.zeros(0, np.int64)  # that of the last row
        self._last_time: object = None
        self.texts: dict[str, pa.Array] = {}
        self.punctuations: list[Words] = [np.zeros(0, np.int64)]
        self.layouts: Layouts = Layouts((), ())
        self.times: dict[str, pa.DataType] = {}
        self.types_at: list[dict[str, WordType]] = []
        self.types: list[dict[str, WordType]] = []

    def encoded(self, rows: Merged) -> "_Encoded":
        """Columns of the next rows as words; the first ones say how tuples are laid out."""
        encoded = _encoded_columns(self._chain, rows, self.texts, self._rows)
        self.texts = encoded.texts
        if not self.types:
            fields = [encoded.fields_of(at, rows) for at in range(len(self._chain.graph.inputs))]
            self.layouts = layouts_of(self._chain, fields)
            self.types_at, self.types = _types_by_stream(self._chain, encoded, self.layouts)
            of_inputs = (pair for columns in rows.inputs for pair in columns.items())
            self.times = {name: each.type for name, each in of_inputs if pa.types.is_timestamp(each.type)}
        return encoded

    def operators(self, plan: Partitioner | None) -> Iterator[BoundOperator]:
        """The operators, once all rows are known."""
        chain, graph, made = self._chain, self._chain.graph, made_keys(self._chain.operators, self._chain.graph)
        for number, operator in enumerate(chain.operators):
            keyed = operator.key is not None and operator.name not in made
            yield BoundOperator(
                *(operator, number, self.layouts.given[number], self.layouts.streams[graph.made_by(number)]),
                _partitions(operator, self.texts[key_field(operator.key or "")], plan) if keyed else None,
                *(_count(operator, plan), self.types_at[number]),
                texts=self.texts,
            )

    def tuples(self, blocks: Iterable[Columns]) -> Iterator[Words]:
        """The tuples of each block, then the punctuations at the end."""
        width = 0
        for columns in blocks:
            self._check_times(columns)
            try:
                rows = Merged(self._chain.graph.inputs, (columns,), TIME)
                words = self.encoded(rows).words
                tuples = np.stack([words[name] for name in self.layouts.streams[0]], axis=1)
                yield self.punctuated(np.ascontiguousarray(tuples), rows)
            except BadInput as error:
                counted = f"; rows are counted from row {self._rows:,}" if self._rows else ""
                raise BadInput(f"{self._where}{error}{counted}") from error
            self._rows += rows.rows
            width = tuples.shape[1]
        if not width:
            raise BadInput("there are no rows to run")
        yield from self.ends(width)

    def _check_times(self, columns: Columns) -> None:
        """Check that times of punctuations do not go back between blocks."""
        name = "" if self._chain.punctuations is None else self._chain.punctuations.column
        if name not in columns or not len(columns[name]):
            return
        first = columns[name][0].as_py()
        if self._last_time is not None and first is not None and first < self._last_time:
            where = f"{self._where}[punctuations]: column {name!r}"
            raise BadInput(f"{where} goes back in time in row {self._rows}; sort the input by it")
        self._last_time = columns[name][-1].as_py()

    def punctuated(self, tuples: Words, rows: Merged) -> Words:
        """The tuples with a punctuation before each stretch, but for the first one."""
        punctuations = self._chain.punctuations
        if punctuations is not None:
            times = _times_of(punctuations, rows)
            if punctuations.every_us is not None and len(times):
                stretch = np.append(self._stretch, times // punctuations.every_us)
                ended = np.flatnonzero(np.diff(stretch) > 0)
                before = ended + (1 - len(self._stretch))
                ends = np.zeros((len(ended), tuples.shape[1]), np.int64)
                ends[:, 0] = (stretch[ended] + 1) * punctuations.every_us
                self._stretch = stretch[-1:]
                self.punctuations.append(self._tuples + before + np.arange(len(before)))
                tuples = np.ascontiguousarray(np.insert(tuples, before, ends, axis=0))
        self._tuples += len(tuples)
        return tuples

    def ends(self, width: int) -> Iterator[Words]:
        """The punctuations at the end: of the last stretch, and of the stream."""
        punctuations = self._chain.punctuations
        if punctuations is not None:
            times = [*((self._stretch + 1) * (punctuations.every_us or 0)).tolist(), END]
            self.punctuations.append(self._tuples + np.arange(len(times)))
            rows = np.zeros((len(times), width), np.int64)
            rows[:, 0] = times
            yield rows


@dataclass(frozen=True, slots=True)
class _Encoded:
    """Columns as words, by field."""

    words: dict[str, Words] = field(default_factory=dict)  # words of each row, in the order of time
    # the column that each field is made from; without those made at the ingress
    column: dict[str, str] = field(default_factory=dict)
    texts: dict[str, pa.Array] = field(default_factory=dict)  # texts by field, in the order of their numbers
    types: dict[str, WordType] = field(default_factory=dict)  # types of the fields; others are integers

    def fields_of(self, number: int, rows: Merged) -> tuple[str, ...]:
        """Fields of an input."""
        return tuple(name for name in self.words if self.column.get(name) in (None, *rows.inputs[number]))

    def put(self, rows: Merged, name: str, column: str, words: Words) -> None:
        """Keep the words of a column."""
        self.column[name] = column
        self.words[name] = rows.spread(column, words, default_word(self.types.get(name)))


def default_word(kind: WordType | None) -> int:
    """The word of a field that a stream does not have."""
    match kind:
        case WordType.FLOAT:
            return int(np.array(np.nan).view(np.int64))
        case WordType.TEXT:
            return -1
        case _:
            return 0


def _encoded_columns(chain: Chain, rows: Merged, known: Mapping[str, pa.Array], first: int) -> _Encoded:
    """The columns that the operators read, of rows after `first` others with known texts."""
    done, graph = _Encoded(texts=dict(known)), chain.graph
    keys_made = made_keys(chain.operators, graph)
    built_in = {name for each in chain.operators if not _is_own(each) for name in role_of(each.function).reads}
    of_operators = zip(chain.operators, columns_by_operator(chain), made_before(chain.operators, graph), strict=True)
    for operator, named, made in of_operators:
        key = None if operator.name in keys_made else operator.key
        if key is not None:
            name, column = key_field(key), key_column(operator, column_of(operator, key, rows))
            codes, done.texts[name] = numbered(column, known.get(name))
            done.types[name] = WordType.TEXT
            done.put(rows, name, key, codes)
        if isinstance(operator.cost, str):
            done.put(
                rows,
                cost_field(operator.cost),
                operator.cost,
                cost_ns(operator, column_of(operator, operator.cost, rows)),
            )
        reads = (
            *role_of(operator.function).reads,
            *([] if key is not None or operator.key is None else [operator.key]),
        )
        for name in reads:
            if name not in named or name in done.words or (name in made and name not in rows):
                continue
            if name in built_in:
                done.put(rows, name, name, whole_numbers(operator, name, column_of(operator, name, rows)))
                continue
            words, done.types[name], texts = encoded_column(
                operator, name, column_of(operator, name, rows), known.get(name)
            )
            done.texts.update(texts)
            done.put(rows, name, name, words)
    if VALUE in _made_at_ingress(chain):
        done.words[VALUE] = np.arange(first, first + rows.rows, dtype=np.int64)
    if size := payload_bytes(chain.operators):
        done.words.update(
            zip(payload_fields(size), payload_of(np.arange(first, first + rows.rows), size).T, strict=True)
        )
    return done


def _types_by_stream(
    chain: Chain, encoded: _Encoded, layouts: Layouts
) -> tuple[list[dict[str, WordType]], list[dict[str, WordType]]]:
    """Types of the fields that each operator is given, and of those of each stream."""
    graph = chain.graph
    types_at, types = list[dict[str, WordType]](), [dict(encoded.types) for _ in graph.inputs]
    for operator, sources, fields in zip(chain.operators, graph.sources, layouts.given, strict=True):
        taken: dict[str, WordType] = {}
        for stream in sources:
            for name, kind in types[stream].items():
                is_read = name in fields and name in layouts.streams[stream]
                if is_read and taken.get(name, kind) is not kind:
                    raise BadInput(
                        f"operator {operator.name!r} reads {name!r} as {taken[name]} and as {kind}; rename one"
                    )
                if is_read or name not in taken:
                    taken[name] = kind
        types_at.append(taken)
        if isinstance(operator.function, OwnFunction):
            _check_types(operator, operator.function, taken, encoded.texts)
            taken = {**taken, **dict(operator.function.outputs)}
        types.append(taken)
    return types_at, types


def _width(graph: Graph, layouts: Layouts, operator: int) -> int:
    """Words for the fields of any stream before an operator."""
    return max(len(layouts.streams[stream]) for stream in graph.live(operator))


MOST_GIVEN = STACK_WORDS
"""Fields of an operator that takes tuples of different layouts."""


def _routed(graph: Graph, inner: BoundOperator, layouts: Layouts) -> BoundOperator:
    """An operator of a graph as one of a chain."""
    number, stream, edges = inner.number, graph.made_by(inner.number), dict[int, Edge]()
    behind = graph.live(number + 1)
    for place, source in enumerate(graph.sources[number]):
        layout = layouts.streams[source]
        defaults = {name: default_word(kind) for name, kind in inner.types.items()} | {FROM: place}
        places = None if layout == inner.fields and FROM not in layout else places_of(inner.fields, layout, defaults)

        def found(at: int, layout: tuple[str, ...] = layout) -> int:
            return layout.index(inner.fields[at]) if at >= 0 and inner.fields[at] in layout else -1

        if inner.key_at >= 0 and found(inner.key_at) < 0:
            raise BadInput(
                f"operator {inner.operator.name!r} is partitioned by {inner.operator.key!r}, which one of the streams "
                f"that it reads does not have: {(inner.operator.sources or graph.inputs)[place]!r}"
            )
        if places is not None and len(places) > MOST_GIVEN:
            raise BadInput(
                f"operator {inner.operator.name!r} reads {len(places)} fields; at most {MOST_GIVEN} are allowed"
            )
        edges[source] = Edge(places, found(inner.key_at), found(inner.cost_at), source in behind)
    passes = tuple(each for each in behind if each != stream)
    route = Route(inner, edges, stream, len(layouts.streams), passes)
    before, after = (
        (*(f"word {at}" for at in range(_width(graph, layouts, each))), "stream") for each in (number, number + 1)
    )
    return BoundOperator(inner.operator, number, before, after, inner.partition_of, inner.partitions, {}, route)


def _made_at_ingress(chain: Chain) -> set[str]:
    """The row number, unless all functions are the user's own, which read columns only."""
    return set() if all(map(_is_own, chain.operators)) else {VALUE}


def _is_own(operator: Operator) -> bool:
    return isinstance(operator.function, OwnFunction)


def _check_types(
    operator: Operator, own: OwnFunction, types: Mapping[str, WordType], texts: Mapping[str, pa.Array]
) -> None:
    """Check the declared types of an own function against the columns."""
    where = f"operator {operator.name!r}: {own.name}"
    for name, declared in own.parameters:
        there = types.get(name, WordType.INTEGER)
        if declared not in (None, there, *_TAKEN_AS.get(there, ())):
            raise BadInput(f"{where}: parameter {name!r} is declared {declared}, but the column is {there}")
    for name, declared in own.outputs:
        if declared is WordType.TEXT and name not in texts:
            raise BadInput(
                f"{where}: output {name!r} is a text, so it must be named after a text column that the chain reads"
                f"{did_you_mean(name, [each for each in texts if not each.startswith('key ')])}"
            )


_TAKEN_AS: Mapping[WordType, tuple[WordType, ...]] = {
    WordType.INTEGER: (WordType.FLOAT,),
    WordType.FLAG: (WordType.INTEGER, WordType.FLOAT),
}
"""Declared types that a column of another type is converted to."""


def _times_of(punctuations: Punctuations, columns: Merged) -> Words:
    """Times of the rows, which ascend."""
    name = punctuations.column
    for of_input in columns.inputs:
        if name not in of_input:
            raise BadInput(f"[punctuations]: column {name!r} does not exist{did_you_mean(name, of_input)}")
    times = columns.spread(name, whole_words("[punctuations]", name, columns[name]))
    back = np.flatnonzero(np.diff(times) < 0)
    if len(back) or (len(times) and times[0] < 0):
        row = int(back[0]) + 1 if len(back) else 0
        raise BadInput(
            f"[punctuations]: column {name!r} goes back in time in row {row} or is before 1970; sort the input by it"
        )
    return times


def _partitions(operator: Operator, keys: pa.Array, plan: Partitioner | None) -> PartitionOf:
    match operator.by:
        case PartitionBy.PLAN:
            return np.asarray(_plan_of(operator, plan).channels_of(keys), np.int64)
        case PartitionBy.RANGE:
            return range_partitions(keys, _count(operator, plan))
        case PartitionBy.HASH:
            return np.asarray(UniformPartitioner(_count(operator, plan)).channels_of(keys), np.int64)


def _count(operator: Operator, plan: Partitioner | None) -> int:
    if operator.key is None or operator.partitions is PartitionCount.WORKERS:
        return 1
    return operator.partitions or _plan_of(operator, plan).channels


def _by_workers(bound: BoundOperator, workers: int, texts: Mapping[str, pa.Array]) -> BoundOperator:
    """An operator with as many partitions as workers, if its chain says so."""
    operator = bound.operator
    if operator.partitions is not PartitionCount.WORKERS:
        return bound
    partition_of, route = bound.partition_of, bound.route
    if partition_of is not None:
        partition_of = _partitions(replace(operator, partitions=workers), texts[key_field(operator.key or "")], None)
    if route is not None:
        route = replace(route, inner=_by_workers(route.inner, workers, texts))
    return replace(bound, partition_of=partition_of, partitions=workers, route=route)


def _plan_of(operator: Operator, plan: Partitioner | None) -> Partitioner:
    if plan is None:
        raise UsageError(f"operator {operator.name!r} is partitioned by a plan; name one with --plan")
    return plan
