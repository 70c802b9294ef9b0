"""Running count per key."""

import numpy as np

from adapt.core.atomics import load, store
from adapt.core.compiled import AtAddress
from adapt.core.ordered.chain.bound import BoundOperator, Words
from adapt.core.ordered.functions.function import OWN, SIGNATURE, STATE, Function, Row, Step


def _count(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (one state per key is enough)
    fields, at, key_at = load(words, OWN), load(words, OWN + 1), load(words, OWN + 2)
    counts, key = load(words, STATE), load(given, key_at)
    count = load(counts, key) + 1
    store(counts, key, count)
    for field in range(fields):
        store(outputs, field, load(given, field))
    store(outputs, at, count)
    return 1


class Count(Function):
    """Running count of a key's tuples, as the value."""

    compiled = AtAddress(SIGNATURE, _count)

    def step(self, bound: BoundOperator) -> Step:
        """The plain-Python step."""
        at, key_at, counts = bound.value_at, bound.key_at, [0] * bound.keys

        def step(row: Row) -> list[Row]:
            counts[row[key_at]] += 1
            return [(*row[:at], counts[row[key_at]], *row[at + 1 :])]

        return step

    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """Number of fields; places of value and key."""
        return len(bound.fields), bound.value_at, bound.key_at

    def state(self, bound: BoundOperator) -> Words:
        """One word per key."""
        return np.zeros(bound.keys, np.int64)
