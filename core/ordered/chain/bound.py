"""Binding of a chain to a trace, with integer keys and partitions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.atomics import STACK_WORDS
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.keys.partitioner import Partitioner
from adapt.core.ordered.chain.chain import (
    LONGEST_COST_US,
    TIME,
    VALUE,
    Chain,
    Operator,
    Punctuations,
    made_before,
    made_keys,
    role_of,
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
from adapt.core.ordered.chain.named_inputs import Merged, Skipped
from adapt.core.ordered.chain.names import PartitionBy, PartitionCount
from adapt.core.ordered.chain.own import OwnFunction, WordType
from adapt.core.partitioning.schemes.uniform import UniformPartitioner


def range_partitions(keys: pa.Array, partitions: int) -> NDArray[np.int64]:
    """Partition of each of some distinct keys, shape (keys,).

    Integers are divided into ranges of equal width from the lowest to the highest, strings and bytes into ranges with
    equal numbers of keys. Null goes to partition 0.

    Source: ordered streams, sections 4 and 7 (Figure 9). The paper does not say how ranges are cut.
    """
    present = np.asarray(keys.is_valid().to_numpy(zero_copy_only=False))
    of = np.zeros(len(keys), np.int64)
    if present.any():
        known = keys.filter(keys.is_valid())
        of[present] = (_by_width if keys.type == pa.int64() else _by_rank)(known, partitions)
    return of


def _by_width(keys: pa.Array, partitions: int) -> NDArray[np.int64]:
    # In unsigned words, which hold the distance of any two integers.
    values = keys.to_numpy().astype(np.int64).view(np.uint64)
    least = keys.to_numpy().min().view(np.uint64)
    distance = values - least
    width = int(distance.max()) // partitions + 1
    return np.asarray(distance // np.uint64(width), np.int64)


def _by_rank(keys: pa.Array, partitions: int) -> NDArray[np.int64]:
    order = pc.sort_indices(keys).to_numpy()
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys))
    return ranks * partitions // len(keys)


Words: TypeAlias = NDArray[np.int64]
PartitionOf: TypeAlias = NDArray[np.int64]
"""Partition of each key by its number, shape (keys,)."""
Store: TypeAlias = Callable[[Iterator[Words]], Words]
"""Puts blocks of words together, one after the other: in memory, or in a file."""

_RANGES: Mapping[str, int] = {TIME: 1 << 61, "item": 1 << 31, "cents": 1 << 31, "qty": 1 << 31}
"""Upper limits of these columns, from 0 to below the number, so that derived values fit into words."""

CODES: Mapping[str, tuple[str, ...]] = {"page": ("view", "cart", "checkout", "search")}
"""Texts that are stored as their positions in the tuple."""

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
    return np.concatenate(list(blocks))


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
        """The chain over some tuples, by blocks of their ascending places."""
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
    columns: Mapping[str, pa.Array | pa.ChunkedArray],
    plan: Partitioner | None = None,
    more: Sequence[Mapping[str, pa.Array | pa.ChunkedArray]] = (),
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
    rows = Merged(graph.inputs, (columns, *more), TIME)
    encoded = _encoded_columns(chain, rows, plan)
    layouts = layouts_of(chain, [encoded.fields_of(at, rows) for at in range(len(graph.inputs))])
    types_at, types = _types_by_stream(chain, encoded, layouts)
    inner = tuple(
        BoundOperator(
            *(operator, number, layouts.given[number], layouts.streams[graph.made_by(number)]),
            *(encoded.partition_of.get(operator.name), _count(operator, plan), types_at[number]),
            texts=encoded.texts,
        )
        for number, operator in enumerate(chain.operators)
    )
    times = {
        name: each.type for columns in rows.inputs for name, each in columns.items() if pa.types.is_timestamp(each.type)
    }
    if graph.is_linear:
        tuples = np.ascontiguousarray(np.stack([encoded.words[name] for name in layouts.streams[0]], axis=1))
        shown = types[-1], encoded.texts, times
        return BoundChain(inner, *_punctuated(chain.punctuations, tuples, rows), *shown)
    tuples = np.zeros((rows.rows, _width(graph, layouts, 0) + 1), np.int64)
    for stream, place in enumerate(rows.places):
        for at, name in enumerate(layouts.streams[stream]):
            tuples[place, at] = encoded.words[name][place]
        tuples[place, -1] = stream
    bound = tuple(_routed(graph, each, layouts) for each in inner)
    punctuated = _punctuated(chain.punctuations, tuples, rows)
    return BoundChain(bound, *punctuated, {}, encoded.texts, times, graph, layouts.streams, tuple(types))


@dataclass(frozen=True, slots=True)
class _Encoded:
    """Columns as words, by field."""

    words: dict[str, Words] = field(default_factory=dict)  # words of each row, in the order of time
    # the column that each field is made from; without those made at the ingress
    column: dict[str, str] = field(default_factory=dict)
    partition_of: dict[str, PartitionOf] = field(default_factory=dict)  # partition of each key, by operator
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


def _encoded_columns(chain: Chain, rows: Merged, plan: Partitioner | None) -> _Encoded:
    """The columns that the operators read."""
    done, graph = _Encoded(), chain.graph
    keys_made = made_keys(chain.operators, graph)
    built_in = {name for each in chain.operators if not _is_own(each) for name in role_of(each.function).reads}
    of_operators = zip(chain.operators, columns_by_operator(chain), made_before(chain.operators, graph), strict=True)
    for operator, named, made in of_operators:
        key = None if operator.name in keys_made else operator.key
        if key is not None:
            codes, keys = _keys(operator, _column(operator, key, rows))
            done.texts[key_field(key)], done.types[key_field(key)] = keys, WordType.TEXT
            done.put(rows, key_field(key), key, codes)
            done.partition_of[operator.name] = _partitions(operator, keys, plan)
        if isinstance(operator.cost, str):
            done.put(
                rows,
                cost_field(operator.cost),
                operator.cost,
                _cost_ns(operator, _column(operator, operator.cost, rows)),
            )
        reads = (
            *role_of(operator.function).reads,
            *([] if key is not None or operator.key is None else [operator.key]),
        )
        for name in reads:
            if name not in named or name in done.words or (name in made and name not in rows):
                continue
            if name in built_in:
                done.put(rows, name, name, _whole_numbers(operator, name, _column(operator, name, rows)))
                continue
            words, kind, known = _encoded(operator, name, _column(operator, name, rows))
            done.types[name] = kind
            done.texts.update(known)
            done.put(rows, name, name, words)
    if VALUE in _made_at_ingress(chain):
        done.words[VALUE] = np.arange(rows.rows, dtype=np.int64)
    if size := payload_bytes(chain.operators):
        done.words.update(zip(payload_fields(size), payload_of(np.arange(rows.rows), size).T, strict=True))
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


def _punctuated(punctuations: Punctuations | None, tuples: Words, columns: Merged) -> tuple[Words, Words]:
    """The tuples with punctuations inserted, and the indexes of the punctuations."""
    if punctuations is None:
        return tuples, np.zeros(0, np.int64)
    name = punctuations.column
    for of_input in columns.inputs:
        if name not in of_input:
            raise BadInput(f"[punctuations]: column {name!r} does not exist{did_you_mean(name, of_input)}")
    times = columns.spread(name, _whole_words("[punctuations]", name, columns[name]))
    back = np.flatnonzero(np.diff(times) < 0)
    if len(back) or (len(times) and times[0] < 0):
        row = int(back[0]) + 1 if len(back) else 0
        raise BadInput(
            f"[punctuations]: column {name!r} goes back in time in row {row} or is before 1970; sort the input by it"
        )
    before, ends = np.array([len(times)], np.int64), np.array([END], np.int64)
    if punctuations.every_us is not None and len(times):
        stretch = times // punctuations.every_us
        after = np.flatnonzero(np.append(np.diff(stretch) > 0, True))
        before = np.append(after + 1, before)
        ends = np.append((stretch[after] + 1) * punctuations.every_us, ends)
    rows = np.zeros((len(ends), tuples.shape[1]), np.int64)
    rows[:, 0] = ends
    return np.ascontiguousarray(np.insert(tuples, before, rows, axis=0)), before + np.arange(len(before))


def _whole_numbers(operator: Operator, name: str, column: pa.Array | pa.ChunkedArray) -> Words:
    where = f"operator {operator.name!r}"
    words = _whole_words(where, name, column)
    below = _RANGES.get(name)
    if below is not None and len(words) and not 0 <= words.min() <= words.max() < below:
        row = int(np.argmax((words < 0) | (words >= below)))
        raise BadInput(f"{where}: column {name!r} must be from 0 to below {below} (got {words[row]} in row {row})")
    return words


def _encoded(
    operator: Operator, name: str, column: pa.Array | pa.ChunkedArray
) -> tuple[Words, WordType, dict[str, pa.Array]]:
    """A column as words, with their type, and its texts by number if it holds texts."""
    where = f"operator {operator.name!r}"
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.cast(column, pa.float64()).fill_null(float("nan"))
        return np.array(column.to_numpy(), np.float64).view(np.int64), WordType.FLOAT, {}
    if pa.types.is_boolean(column.type) and not column.null_count:
        return _whole_words(where, name, column.cast(pa.int8())), WordType.FLAG, {}
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        words, texts = _numbered(column)
        return words, WordType.TEXT, {name: texts}
    return _whole_words(where, name, column), WordType.INTEGER, {}


def _whole_words(where: str, name: str, column: pa.Array | pa.ChunkedArray) -> Words:
    """A column as integers: times in microseconds, known texts as their codes."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        raise BadInput(f"{where}: column {name!r} has nulls")
    texts = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if name in CODES and texts:
        column = pc.index_in(column, pa.array(CODES[name], column.type))
        if column.null_count:
            raise BadInput(f"{where}: column {name!r} must contain only {', '.join(CODES[name])}")
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    elif not pa.types.is_integer(column.type) or name in CODES:
        wanted = f"one of {', '.join(CODES[name])}" if name in CODES else "integers or times"
        raise BadInput(f"{where}: column {name!r} must hold {wanted} (its type is {column.type})")
    return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def _column(
    operator: Operator, name: str, columns: Mapping[str, pa.Array | pa.ChunkedArray]
) -> pa.Array | pa.ChunkedArray:
    if name not in columns:
        raise BadInput(f"operator {operator.name!r}: column {name!r} does not exist{did_you_mean(name, columns)}")
    return columns[name]


