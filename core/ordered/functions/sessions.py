"""Sessions per key, with a gap of one hour in event time.

A session ends with the first tuple of its key after the gap, or with a punctuation that rules out further tuples. The
sessions of a partition are linked by the time of their last tuple, so that a punctuation visits only those that end.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from adapt.core.atomics import allocate, clear, load, reallocate, store
from adapt.core.compiled import AtAddress, inlined
from adapt.core.ordered.chain.bound import BoundOperator, Words
from adapt.core.ordered.chain.roles import CHUNK, CHUNKED, TIME
from adapt.core.ordered.functions.function import (
    MOST,
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

PAUSE_US = 3_600_000_000
"""Longest gap within a session."""

_OLDEST, _NEWEST, _PART_WORDS = 0, 1, 2
"""State of a partition: keys of the open sessions with the oldest and the newest last tuple, plus 1; 0 for none."""
_LAST, _BEFORE, _AFTER, _COUNT, _KINDS, _ITEMS, _ROOM, _SESSION_WORDS = 0, 1, 2, 3, 4, 5, 6, 8
"""State of a key: the time of its last tuple plus 1, 0 if no session is open; the keys of the sessions before and after
it in that order, plus 1; its pages or distinct items; the kinds of its pages as bits, or the address of its items, and
their capacity."""
_WITHIN = len(CHUNKED)
_FIRST_ITEMS = 8


class _Open(Windowed):
    """Open sessions of each partition, the longest idle first."""

    def __init__(self, bound: BoundOperator, read: str, rows: Callable[[list[int]], Sequence[Row]]) -> None:
        self._bound, self._rows = bound, rows
        self._key_at, self._time_at, self._at = bound.key_at, bound.fields.index(TIME), bound.fields.index(read)
        self._open: list[dict[int, tuple[int, list[int]]]] = [{} for _ in range(bound.partitions)]

    def __call__(self, row: Row) -> Sequence[Row]:
        key, time, word = row[self._key_at], row[self._time_at], row[self._at]
        sessions = self._open[self._bound.partition(row)]
        last, words = sessions.pop(key, (time, []))
        ended = words if time - last > PAUSE_US else []
        words = [] if ended else words
        words.append(word)
        sessions[key] = time, words
        return self._rows(ended) if ended else ()

    def close(self, partition: int, time: int) -> Sequence[Row]:
        sessions, rows = self._open[partition], list[Row]()
        for key, (last, words) in list(sessions.items()):
            if time - last <= PAUSE_US:
                break
            rows += self._rows(words)
            del sessions[key]
        return rows


def _page_rows(pages: list[int]) -> Sequence[Row]:
    return [(len(pages), sum(1 << page for page in set(pages)))]


def _chunk_rows(items: list[int]) -> Sequence[Row]:
    distinct = list(dict.fromkeys(items))
    chunks = [distinct[first : first + CHUNK] for first in range(0, len(distinct), CHUNK)]
    if len(chunks) == 1:
        return [(*_packed(chunks[0]), *_packed([]), 1)]
    last = len(chunks) - 1
    return [
        (*_packed(chunks[one]), *_packed(chunks[other]), (other == one + 1) + 2 * (one == last - 1))
        for one in range(last)
        for other in range(one + 1, last + 1)
    ]


def _packed(chunk: list[int]) -> Row:
    padded = [item + 1 for item in chunk] + [0] * (CHUNK - len(chunk))
    return tuple(padded[at] + (padded[at + 1] << 32) for at in range(0, CHUNK, 2))


@inlined
def _session(words: int, key: int) -> int:
    return load(words, STATE) + 8 * (_PART_WORDS * load(words, OWN + 3) + _SESSION_WORDS * key)


@inlined
def _unlink(words: int, part: int, session: int) -> None:
    """Unlink a session from the order of its partition."""
    before, after = load(session, _BEFORE), load(session, _AFTER)
    if before:
        store(_session(words, before - 1), _AFTER, after)
    else:
        store(part, _OLDEST, after)
    if after:
        store(_session(words, after - 1), _BEFORE, before)
    else:
        store(part, _NEWEST, before)


@inlined
def _append(words: int, part: int, session: int, key: int) -> None:
    """Move a session to the newest end."""
    newest = load(part, _NEWEST)
    store(session, _BEFORE, newest)
    store(session, _AFTER, 0)
    if newest:
        store(_session(words, newest - 1), _AFTER, key + 1)
    else:
        store(part, _OLDEST, key + 1)
    store(part, _NEWEST, key + 1)


@inlined
def _room(words: int, outputs: int, count: int) -> int:
    """Address for outputs: the given room, or a block of their own; 0 if there is no memory."""
    if count <= load(words, MOST):
        return outputs
    block = allocate((count + 1) * load(words, STRIDE) // 8)
    store(outputs, 0, block)
    return block + 8 if block else 0


@inlined
def _over(session: int, time: int) -> bool:
    """Whether a session is over at this time."""
    return time - (load(session, _LAST) - 1) > PAUSE_US


@inlined
def _chunks(items: int) -> int:
    return (items + CHUNK - 1) // CHUNK


@inlined
def _chunk_tuples(items: int) -> int:
    chunks = _chunks(items)
    return chunks * (chunks - 1) // 2 if chunks > 1 else 1


@inlined
def _pack(items: int, count: int, chunk: int, place: int) -> None:
    """Write a chunk of items, two per word, padded with 0."""
    for at in range(0, CHUNK, 2):
        first = chunk * CHUNK + at
        low = load(items, first) + 1 if first < count else 0
        high = load(items, first + 1) + 1 if first + 1 < count else 0
        store(place, at // 2, low + (high << 32))


@inlined
def _give_items(session: int, place: int, stride: int) -> int:
    """Write the outputs of a session; returns the address for the next ones."""
    items, count = load(session, _ITEMS), load(session, _COUNT)
    chunks = _chunks(count)
    if chunks == 1:
        _pack(items, count, 0, place)
        _pack(items, 0, 0, place + 8 * (CHUNK // 2))
        store(place, _WITHIN, 1)
        return place + stride
    for one in range(chunks - 1):
        for other in range(one + 1, chunks):
            _pack(items, count, one, place)
            _pack(items, count, other, place + 8 * (CHUNK // 2))
            store(place, _WITHIN, (1 if other == one + 1 else 0) + (2 if one == chunks - 2 else 0))
            place += stride
    return place


@inlined
def _keep_item(session: int, item: int) -> bool:
    """Add a new item to a session; whether there was memory for it."""
    items, count = load(session, _ITEMS), load(session, _COUNT)
    for at in range(count):
        if load(items, at) == item:
            return True
    if count == load(session, _ROOM):
        room = max(2 * count, _FIRST_ITEMS)
        items = reallocate(items, room)
        if items == 0:
            return False
        clear(items + 8 * count, room - count)
        store(session, _ITEMS, items)
        store(session, _ROOM, room)
    store(items, count, item)
    store(session, _COUNT, count + 1)
    return True


@inlined
def _touch(words: int, part: int, session: int, key: int, time: int) -> None:
    """Update a session for a new tuple, which makes it the newest."""
    if load(session, _LAST):
        _unlink(words, part, session)
    _append(words, part, session, key)
    store(session, _LAST, time + 1)


def _add_item(words: int, partition: int, given: int, outputs: int) -> int:
    part, key, time = load(words, STATE) + 8 * _PART_WORDS * partition, load(given, load(words, OWN)), 0
    time, count, session = load(given, load(words, OWN + 1)), 0, _session(words, key)
    if load(session, _LAST) and _over(session, time):
        count = _chunk_tuples(load(session, _COUNT))
        place = _room(words, outputs, count)
        if place == 0:
            return NO_MEMORY
        _give_items(session, place, load(words, STRIDE))
        store(session, _COUNT, 0)
    _touch(words, part, session, key, time)
    if not _keep_item(session, load(given, load(words, OWN + 2))):
        return NO_MEMORY
    return int(count)


@inlined
def _end(words: int, part: int, session: int) -> None:
    _unlink(words, part, session)
    store(session, _LAST, 0)
    store(session, _COUNT, 0)


def _close_items(words: int, partition: int, given: int, outputs: int) -> int:
    part, time, count = load(words, STATE) + 8 * _PART_WORDS * partition, load(given, 0), 0
    key = load(part, _OLDEST)
    while key and _over(_session(words, key - 1), time):
        count += _chunk_tuples(load(_session(words, key - 1), _COUNT))
        key = load(_session(words, key - 1), _AFTER)
    place = _room(words, outputs, count)
    if place == 0:
        return NO_MEMORY
    key = load(part, _OLDEST)
    while key and _over(_session(words, key - 1), time):
        session = _session(words, key - 1)
        place = _give_items(session, place, load(words, STRIDE))
        _end(words, part, session)
        key = load(part, _OLDEST)
    return int(count)


@inlined
def _give_pages(session: int, place: int) -> None:
    store(place, 0, load(session, _COUNT))
    store(place, 1, load(session, _KINDS))


def _add_page(words: int, partition: int, given: int, outputs: int) -> int:
    part, key = load(words, STATE) + 8 * _PART_WORDS * partition, load(given, load(words, OWN))
    time, page, session = load(given, load(words, OWN + 1)), load(given, load(words, OWN + 2)), _session(words, key)
    count = 0
    if load(session, _LAST) and _over(session, time):
        _give_pages(session, outputs)
        store(session, _COUNT, 0)
        store(session, _KINDS, 0)
        count = 1
    _touch(words, part, session, key, time)
    store(session, _COUNT, load(session, _COUNT) + 1)
    store(session, _KINDS, load(session, _KINDS) | (1 << page))
    return int(count)


def _close_pages(words: int, partition: int, given: int, outputs: int) -> int:
    part, time, count = load(words, STATE) + 8 * _PART_WORDS * partition, load(given, 0), 0
    key = load(part, _OLDEST)
    while key and _over(_session(words, key - 1), time):
        count += 1
        key = load(_session(words, key - 1), _AFTER)
    place = _room(words, outputs, count)
    if place == 0:
        return NO_MEMORY
    key = load(part, _OLDEST)
    while key and _over(_session(words, key - 1), time):
        session = _session(words, key - 1)
        _give_pages(session, place)
        place += load(words, STRIDE)
        _end(words, part, session)
        store(session, _KINDS, 0)
        key = load(part, _OLDEST)
    return int(count)


class _Sessions(Function):
    """Base of the session functions."""

    _read: ClassVar[str]
    """The field that the function reads."""

    unbounded = True
    """Any number of sessions may end at a punctuation."""

    def most(self, bound: BoundOperator) -> int:  # noqa: ARG002 (for every operator)
        """Outputs of most sessions."""
        return 8

    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """Places of key, time and the field that is read; number of partitions."""
        return bound.key_at, bound.fields.index(TIME), bound.fields.index(self._read), bound.partitions

    def state(self, bound: BoundOperator) -> Words:
        """One record per partition, then one per key."""
        return np.zeros(bound.partitions * _PART_WORDS + bound.keys * _SESSION_WORDS, np.int64)


class SessionItems(_Sessions):
    """Distinct items of a session, in chunks of eight.

    A session of one chunk is one tuple. A longer one has a tuple for every two chunks; bits mark the chunks whose own
    items are to be paired, so that each two items of the session are paired once.
    """

    _read = "item"
    compiled = AtAddress(SIGNATURE, _add_item)
    closing = AtAddress(SIGNATURE, _close_items)

    def step(self, bound: BoundOperator) -> Windowed:
        """The plain-Python step."""
        return _Open(bound, "item", _chunk_rows)

    def blocks(self, bound: BoundOperator) -> Sequence[Blocks]:
        """Items of each key."""
        return (Blocks(bound.partitions * _PART_WORDS + _ITEMS, _SESSION_WORDS, bound.keys, _ROOM - _ITEMS, 1),)


class SessionPages(_Sessions):
    """Gives the number of a session's pages, and their kinds as bits."""

    _read = "page"
    compiled = AtAddress(SIGNATURE, _add_page)
    closing = AtAddress(SIGNATURE, _close_pages)

    def step(self, bound: BoundOperator) -> Windowed:
        """The plain-Python step."""
        return _Open(bound, "page", _page_rows)
