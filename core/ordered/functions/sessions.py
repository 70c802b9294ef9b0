"""Operators over clicks: sessions, recent views, item pairs, pages.

A session ends with the first tuple of its key after the gap, or with a punctuation that rules out further tuples. The
sessions of a partition are linked by the time of their last tuple, so that a punctuation visits only those that end.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import ClassVar

import numpy as np

from adapt.core.atomics import allocate, clear, load, reallocate, store
from adapt.core.compiled import AtAddress, inlined
from adapt.core.ordered.chain.bound import CODES, END, BoundOperator, Words
from adapt.core.ordered.chain.chain import CHUNK, CHUNKED, TIME
from adapt.core.ordered.chain.mixing import MASK
from adapt.core.ordered.functions.baskets import PAIR
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
    Step,
    Windowed,
)
from adapt.core.ordered.functions.stateless import DAY_US

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


VIEWS, LONGEST_US = 5, 10 * DAY_US

_VIEW, _CHECKOUT = CODES["page"].index("view"), CODES["page"].index("checkout")
_SEEN, _FIRST_VIEW, _KEY_WORDS = 0, 1, 1 + 2 * VIEWS
"""State of a key: its views so far, then time and item of the latest ones, as a ring."""


def _recent_views(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (one state per key is enough)
    views = load(words, STATE) + 8 * _KEY_WORDS * load(given, load(words, OWN))
    time, page, seen = load(given, load(words, OWN + 1)), load(given, load(words, OWN + 3)), load(views, _SEEN)
    if page == _VIEW:
        store(views, _FIRST_VIEW + 2 * (seen % VIEWS), time)
        store(views, _FIRST_VIEW + 2 * (seen % VIEWS) + 1, load(given, load(words, OWN + 2)))
        store(views, _SEEN, seen + 1)
    if page != _CHECKOUT:
        return 0
    count = 0
    for view in range(max(seen - VIEWS, 0), seen):
        at = _FIRST_VIEW + 2 * (view % VIEWS)
        if time - load(views, at) <= LONGEST_US:
            store(outputs, 0, load(views, at + 1))
            store(outputs, 1, 1)
            outputs += load(words, STRIDE)
            count += 1
    return int(count)


class RecentViews(Function):
    """At a checkout, the last five views of the key.

    At most ten days old, the oldest first. Clicks on other pages are ignored.
    """

    compiled = AtAddress(SIGNATURE, _recent_views)

    def most(self, bound: BoundOperator) -> int:  # noqa: ARG002 (whatever the operator)
        """Five."""
        return VIEWS

    def step(self, bound: BoundOperator) -> Step:
        """The plain-Python step."""
        key_at, time_at, item_at, page_at = self.words(bound)
        views: dict[int, deque[tuple[int, int]]] = {}

        def step(row: Row) -> Sequence[Row]:
            seen = views.setdefault(row[key_at], deque(maxlen=VIEWS))
            if row[page_at] == _VIEW:
                seen.append((row[time_at], row[item_at]))
            if row[page_at] != _CHECKOUT:
                return ()
            return [(item, 1) for time, item in seen if row[time_at] - time <= LONGEST_US]

        return step

    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """Places of key, time, item and page."""
        return bound.key_at, *(bound.fields.index(name) for name in (TIME, "item", "page"))

    def state(self, bound: BoundOperator) -> Words:
        """One record per key."""
        return np.zeros(bound.keys * _KEY_WORDS, np.int64)


_HALF = (1 << 32) - 1


def _unpacked(words: Row) -> list[int]:
    halves = [half for word in words for half in (word & _HALF, word >> 32)]
    return [half - 1 for half in halves if half]


@inlined
def _item(given: int, first: int, number: int) -> int:
    """The item at a position of a chunk, plus 1; 0 if there is no item."""
    return (load(given, first + number // 2) >> (32 * (number & 1))) & _HALF


@inlined
def _held(given: int, first: int) -> int:
    """Number of items in a chunk."""
    count = 0
    while count < CHUNK and _item(given, first, count):
        count += 1
    return count


@inlined
def _give(place: int, one: int, other: int) -> None:
    """Write a pair of items, each given plus 1."""
    store(place, 0, (min(one, other) - 1) * PAIR + max(one, other) - 1)
    store(place, 1, 1)


@inlined
def _pairs_within(given: int, first: int, count: int, place: int, stride: int) -> int:
    for one in range(count - 1):
        for other in range(one + 1, count):
            _give(place, _item(given, first, one), _item(given, first, other))
            place += stride
    return place


def _item_pairs(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (no state)
    first, within, stride = load(words, OWN), load(given, load(words, OWN + 1)), load(words, STRIDE)
    second, place = first + CHUNK // 2, outputs
    ones, others = _held(given, first), _held(given, second)
    if within & 1:
        place = _pairs_within(given, first, ones, place, stride)
    if within & 2:
        place = _pairs_within(given, second, others, place, stride)
    for one in range(ones):
        for other in range(others):
            _give(place, _item(given, first, one), _item(given, second, other))
            place += stride
    return int((place - outputs) // stride)


class ItemPairs(Function):
    """Pairs of items of two chunks, and within a chunk if requested."""

    compiled = AtAddress(SIGNATURE, _item_pairs)

    def most(self, bound: BoundOperator) -> int:  # noqa: ARG002 (whatever the operator)
        """Pairs of two full chunks."""
        return CHUNK * (2 * CHUNK - 1)

    def step(self, bound: BoundOperator) -> Step:
        """The plain-Python step."""
        at, within_at = bound.fields.index(CHUNKED[0]), bound.fields.index("within")

        def step(row: Row) -> list[Row]:
            words = row[at : at + len(CHUNKED)]
            first, second = _unpacked(words[: CHUNK // 2]), _unpacked(words[CHUNK // 2 :])
            within = row[within_at]
            pairs = list(combinations(first, 2)) if within & 1 else []
            pairs += list(combinations(second, 2)) if within & 2 else []
            pairs += [(one, other) for one in first for other in second]
            return [(min(pair) * PAIR + max(pair), 1) for pair in pairs]

        return step

    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """Places of the items' first word and of the pairing bits."""
        return bound.fields.index(CHUNKED[0]), bound.fields.index("within")


