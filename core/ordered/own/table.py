"""Table of the states of a partition's keys, in compiled code.

States are in the order in which their keys arrived. At a punctuation, a state that has its first values again is
forgotten.
"""

import numpy as np

from adapt.core.atomics import allocate, clear, load, release, store
from adapt.core.compiled import inlined
from adapt.core.random_bits import mixed

TABLE, _USED, ENTRIES, CLOSING, TABLE_WORDS = 0, 1, 2, 3, 8
"""Words of a table: address of its memory, entries in use, capacity, the entry that is being closed; and their number,
a cache line."""
_OWN = 2
"""Leading words of an entry: the key, and its place in the index. The state follows. The index follows the entries,
with two places for each; a place holds the number of an entry, from 1."""
_FIRST_ENTRIES = 8


def entry_words(words: int) -> int:
    """Words of an entry whose state has these words."""
    return _OWN + words


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