def _keys(operator: Operator, column: pa.Array | pa.ChunkedArray) -> tuple[Words, pa.Array]:
    """The number of each row's key, and the keys by number."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_integer(column.type):
        column = column.cast(pa.int64())
    kind = column.type
    if not (kind == pa.int64() or pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.binary()):
        raise BadInput(
            f"operator {operator.name!r}: key column {operator.key!r} must be string, integer or "
            f"binary (its type is {kind})"
        )
    return _numbered(column)


def _numbered(column: pa.Array | pa.ChunkedArray) -> tuple[Words, pa.Array]:
    """The number of each value, in the order of first appearance, and the values by number."""
    encoded = column.dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # of no chunk
        return np.zeros(0, np.int64), pa.array([], column.type)
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary


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


def _cost_ns(operator: Operator, column: pa.Array | pa.ChunkedArray) -> Words:
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise BadInput(
            f"operator {operator.name!r}: cost column {operator.cost!r} must be numeric (its type is {column.type})"
        )
    cost = np.asarray(pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    wrong = ~((cost >= 0) & (cost <= LONGEST_COST_US))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise BadInput(
            f"operator {operator.name!r}: cost column {operator.cost!r} must be from 0 to {LONGEST_COST_US:g} "
            f"microseconds (got {cost[row]:g} in row {row})"
        )
    return np.rint(cost * 1000).astype(np.int64)
