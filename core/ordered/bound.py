"""A chain bound to a stream: its tuples as words, its keys as numbers, the partition of each key."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.ordered.chain import LONGEST_COST_US, Chain, Operator
from adapt.core.ordered.names import PartitionBy
from adapt.core.ordered.ranges import range_partitions
from adapt.core.partitioners.partitioner import Partitioner
from adapt.core.partitioners.uniform import UniformPartitioner

Words: TypeAlias = NDArray[np.int64]
PartitionOf: TypeAlias = NDArray[np.int64]
"""The partition of each key by its number, shape (keys,)."""

VALUE = "value"
"""The field that operators change; at the ingress, the number of the row."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundOperator:
    """An operator that knows the tuples it reads.

    Attributes:
        operator: It.
        number: Its place in the chain, from 0.
        fields: What the words of its inputs and outputs mean.
        partition_of: The partition of each key; None if it has no key.
        partitions: How many there are; 1 if it has no key.
    """

    operator: Operator
    number: int
    fields: tuple[str, ...]
    partition_of: PartitionOf | None
    partitions: int

    @property
    def value_at(self) -> int:
        """The word of a tuple that it changes."""
        return self.fields.index(VALUE)

    @property
    def key_at(self) -> int:
        """The word of a tuple that holds the number of its key; -1 without one."""
        return -1 if self.operator.key is None else self.fields.index(_key_field(self.operator.key))

    @property
    def cost_at(self) -> int:
        """The word of a tuple that holds its cost in nanoseconds; -1 where all cost the same."""
        return self.fields.index(_cost_field(self.operator.cost)) if isinstance(self.operator.cost, str) else -1

    @property
    def keys(self) -> int:
        """How many keys its state has; 1 without a key."""
        return 1 if self.partition_of is None else len(self.partition_of)


@dataclass(frozen=True, slots=True, eq=False)
class BoundChain:
    """A chain with the tuples that enter it.

    Attributes:
        operators: In the order in which tuples pass them.
        fields: What the words of a tuple mean.
        tuples: Those that enter, in serial order; shape (tuples, fields).
    """

    operators: tuple[BoundOperator, ...]
    fields: tuple[str, ...]
    tuples: Words


def bind(
    chain: Chain, columns: Mapping[str, pa.Array | pa.ChunkedArray], plan: Partitioner | None = None
) -> BoundChain:
    """Bind a chain to the rows of a stream; serial order is that of the rows.

    Args:
        chain: The chain.
        columns: The columns of the stream by name, all of one length.
        plan: Maps the keys of operators that are partitioned by a plan.

    Raises:
        BadInput: an operator names a column that is not there or cannot be what it is named for.
        UsageError: an operator is partitioned by a plan, and none is given.
    """
    rows = max((len(column) for column in columns.values()), default=0)
    fields: dict[str, Words] = {}
    partition_of: dict[str, PartitionOf] = {}
    for operator in chain.operators:
        if operator.key is not None:
            codes, keys = _keys(operator, _column(operator, operator.key, columns))
            fields[_key_field(operator.key)] = codes
            partition_of[operator.name] = _partitions(operator, keys, plan)
        if isinstance(operator.cost, str):
            fields[_cost_field(operator.cost)] = _cost_ns(operator, _column(operator, operator.cost, columns))
    fields[VALUE] = np.arange(rows, dtype=np.int64)
    names = tuple(fields)
    bound = tuple(
        BoundOperator(operator, number, names, of := partition_of.get(operator.name), _count(operator, of, plan))
        for number, operator in enumerate(chain.operators)
    )
    return BoundChain(bound, names, np.ascontiguousarray(np.stack(list(fields.values()), axis=1)))


def _key_field(column: str) -> str:
    return f"key {column}"


def _cost_field(column: str) -> str:
    return f"cost {column}"


def _column(
    operator: Operator, name: str, columns: Mapping[str, pa.Array | pa.ChunkedArray]
) -> pa.Array | pa.ChunkedArray:
    if name not in columns:
        raise BadInput(f"operator {operator.name!r}: the stream has no column {name!r}{did_you_mean(name, columns)}")
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
            f"operator {operator.name!r}: column {operator.key!r} is of type {kind}, and a key is a string, an integer "
            "or binary"
        )
    encoded = column.dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # of no chunk
        return np.zeros(0, np.int64), pa.array([], kind)
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary


def _partitions(operator: Operator, keys: pa.Array, plan: Partitioner | None) -> PartitionOf:
    match operator.by:
        case PartitionBy.PLAN:
            return np.asarray(_plan_of(operator, plan).channels_of(keys), np.int64)
        case PartitionBy.RANGE:
            return range_partitions(keys, operator.partitions or 1)
        case PartitionBy.HASH:
            return np.asarray(UniformPartitioner(operator.partitions or 1).channels_of(keys), np.int64)


def _count(operator: Operator, of: PartitionOf | None, plan: Partitioner | None) -> int:
    if of is None:
        return 1
    return operator.partitions or _plan_of(operator, plan).channels


def _plan_of(operator: Operator, plan: Partitioner | None) -> Partitioner:
    if plan is None:
        raise UsageError(f"operator {operator.name!r} is partitioned by a plan, and none is given; name one by --plan")
    return plan


def _cost_ns(operator: Operator, column: pa.Array | pa.ChunkedArray) -> Words:
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise BadInput(
            f"operator {operator.name!r}: its cost, column {operator.cost!r}, is of type {column.type}, not numbers"
        )
    cost = np.asarray(pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    wrong = ~((cost >= 0) & (cost <= LONGEST_COST_US))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise BadInput(
            f"operator {operator.name!r}: its cost, column {operator.cost!r}, is {cost[row]:g} in row {row}; costs are "
            f"microseconds from 0 to {LONGEST_COST_US:g}"
        )
    return np.rint(cost * 1000).astype(np.int64)
