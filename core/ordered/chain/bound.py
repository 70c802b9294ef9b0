"""Binding of a chain to a trace, with integer keys and partitions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.keys.partitioner import Partitioner
from adapt.core.ordered.chain.chain import LONGEST_COST_US, Chain, Operator, Punctuations, made_keys
from adapt.core.ordered.chain.mixing import mixed
from adapt.core.ordered.chain.names import PartitionBy
from adapt.core.ordered.chain.own import OwnFunction, WordType
from adapt.core.ordered.chain.ranges import range_partitions
from adapt.core.ordered.chain.roles import TIME, VALUE, Passes, role_of
from adapt.core.partitioning.schemes.uniform import UniformPartitioner

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


@dataclass(frozen=True, slots=True, eq=False)
class BoundOperator:
    """An operator with the layout of its tuples.

    Attributes:
        number: Place in the chain, from 0.
        fields: Names of the words of its inputs.
        gives: Names of the words of its outputs.
        partition_of: The partition of each key; None if it has no key, or a key made in the chain.
        partitions: Number of partitions; 1 if it has no key.
        types: Types of the fields that own functions read; others are integers.
    """

    operator: Operator
    number: int
    fields: tuple[str, ...]
    gives: tuple[str, ...]
    partition_of: PartitionOf | None
    partitions: int
    types: Mapping[str, WordType] = field(default_factory=dict)

    @property
    def value_at(self) -> int:
        """The word of a tuple that the operator changes."""
        return self.fields.index(VALUE)

    @property
    def key_at(self) -> int:
        """Word of a tuple with its key's number; -1 without a key.

        Keys that are made in the chain are stored as they are.
        """
        key = self.operator.key
        if key is None:
            return -1
        return self.fields.index(key if self.partition_of is None else _key_field(key))

    @property
    def cost_at(self) -> int:
        """Word of a tuple with its cost in nanoseconds; -1 if constant."""
        return self.fields.index(_cost_field(self.operator.cost)) if isinstance(self.operator.cost, str) else -1

    @property
    def keys(self) -> int:
        """Number of keys of the trace with a state; at least 1."""
        return 1 if self.partition_of is None else len(self.partition_of)

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
    """A chain with its input tuples.

    Attributes:
        operators: Operators in the order of processing.
        tuples: Input tuples in serial order, shape (tuples, fields).
        punctuations: Indexes of the tuples that are punctuations, ascending; only their first word, the time, has a
            meaning.
        types: Types of the output's fields; others are integers.
        texts: Texts by column, in the order of their numbers.
        times: Types of the columns that hold times.
        store: Keeps what is as long as the tuples.
    """

    operators: tuple[BoundOperator, ...]
    tuples: Words
    punctuations: Words = field(default_factory=lambda: np.zeros(0, np.int64))
    types: Mapping[str, WordType] = field(default_factory=dict)
    texts: Mapping[str, pa.Array] = field(default_factory=dict)
    times: Mapping[str, pa.DataType] = field(default_factory=dict)
    store: Store = in_memory

    @property
    def rows(self) -> int:
        """Number of tuples that are rows of the trace."""
        return len(self.tuples) - len(self.punctuations)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the words of an input tuple."""
        return self.operators[0].fields

    @property
    def gives(self) -> tuple[str, ...]:
        """Names of the words of an output tuple."""
        return self.operators[-1].gives


def columns_by_operator(chain: Chain) -> tuple[tuple[str, ...], ...]:
    """Columns of a trace that each operator reads."""
    made, keys_made = _made_at_ingress(chain), made_keys(chain.operators)
    named = []
    for operator in chain.operators:
        role = role_of(operator.function)
        key = [operator.key] if operator.key is not None and operator.name not in keys_made else []
        cost = [operator.cost] if isinstance(operator.cost, str) else []
        named.append((*key, *cost, *(name for name in role.reads if name not in made)))
        made.update(role.makes)
    return tuple(named)


def columns_of(chain: Chain) -> tuple[str, ...]:
    """Columns of a trace that a chain reads, without duplicates."""
    times = () if chain.punctuations is None else (chain.punctuations.column,)
    return tuple(dict.fromkeys((*(name for columns in columns_by_operator(chain) for name in columns), *times)))


