"""Top k: sums by a word, the highest given at a punctuation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.atomics import allocate, clear, load, release, store
from adapt.core.compiled import AtAddress, inlined
from adapt.core.ordered.chain.bound import END, BoundOperator, Words
from adapt.core.ordered.chain.chain import COUNTED, VALUE
from adapt.core.ordered.chain.mixing import MASK
from adapt.core.ordered.functions.function import (
    NO_MEMORY,
    OWN,
    SIGNATURE,
    STATE,
    STRIDE,
    Blocks,
    Function,
    Row,
    Windowed,
)
from adapt.core.random_bits import mixed

_TABLE, _USED, _ENTRIES, _TABLE_WORDS = 0, 1, 2, 4
"""State of a partition: address of its table, entries in use, capacity."""
_ENTRY_WORDS = 3
"""An entry: the word, its count, its place in the index. The index follows the entries, with two places for each; a
place holds the number of an entry, from 1."""
_FIRST_ENTRIES = 64


class _Counting(Windowed):
    def __init__(self, top: "Top", bound: BoundOperator) -> None:
        self._top, self._bound = top, bound
        self._counted_at, self._value_at = bound.fields.index(COUNTED), bound.fields.index(VALUE)
        self._sums: list[dict[int, int]] = [{} for _ in range(bound.partitions)]

    def __call__(self, row: Row) -> Sequence[Row]:
        sums, word = self._sums[self._bound.partition(row)], row[self._counted_at]
        sums[word] = sums.get(word, 0) + row[self._value_at] & MASK
        return ()

    def close(self, partition: int, time: int) -> Sequence[Row]:
        if self._top.final and time != END:
            return ()
        sums, self._sums[partition] = self._sums[partition], {}
        ranked = sorted(sums.items(), key=lambda counted: (-counted[1], counted[0]))
        return [(time, word, total) for word, total in ranked[: self._top.most_frequent]]


@inlined
def _index(table: int, entries: int) -> int:
    """Start of a table's index."""
    return table + 8 * _ENTRY_WORDS * entries


@inlined
def _place(table: int, entries: int, word: int) -> int:
    """The place in the index that holds a word's entry, or the free place for it."""
    mask, index = 2 * entries - 1, _index(table, entries)
    place = int(np.int64(mixed(np.uint64(word)))) & mask
    while True:
        entry = load(index, place)
        if entry == 0 or load(table, _ENTRY_WORDS * (entry - 1)) == word:
            return place
        place = (place + 1) & mask


@inlined
def _grown(state: int) -> bool:
    """Double a full table; whether there was memory for it."""
    table, used, before = load(state, _TABLE), load(state, _USED), load(state, _ENTRIES)
    entries = max(2 * before, _FIRST_ENTRIES)
    larger = allocate((_ENTRY_WORDS + 2) * entries)
    if larger == 0:
        return False
    index = _index(larger, entries)
    clear(larger + 8 * _ENTRY_WORDS * used, (_ENTRY_WORDS + 2) * entries - _ENTRY_WORDS * used)
    for entry in range(used):
        word = load(table, _ENTRY_WORDS * entry)
        place = _place(larger, entries, word)
        store(index, place, entry + 1)
        store(larger, _ENTRY_WORDS * entry, word)
        store(larger, _ENTRY_WORDS * entry + 1, load(table, _ENTRY_WORDS * entry + 1))
        store(larger, _ENTRY_WORDS * entry + 2, place)
    release(table)
    store(state, _TABLE, larger)
    store(state, _ENTRIES, entries)
    return True


def _count(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (outputs come at punctuations)
    state = load(words, STATE) + 8 * _TABLE_WORDS * partition
    if load(state, _USED) == load(state, _ENTRIES) and not _grown(state):
        return NO_MEMORY
    table, entries, used = load(state, _TABLE), load(state, _ENTRIES), load(state, _USED)
    word, value = load(given, load(words, OWN)), load(given, load(words, OWN + 1))
    place = _place(table, entries, word)
    index = _index(table, entries)
    entry = load(index, place)
    if entry:
        at = _ENTRY_WORDS * (entry - 1) + 1
        store(table, at, load(table, at) + value)
        return 0
    store(index, place, used + 1)
    store(table, _ENTRY_WORDS * used, word)
    store(table, _ENTRY_WORDS * used + 1, value)
    store(table, _ENTRY_WORDS * used + 2, place)
    store(state, _USED, used + 1)
    return 0


@inlined
def _before(total: int, word: int, other: int) -> bool:
    """Whether a word with its sum ranks before an output."""
    if load(other, 2) != total:
        return bool(np.uint64(total) > np.uint64(load(other, 2)))
    return bool(np.uint64(word) < np.uint64(load(other, 1)))


def _close(words: int, partition: int, given: int, outputs: int) -> int:
    time, most = load(given, 0), load(words, OWN + 2)
    if load(words, OWN + 3) and time != END:
        return 0
    state, stride = load(words, STATE) + 8 * _TABLE_WORDS * partition, load(words, STRIDE)
    table, used, kept = load(state, _TABLE), load(state, _USED), 0
    index = _index(table, load(state, _ENTRIES))
    for entry in range(used):
        word, total = load(table, _ENTRY_WORDS * entry), load(table, _ENTRY_WORDS * entry + 1)
        store(index, load(table, _ENTRY_WORDS * entry + 2), 0)
        if kept == most and not _before(total, word, outputs + (most - 1) * stride):
            continue
        at = min(kept, most - 1)
        while at > 0 and _before(total, word, outputs + (at - 1) * stride):
            store(outputs + at * stride, 1, load(outputs + (at - 1) * stride, 1))
            store(outputs + at * stride, 2, load(outputs + (at - 1) * stride, 2))
            at -= 1
        store(outputs + at * stride, 1, word)
        store(outputs + at * stride, 2, total)
        kept = min(kept + 1, most)
    for output in range(kept):
        store(outputs + output * stride, 0, time)
    store(state, _USED, 0)
    return int(kept)


@dataclass(frozen=True, slots=True)
class Top(Function):
    """Top k of the sums by the counted word.

    Ties go to the lower word.

    A word outside the top k of its partition is outside the overall top k: a partitioned operator followed by a
    stateful one gives the overall top k.
    """

    most_frequent: int  # how many to give, k
    final: bool  # give them once, at the end of the stream; otherwise at each punctuation, which resets the sums

    compiled = AtAddress(SIGNATURE, _count)
    closing = AtAddress(SIGNATURE, _close)

    def most(self, bound: BoundOperator) -> int:  # noqa: ARG002 (for every operator)
        """k outputs."""
        return self.most_frequent

    def step(self, bound: BoundOperator) -> Windowed:
        """The plain-Python step."""
        return _Counting(self, bound)

    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """Places of the counted word and the value; k; the end flag."""
        return bound.fields.index(COUNTED), bound.fields.index(VALUE), self.most_frequent, self.final

    def state(self, bound: BoundOperator) -> Words:
        """An empty table per partition."""
        return np.zeros(bound.partitions * _TABLE_WORDS, np.int64)

    def blocks(self, bound: BoundOperator) -> Sequence[Blocks]:
        """The tables."""
        return (Blocks(_TABLE, _TABLE_WORDS, bound.partitions, _ENTRIES, _ENTRY_WORDS + 2),)
