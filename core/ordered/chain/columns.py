"""Columns of a chain's inputs: named, merged by time, and as words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import BadInput, did_you_mean
from adapt.core.ordered.chain.chain import LONGEST_COST_US, TIME, Chain, Operator
from adapt.core.ordered.chain.own import WordType

Words: TypeAlias = NDArray[np.int64]
Column: TypeAlias = pa.Array | pa.ChunkedArray
Columns: TypeAlias = Mapping[str, Column]
"""Columns by name."""

_RANGES: Mapping[str, int] = {TIME: 1 << 61, "item": 1 << 31, "cents": 1 << 31, "qty": 1 << 31}
"""Upper limits of these columns, from 0 to below the number, so that derived values fit into words."""

CODES: Mapping[str, tuple[str, ...]] = {"page": ("view", "cart", "checkout", "search")}
"""Texts that are stored as their positions in the tuple."""

_SHOWN = 3
"""Values that a sentence names."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Rows whose value in the input column is not an input."""

    column: str  # the input column
    total: int  # rows that were read
    values: Mapping[str | None, int] = field(default_factory=dict)  # skipped rows by value, most first; None for null

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(self.values.values())

    def sentence(self) -> str:
        """Which rows were skipped, and why; empty without any."""
        if not self.values:
            return ""
        return (
            f"Skipped {self.rows:,} of {self.total:,} rows, whose {self.column!r} is not an input of the chain: "
            f"{_shown(self.values)}."
        )


def named_inputs(values: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
    """The input that each row names, as texts."""
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)):
        raise BadInput(f"input_column: column {column!r} must hold texts or integers (its type is {kind})")
    return values.cast(kind).cast(pa.string())


def split_inputs(
    chain: Chain, column: str, columns: Mapping[str, pa.ChunkedArray]
) -> tuple[list[dict[str, pa.ChunkedArray]], Skipped]:
    """Columns of each input of a chain, and the rows of none.

    A column that is null in all rows of an input is one that this input does not have; `ts` and keys are kept.

    Args:
        column: Names the input of each row.
        columns: Columns of the trace, the input column among them.
    """
    names, rows, inputs = named_inputs(columns[column], column), pa.table(dict(columns)), chain.graph.inputs
    counted = sorted(
        ((each["values"].as_py(), each["counts"].as_py()) for each in names.value_counts()),
        key=lambda value: (-value[1], value[0] or ""),
    )
    kept, split = {TIME, *(each.key for each in chain.operators)}, []
    for name in inputs:
        part = rows.filter(pc.equal(names, name))
        if not part.num_rows:
            raise BadInput(f"no row of input {name!r}; column {column!r} has {_shown(dict(counted))}")
        there = zip(part.column_names, part.columns, strict=True)
        split.append({each: found for each, found in there if each in kept or found.null_count < part.num_rows})
    return split, Skipped(column, rows.num_rows, {name: count for name, count in counted if name not in inputs})


def _shown(values: Mapping[str | None, int]) -> str:
    """The most frequent values with their rows."""
    shown = [
        f"{'null' if name is None else repr(name)} ({count:,} {'row' if count == 1 else 'rows'})"
        for name, count in list(values.items())[:_SHOWN]
    ]
    others = len(values) - len(shown)
    return ", ".join(shown) + (f" and {others:,} other values" if others else "")


