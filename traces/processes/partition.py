"""State of a partition in a worker process."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, TypeAlias

import numpy as np

from adapt.core.stage.processes.records import FACTOR, KEPT
from adapt.core.stage.records.arrays import Records
from adapt.traces.processes.work import Work

_HEAD = Struct("<iqqdd")  # partition, bytes of the keys and of the function's states, times of the extraction
_WORD = 2**64 - 1

Key: TypeAlias = list[Any]
"""State of a key: count, sum, digest, and the state of the user's function."""


@dataclass(slots=True, eq=False)
class Partition:
    """State of a partition.

    Attributes:
        fixed: Bytes that stand for the stated size of its state.
        keys: State of each key, by group.
    """

    fixed: bytes
    keys: dict[int, Key] = field(default_factory=dict)

    def process(self, work: Work, group: int, number: int, cost_s: float) -> None:
        """Do the work of a row, and update its key."""
        key = self.keys.get(group)
        if key is None:
            key = self.keys[group] = [0, 0, 0, None]
        key[3] = work(key[3], group, number, cost_s)
        key[0] += 1
        key[1] += number
        key[2] = (key[2] * FACTOR + number) & _WORD

    def records(self, partition: int) -> Records:
        """Count, sum and digest of all keys."""
        return np.array([(partition, group, *key[:3]) for group, key in self.keys.items()], KEPT)

    def packed(self, partition: int, clock: Callable[[], float]) -> tuple[bytes, bytes]:
        """The state as bytes, to be sent: of keys, and fixed.

        The fixed part is not copied.

        Args:
            clock: Seconds since the start.

        Raises:
            TypeError: A state of the user's function is not JSON data.
        """
        began_s = clock()
        keys, states = self.records(partition).tobytes(), b""
        if any(key[3] is not None for key in self.keys.values()):
            states = json.dumps([key[3] for key in self.keys.values()]).encode()
        return _HEAD.pack(partition, len(keys), len(states), began_s, clock()) + keys + states, self.fixed


def unpacked(data: bytes, fixed: bytes) -> tuple[int, list[float], Partition]:
    """A partition, times of its extraction and its state, from both parts."""
    partition, of_keys, of_states, *times_s = _HEAD.unpack_from(data)
    first, last = _HEAD.size + of_keys, _HEAD.size + of_keys + of_states
    keys = np.frombuffer(data[_HEAD.size : first], KEPT).tolist()
    states = json.loads(data[first:last]) if of_states else [None] * len(keys)
    held = {group: [*counts, state] for (_, group, *counts), state in zip(keys, states, strict=True)}
    return partition, times_s, Partition(fixed, held)
