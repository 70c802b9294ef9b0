"""Counted keys: what every counter returns, exact or lossy."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.stream import KeyType, Weight

Counts: TypeAlias = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The counted keys of a stream, by falling count, then key bytes; null comes before every other key of its count.

    Attributes:
        keys: The listed keys, distinct; string, int64 or binary; one of them may be null. Shape (keys,).
        count_low: No key weighs less, shape (keys,); int64 for counts and bytes, float64 for cost.
        count_high: No key weighs more, shape (keys,). Exact counters give `count_low` itself.
        total: The weight of all rows, listed or not.
        rows: The rows counted.
        weight: What a row weighs.
        epsilon: Error bound as a share of `total`: true - epsilon * total <= count_low <= true; 0 if exact.
        complete_above: Every key that weighs more than this is listed; 0 if exact.
        distinct: Number of distinct keys, estimated unless `epsilon` is 0.
    """

    keys: pa.Array
    count_low: Counts
    count_high: Counts
    total: float
    rows: int
    weight: Weight = Weight.COUNT
    epsilon: float = 0.0
    complete_above: float = 0.0
    distinct: int = 0

    def __post_init__(self) -> None:
        if not len(self.keys) == len(self.count_low) == len(self.count_high):
            raise ValueError(
                f"{len(self.keys)} keys do not fit {len(self.count_low)} and {len(self.count_high)} counts"
            )

    @property
    def key_type(self) -> KeyType:
        """The type of the keys."""
        return key_type_of(self.keys.type)


def key_type_of(kind: pa.DataType) -> KeyType:
    """The key type of an Arrow column.

    Raises:
        ValueError: the column is none of string, int64 and binary.
    """
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return KeyType.STRING
    if pa.types.is_int64(kind):
        return KeyType.INT64
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return KeyType.BINARY
    raise ValueError(f"a key column is string, int64 or binary, not {kind}")