class Merged(Mapping[str, Column]):
    """Columns of all inputs by name.

    A column has the rows of the inputs that have it, one input after the other; `spread` brings its words into the
    order of time, in which rows of one time are ordered by input.

    Attributes:
        inputs: Columns of each input.
        rows: Number of rows.
        places: Places of each input's rows in the order of time.
    """

    def __init__(self, names: Sequence[str], inputs: Sequence[Columns], by: str) -> None:
        """Merge inputs by a column of ascending times; a single input stays as it is."""
        self._names, self.inputs = names, inputs
        lengths = [max((len(column) for column in columns.values()), default=0) for columns in inputs]
        self.rows = sum(lengths)
        self.places: list[NDArray[np.int64]] = [np.arange(self.rows)]
        if len(inputs) > 1:
            times = np.concatenate([_micros(columns[by]) for columns in inputs])
            place = np.empty(self.rows, np.int64)
            place[np.argsort(times, kind="stable")] = np.arange(self.rows)
            self.places = np.split(place, np.cumsum(lengths)[:-1])

    def __getitem__(self, name: str) -> Column:
        """A column."""
        found = [(at, columns[name]) for at, columns in enumerate(self.inputs) if name in columns]
        if not found:
            raise KeyError(name)
        if len(found) == 1:
            return found[0][1]
        plain = [(at, _plain(column)) for at, column in found]
        for at, column in plain[1:]:
            if column.type != plain[0][1].type:
                raise BadInput(
                    f"column {name!r} is {plain[0][1].type} in input {self._names[plain[0][0]]!r} and {column.type} in "
                    f"input {self._names[at]!r}; ingest both with one type"
                )
        return pa.chunked_array([chunk for _, column in plain for chunk in column.chunks], plain[0][1].type)

    def __iter__(self) -> Iterator[str]:
        """Names of all columns."""
        return iter(dict.fromkeys(name for columns in self.inputs for name in columns))

    def __len__(self) -> int:
        """Number of columns."""
        return len(list(iter(self)))

    def spread(self, name: str, words: NDArray[np.int64], default: int = 0) -> NDArray[np.int64]:
        """Words of a column in the order of time.

        A default for inputs that do not have it.
        """
        if len(self.inputs) == 1:
            return words
        spread = np.full(self.rows, default, np.int64)
        places = [place for place, columns in zip(self.places, self.inputs, strict=True) if name in columns]
        spread[np.concatenate(places)] = words
        return spread


def _plain(column: Column) -> pa.ChunkedArray:
    """A column without dictionary, integers with 64 bits, times in microseconds."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_integer(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz))
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _micros(column: Column) -> NDArray[np.int64]:
    return np.asarray(_plain(column).cast(pa.int64()).to_numpy(), np.int64)


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


def whole_numbers(operator: Operator, name: str, column: Column) -> Words:
    where = f"operator {operator.name!r}"
    words = whole_words(where, name, column)
    below = _RANGES.get(name)
    if below is not None and len(words) and not 0 <= words.min() <= words.max() < below:
        row = int(np.argmax((words < 0) | (words >= below)))
        raise BadInput(f"{where}: column {name!r} must be from 0 to below {below} (got {words[row]} in row {row})")
    return words


def encoded_column(
    operator: Operator, name: str, column: Column, known: pa.Array | None
) -> tuple[Words, WordType, dict[str, pa.Array]]:
    """A column as words, their type, and its texts if any."""
    where = f"operator {operator.name!r}"
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.cast(column, pa.float64()).fill_null(float("nan"))
        return np.array(column.to_numpy(), np.float64).view(np.int64), WordType.FLOAT, {}
    if pa.types.is_boolean(column.type) and not column.null_count:
        return whole_words(where, name, column.cast(pa.int8())), WordType.FLAG, {}
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        words, texts = numbered(column, known)
        return words, WordType.TEXT, {name: texts}
    return whole_words(where, name, column), WordType.INTEGER, {}


def whole_words(where: str, name: str, column: Column) -> Words:
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


def column_of(operator: Operator, name: str, columns: Columns) -> Column:
    if name not in columns:
        raise BadInput(f"operator {operator.name!r}: column {name!r} does not exist{did_you_mean(name, columns)}")
    return columns[name]


def key_column(operator: Operator, column: Column) -> Column:
    """The key of each row."""
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
    return column


def numbered(column: Column, known: pa.Array | None) -> tuple[Words, pa.Array]:
    """The number of each value, after known ones; and all values."""
    known = pa.array([], column.type) if known is None else known
    encoded = column.dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # of no chunk
        return np.zeros(0, np.int64), known
    found = pc.index_in(encoded.dictionary, value_set=known)
    new = np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False))
    numbers = found.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    numbers[new] = len(known) + np.arange(len(new))
    words = numbers[encoded.indices.to_numpy(zero_copy_only=False)]
    return words, pa.concat_arrays([known, encoded.dictionary.take(pa.array(new))])


def cost_ns(operator: Operator, column: Column) -> Words:
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
