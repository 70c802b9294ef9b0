"""Route numbers: integers that an engine's own hash sends where a plan wants a record."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.engines.flink.hash import flink_hash
from adapt.core.engines.spark.hash import spark_hash

Numbers: TypeAlias = NDArray[np.int32]


def spark_routes(partitions: int) -> Numbers:
    """For each partition of a shuffle the least integer, from 0, that Spark puts there; shape (partitions,).

    Spark puts a row that is grouped by an INT column alone into partition pmod(hash(number), partitions).

    Source: users and peers, section 5.1; held against a live Spark session by the tests.
    """

    def place(numbers: Numbers) -> Numbers:
        # An int hashes as its four bytes do.
        words = numbers.astype("<i4").tobytes()
        offsets = np.arange(0, 4 * len(numbers) + 1, 4, dtype=np.int32)
        as_bytes = pa.BinaryArray.from_buffers(
            pa.binary(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(words)]
        )
        return np.mod(spark_hash(as_bytes), np.int32(partitions))

    return _least(partitions, place)


def flink_routes(groups: int) -> Numbers:
    """For each key group the least integer, from 0, that Flink puts there; shape (groups,).

    Flink puts a key whose Java hash code is the number (as that of an `Integer` is) into group mix(number) mod groups.

    Source: users and peers, section 5.1, whose vectors were made with Flink's own classes.
    """
    # A long below 2^31 has the hash code of the same int: itself.
    return _least(groups, lambda numbers: np.mod(flink_hash(pa.array(numbers.astype(np.int64))), np.int32(groups)))


def _least(places: int, place: Callable[[Numbers], Numbers]) -> Numbers:
    """The least number, from 0, of each place."""
    least = np.full(places, -1, np.int32)
    start, size = 0, 4 * places + 64
    while (least < 0).any():
        numbers = np.arange(start, start + size, dtype=np.int32)
        found, first = np.unique(place(numbers), return_index=True)
        new = least[found] < 0
        least[found[new]] = numbers[first[new]]
        start += size
    return least