class _Mean(Windowed):
    def __init__(self, pages_at: int) -> None:
        self._at, self._pages, self._sessions = pages_at, 0, 0

    def __call__(self, row: Row) -> Sequence[Row]:
        self._pages, self._sessions = self._pages + row[self._at] & MASK, self._sessions + 1
        return ()

    def close(self, partition: int, time: int) -> Sequence[Row]:  # noqa: ARG002 (one output)
        return [(self._pages, self._sessions)] if time == END and self._sessions else ()


def _add(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (outputs come at the end)
    state = load(words, STATE)
    store(state, 0, load(state, 0) + load(given, load(words, OWN)))
    store(state, 1, load(state, 1) + 1)
    return 0


def _close(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001
    state = load(words, STATE)
    if load(given, 0) != END or load(state, 1) == 0:
        return 0
    store(outputs, 0, load(state, 0))
    store(outputs, 1, load(state, 1))
    return 1


class MeanPages(Function):
    """Total pages and number of sessions, at the end of the stream.

    Nothing if there were no sessions.
    """

    compiled = AtAddress(SIGNATURE, _add)
    closing = AtAddress(SIGNATURE, _close)

    def step(self, bound: BoundOperator) -> Windowed:
        """The plain-Python step."""
        return _Mean(bound.fields.index("pages"))

    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """Place of the pages."""
        return (bound.fields.index("pages"),)

    def state(self, bound: BoundOperator) -> Words:  # noqa: ARG002
        """Pages and sessions."""
        return np.zeros(2, np.int64)