def bind(
    chain: Chain, columns: Mapping[str, pa.Array | pa.ChunkedArray], plan: Partitioner | None = None
) -> BoundChain:
    """Bind a chain to a trace; row order is the serial order.

    Args:
        columns: Columns of the trace by name, all of one length; at least those of `columns_of`.
        plan: Maps the keys of operators that are partitioned by a plan.

    Raises:
        BadInput: a column is missing or has the wrong type, or an operator reads a field that an earlier one drops.
        UsageError: an operator is partitioned by a plan, but no plan is given.
    """
    rows = max((len(column) for column in columns.values()), default=0)
    words: dict[str, Words] = {}
    partition_of: dict[str, PartitionOf] = {}
    texts: dict[str, pa.Array] = {}
    types: dict[str, WordType] = {}
    types_at: list[dict[str, WordType]] = []
    made, keys_made = _made_at_ingress(chain), made_keys(chain.operators)
    built_in = {name for each in chain.operators if not _is_own(each) for name in role_of(each.function).reads}
    for operator in chain.operators:
        role = role_of(operator.function)
        if operator.key is not None and operator.name not in keys_made:
            codes, keys = _keys(operator, _column(operator, operator.key, columns))
            words[_key_field(operator.key)] = codes
            texts[_key_field(operator.key)] = keys
            types[_key_field(operator.key)] = WordType.TEXT
            partition_of[operator.name] = _partitions(operator, keys, plan)
        if isinstance(operator.cost, str):
            words[_cost_field(operator.cost)] = _cost_ns(operator, _column(operator, operator.cost, columns))
        for name in role.reads:
            if name in made or name in words:
                continue
            if name in built_in:
                words[name] = _whole_numbers(operator, name, _column(operator, name, columns))
            else:
                words[name], types[name], known = _encoded(operator, name, _column(operator, name, columns))
                texts.update(known)
        made.update(role.makes)
        if isinstance(operator.function, OwnFunction):
            _check_types(operator, operator.function, types, texts)
        types_at.append(dict(types))
        if isinstance(operator.function, OwnFunction):
            types.update(operator.function.outputs)
    if VALUE in _made_at_ingress(chain):
        words[VALUE] = np.arange(rows, dtype=np.int64)
    layouts = layouts_of(chain.operators, tuple(words))
    bound = tuple(
        BoundOperator(operator, number, *fields, partition_of.get(operator.name), _count(operator, plan), known_types)
        for number, (operator, fields, known_types) in enumerate(
            zip(chain.operators, pairwise(layouts), types_at, strict=True)
        )
    )
    tuples = np.ascontiguousarray(np.stack([words[name] for name in layouts[0]], axis=1))
    shown = types, texts, {name: each.type for name, each in columns.items() if pa.types.is_timestamp(each.type)}
    if chain.punctuations is None:
        return BoundChain(bound, tuples, np.zeros(0, np.int64), *shown)
    return BoundChain(bound, *_punctuated(chain.punctuations, tuples, columns), *shown)


def _made_at_ingress(chain: Chain) -> set[str]:
    """The row number, unless all functions are the user's own, which read columns only."""
    return set() if all(map(_is_own, chain.operators)) else {VALUE}


def _is_own(operator: Operator) -> bool:
    return isinstance(operator.function, OwnFunction)


def _check_types(
    operator: Operator, own: OwnFunction, types: Mapping[str, WordType], texts: Mapping[str, pa.Array]
) -> None:
    """Check the declared types of an own function against the columns.

    Raises:
        BadInput: a column has another type, or a text output is named after no text column.
    """
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


def layouts_of(operators: Sequence[Operator], columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Fields before each operator, and after the last one.

    Functions that pass on only needed fields drop those that no later operator reads.

    Raises:
        BadInput: an operator reads a field that an earlier one drops.
    """
    roles, keys_made = [role_of(operator.function) for operator in operators], made_keys(operators)
    there = [columns]
    for role in roles:
        passed = () if role.passes is Passes.NONE else there[-1]
        there.append((*passed, *(name for name in role.makes if name not in passed)))
    needed = [set(there[-1])]
    for number in reversed(range(len(operators))):
        role, reads = roles[number], _reads(operators[number], operators[number].name in keys_made)
        for name in reads:
            if name not in there[number]:
                raise BadInput(
                    f"operator {operators[number].name!r} reads {_said(name)}, which is dropped by "
                    f"{_lost_at(name, operators, there)}"
                )
        kept = set() if role.passes is Passes.NONE else needed[-1] & set(there[number])
        needed.append(kept | set(reads))
    needed.reverse()
    layouts = [_of(there[0], needed[0])]
    for number, role in enumerate(roles):
        match role.passes:
            case Passes.ALL:
                layouts.append(layouts[-1])
            case Passes.NEEDED:
                layouts.append(_of(there[number + 1], needed[number + 1]))
            case Passes.NONE:
                layouts.append(role.makes)
    return layouts


def _of(fields: tuple[str, ...], needed: set[str]) -> tuple[str, ...]:
    """Needed fields, at least one: a punctuation has a word for its time."""
    return tuple(name for name in fields if name in needed) or fields[:1]


def _lost_at(name: str, operators: Sequence[Operator], there: Sequence[tuple[str, ...]]) -> str:
    """The operator that drops a field."""
    last = max((number for number, fields in enumerate(there) if name in fields), default=0)
    return f"operator {operators[min(last, len(operators) - 1)].name!r}"


def _said(name: str) -> str:
    return f"the {name}" if " " in name else f"the field {name!r}"


def _reads(operator: Operator, is_key_made: bool) -> tuple[str, ...]:
    key = operator.key
    return (
        *([] if key is None else [key if is_key_made else _key_field(key)]),
        *([_cost_field(operator.cost)] if isinstance(operator.cost, str) else []),
        *role_of(operator.function).reads,
    )


def _punctuated(
    punctuations: Punctuations, tuples: Words, columns: Mapping[str, pa.Array | pa.ChunkedArray]
) -> tuple[Words, Words]:
    """The tuples with punctuations inserted, and the indexes of the punctuations."""
    name = punctuations.column
    if name not in columns:
        raise BadInput(f"[punctuations]: column {name!r} does not exist{did_you_mean(name, columns)}")
    times = _whole_words("[punctuations]", name, columns[name])
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


def _key_field(column: str) -> str:
    return f"key {column}"


def _cost_field(column: str) -> str:
    return f"cost {column}"


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
            return range_partitions(keys, operator.partitions or 1)
        case PartitionBy.HASH:
            return np.asarray(UniformPartitioner(operator.partitions or 1).channels_of(keys), np.int64)


def _count(operator: Operator, plan: Partitioner | None) -> int:
    if operator.key is None:
        return 1
    return operator.partitions or _plan_of(operator, plan).channels


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
