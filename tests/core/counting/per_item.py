"""Lossy counting one row at a time, as the paper prints it."""

import math

import pyarrow as pa

from adapt.core.counting.lossy import (
    DISTINCT_LIMIT,
    LossySummary,
    allowance,
    amounts,
    check_epsilon,
    summary_of,
    window_of,
)
from adapt.core.counting.sketches import DistinctSketch
from adapt.core.errors import BadInput
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.stream import Key, KeyType, Weight


class PerItemLossyCounter:
    """Lossy counting, row by row: a row adds to its key's count, and every w = ceil(1/epsilon) rows light keys go.

    For streams that come a row at a time, and the reference of `LossyCounter`, which counts columns.

    Source: partitioning functions, section 4.1.2: a new key has c_a = 1 and c_e = i - 1 in window i; when window i
    closes, keys with c_a + c_e <= i are evicted.
    """

    def __init__(self, epsilon: float, key_type: KeyType = KeyType.STRING, weight: Weight = Weight.COUNT) -> None:
        """A counter that has seen nothing.

        Args:
            epsilon: The error as a share of the total, in (0, 1).
            key_type: What the keys are.
            weight: What rows weigh.

        Raises:
            UsageError: `epsilon` is not in (0, 1).
        """
        check_epsilon(epsilon)
        self.epsilon = epsilon
        self._weight = weight
        self._kind = ARROW_TYPES[key_type]
        self._window = window_of(epsilon)
        self._entries: dict[Key, tuple[float, float]] = {}
        self._new: list[Key] = []
        self._rows = 0
        self._total: float = 0.0 if weight is Weight.COST else 0
        self._missed: float = self._total
        self._distinct = DistinctSketch.empty(DISTINCT_LIMIT)

    @property
    def entries(self) -> int:
        """Keys that are held now."""
        return len(self._entries)

    def add(self, key: Key, weight: float = 1) -> None:
        """Count one row.

        Raises:
            BadInput: the weight is negative, infinite or not a number.
        """
        if not 0 <= weight < math.inf:
            raise BadInput(f"the weight of key {key!r} must be finite and at least 0 (got {weight:g})")
        held = self._entries.get(key)
        if held is None:
            self._entries[key] = (weight, self._missed)
            self._new.append(key)
        else:
            self._entries[key] = (held[0] + weight, held[1])
        self._rows += 1
        self._total += weight
        if self._rows % self._window == 0:
            self._purge()

    def summary(self) -> LossySummary:
        """What was counted so far; the counter goes on.

        Raises:
            BadInput: integer weights are too much for int64 all together.
        """
        if self._weight is not Weight.COST and self._total >= 2**63:
            raise BadInput(f"the weights add up to {self._total:,}, overflows an int64; weigh in larger units")
        self._sketch()
        counts = amounts([count for count, _ in self._entries.values()], self._weight)
        errors = amounts([error for _, error in self._entries.values()], self._weight)
        keys = pa.array(list(self._entries), self._kind)
        return summary_of(keys, counts, errors, self._missed, self._total, self._rows, self._distinct)

    def _purge(self) -> None:
        """A window closes: what may weigh no more than a key that was never seen is let go."""
        self._sketch()
        self._missed = allowance(self._total, self._window)
        self._entries = {key: held for key, held in self._entries.items() if held[0] + held[1] > self._missed}

    def _sketch(self) -> None:
        self._distinct = self._distinct.with_keys(pa.array(self._new, self._kind))
        self._new = []
