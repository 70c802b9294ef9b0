"""Compiled functions of operators, and the table of keys that they share.

The table has a key's state by key. States are in the order in which their keys arrived.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from adapt.core.atomics import allocate, clear, load, release, store
from adapt.core.compiled import AtAddress, inlined
from adapt.core.ordered.chain.columns import Words
from adapt.core.random_bits import mixed

Row: TypeAlias = tuple[int, ...]
"""Words of a tuple, each from 0 to below 2^64."""

STATE, STRIDE, PACE, MOST, ROUTES, OWN = 0, 1, 2, 3, 4, 5
"""Leading words of every compiled function: address of its state, bytes from one output to the next, steps of busy work
in 1024 ns, outputs that fit, and in a graph the address of its routes. Its own words follow."""

SIGNATURE = "int64(int64, int64, int64, int64)"
"""Signature of compiled functions: words, partition, tuple, outputs."""

NO_MEMORY = -2
"""Return value of a compiled function that ran out of memory."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Words of a state that hold addresses of memory blocks.

    Blocks are freed after a run; 0 means no block.
    """

    first: int  # the first such word
    step: int  # words from one to the next
    count: int  # number of such words


def _no_words() -> Words:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """Arithmetic of an operator, for a single run."""

    # takes the addresses of its words, of a tuple and of room for outputs, and returns their number. Below 0, the run
    # fails. Above `most`, the first word of the room holds the address of a block (`allocate`) with the outputs: they
    # start after one word and leave space for one more behind them. The sender frees the block
    compiled: AtAddress
    words: tuple[int, ...]  # its own words
    closing: AtAddress | None = (
        None  # likewise at a punctuation, once per partition; the tuple's first word is its time
    )
    most: int = 1  # outputs per tuple for which room is reserved
    unbounded: bool = False  # whether a tuple can have more
    state: Words = field(default_factory=lambda: np.zeros(1, np.int64))
    blocks: tuple[Blocks, ...] = ()  # in the state
    routes: Words = field(default_factory=_no_words)  # its part in each stream of a graph; empty in a chain
    # what it raised, if it can tell; it is given what runs the stream in plain Python
    failure: Callable[[Callable[[], object]], Exception | None] | None = None


@inlined
def room_for(words: int, outputs: int, count: int) -> int:
    """Address for outputs: the given room, or a block; 0 without memory."""
    if count <= load(words, MOST):
        return outputs
    block = allocate((count + 1) * load(words, STRIDE) // 8)
    store(outputs, 0, block)
    return block + 8 if block else 0


TABLE, _USED, ENTRIES, CLOSING, TABLE_WORDS = 0, 1, 2, 3, 8
"""Words of a table: address of its memory, entries in use, capacity, the entry that is being closed; and their number,
a cache line."""
_OWN = 2
"""Leading words of an entry: the key, and its place in the index. The state follows. The index follows the entries,
with two places for each; a place holds the number of an entry, from 1."""
_FIRST_ENTRIES = 8

ZEROS = np.zeros(16, np.int64)
"""First values of a state without others."""


def tables(partitions: int) -> tuple[Words, tuple[Blocks, ...]]:
    """An empty table for each partition."""
    return np.zeros(partitions * TABLE_WORDS, np.int64), (Blocks(TABLE, TABLE_WORDS, partitions),)


@inlined
def table_at(words: int, partition: int) -> int:
    """Address of a partition's table."""
    return load(words, STATE) + 8 * TABLE_WORDS * partition


@inlined
def _size(words: int) -> int:
    """Bytes of an entry whose state has these words."""
    return 8 * (_OWN + words)


@inlined
def _place(memory: int, entries: int, size: int, key: int) -> int:
    """The place in the index with a key's entry, or the free place for it."""
    mask, index = 2 * entries - 1, memory + size * entries
    place = int(np.int64(mixed(np.uint64(key)))) & mask
    while True:
        entry = load(index, place)
        if entry == 0 or load(memory + size * (entry - 1), 0) == key:
            return place
        place = (place + 1) & mask


@inlined
def _filled(memory: int, entries: int, size: int, used: int) -> None:
    """Index the entries in use."""
    index = memory + size * entries
    for place in range(2 * entries):
        store(index, place, 0)
    for number in range(used):
        entry = memory + size * number
        place = _place(memory, entries, size, load(entry, 0))
        store(index, place, number + 1)
        store(entry, 1, place)


@inlined
def _grown(table: int, size: int) -> bool:
    """Double a full table; whether there was memory for it."""
    memory, used = load(table, TABLE), load(table, _USED)
    entries = max(2 * load(table, ENTRIES), _FIRST_ENTRIES)
    larger = allocate((size // 8 + 2) * entries)
    if larger == 0:
        return False
    for word in range(size // 8 * used):
        store(larger, word, load(memory, word))
    clear(larger + size * used, (size // 8 + 2) * entries - size // 8 * used)
    _filled(larger, entries, size, used)
    release(memory)
    store(table, TABLE, larger)
    store(table, ENTRIES, entries)
    return True


@inlined
def state_of(table: int, key: int, words: int, first: int) -> int:
    """Address of a key's state; 0 without memory.

    A new state has the first values.
    """
    size = _size(words)
    if load(table, _USED) == load(table, ENTRIES) and not _grown(table, size):
        return 0
    memory, entries, used = load(table, TABLE), load(table, ENTRIES), load(table, _USED)
    place = _place(memory, entries, size, key)
    index = memory + size * entries
    number = load(index, place)
    if number:
        return memory + size * (number - 1) + 8 * _OWN
    entry = memory + size * used
    store(index, place, used + 1)
    store(entry, 0, key)
    store(entry, 1, place)
    for word in range(words):
        store(entry, _OWN + word, load(first, word))
    store(table, _USED, used + 1)
    return entry + 8 * _OWN


@inlined
def states_in(table: int) -> int:
    """Number of states."""
    return load(table, _USED)


@inlined
def state_at(table: int, number: int, words: int) -> int:
    """Address of a state by its number."""
    return load(table, TABLE) + _size(words) * number + 8 * _OWN


@inlined
def key_of(state: int) -> int:
    """The key of a state."""
    return load(state, -_OWN)


@inlined
def forget_all(table: int, words: int) -> None:
    """Remove all states."""
    index = load(table, TABLE) + _size(words) * load(table, ENTRIES)
    for number in range(load(table, _USED)):
        store(index, load(state_at(table, number, words), 1 - _OWN), 0)
    store(table, _USED, 0)


@inlined
def is_first(state: int, words: int, first: int) -> bool:
    """Whether a state has its first values."""
    for word in range(words):  # noqa: SIM110 (compiled)
        if load(state, word) != load(first, word):
            return False
    return True


@inlined
def forget_first(table: int, words: int, first: int) -> None:
    """Remove the states with first values; others keep their order."""
    memory, used, size, kept = load(table, TABLE), load(table, _USED), _size(words), 0
    for number in range(used):
        entry = memory + size * number
        if is_first(entry + 8 * _OWN, words, first):
            continue
        if kept < number:
            for word in range(_OWN + words):
                store(memory + size * kept, word, load(entry, word))
        kept += 1
    if kept < used:
        store(table, _USED, kept)
        _filled(memory, load(table, ENTRIES), size, kept)
