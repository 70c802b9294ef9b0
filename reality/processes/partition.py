"""State of a partition in a worker process."""

from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct
from typing import TypeAlias

import numpy as np

from adapt.core.stage.records.arrays import Records
from reality.processes.records import FACTOR, KEPT

_HEAD = Struct("<iqdd")  # partition, bytes of the keys, times of the extraction
_WORD = 2**64 - 1

Key: TypeAlias = list[int]
"""State of a key: count, sum, digest."""


@dataclass(slots=True, eq=False)
class Partition:
    """State of a partition.

    Attributes:
        fixed: Bytes that stand for the stated size of its state.
        keys: State of each key, by group.
    """

    fixed: bytes
    keys: dict[int, Key] = field(default_factory=dict)

    def add(self, group: int, number: int) -> None:
        """Update the key of a processed row."""
        key = self.keys.setdefault(group, [0, 0, 0])
        key[0] += 1
        key[1] += number
        key[2] = (key[2] * FACTOR + number) & _WORD

    def records(self, partition: int) -> Records:
        """Count, sum and digest of all keys."""
        return np.array([(partition, group, *key) for group, key in self.keys.items()], KEPT)

    def packed(self, partition: int, clock: Callable[[], float]) -> tuple[bytes, bytes]:
        """The state as bytes, to be sent: of keys, and fixed.

        The fixed part is not copied.

        Args:
            clock: Seconds since the start.
        """
        began_s = clock()
        keys = self.records(partition).tobytes()
        return _HEAD.pack(partition, len(keys), began_s, clock()) + keys, self.fixed


def unpacked(data: bytes, fixed: bytes) -> tuple[int, list[float], Partition]:
    """A partition, times of its extraction and its state, from both parts."""
    partition, of_keys, *times_s = _HEAD.unpack_from(data)
    keys = np.frombuffer(data[_HEAD.size : _HEAD.size + of_keys], KEPT).tolist()
    return partition, times_s, Partition(fixed, {group: counts for _, group, *counts in keys})
