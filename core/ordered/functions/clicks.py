"""Operators over clicks: sessions, recent views, item pairs, pages.

A session ends with the first tuple of its key after the gap, or with a punctuation that rules out further tuples. The
sessions of a partition are linked by the time of their last tuple, so that a punctuation visits only those that end.
"""

from collections.abc import Callable

import numpy as np

from adapt.core.atomics import clear, load, reallocate, store
from adapt.core.compiled import AtAddress, inlined
from adapt.core.ordered.chain.bound import END, BoundOperator
from adapt.core.ordered.chain.chain import CHUNK, CHUNKED, TIME
from adapt.core.ordered.chain.columns import CODES
from adapt.core.ordered.functions.function import NO_MEMORY, OWN, SIGNATURE, STATE, STRIDE, Blocks, Function, room_for
from adapt.core.ordered.functions.sales import DAY_US, PAIR

PAUSE_US = 3_600_000_000
"""Longest gap within a session."""

_OLDEST, _NEWEST, _PART_WORDS = 0, 1, 2
"""State of a partition: keys of the open sessions with the oldest and the newest last tuple, plus 1; 0 for none."""
_LAST, _BEFORE, _AFTER, _COUNT, _KINDS, _ITEMS, _ROOM, _SESSION_WORDS = 0, 1, 2, 3, 4, 5, 6, 8
"""State of a key: the time of its last tuple plus 1, 0 if no session is open; the keys of the sessions before and after
it in that order, plus 1; its pages or distinct items; the kinds of its pages as bits; the address of its items, and
their capacity."""
_WITHIN = len(CHUNKED)
_FIRST_ITEMS = 8


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
def _touch(words: int, part: int, session: int, key: int, time: int) -> None:
    """Update a session for a new tuple, which makes it the newest."""
    if load(session, _LAST):
        _unlink(words, part, session)
    newest = load(part, _NEWEST)
    store(session, _BEFORE, newest)
    store(session, _AFTER, 0)
    if newest:
        store(_session(words, newest - 1), _AFTER, key + 1)
    else:
        store(part, _OLDEST, key + 1)
    store(part, _NEWEST, key + 1)
    store(session, _LAST, time + 1)


@inlined
def _over(session: int, time: int) -> bool:
    """Whether a session is over at this time."""
    return time - (load(session, _LAST) - 1) > PAUSE_US


@inlined
def _outputs_of(words: int, session: int) -> int:
    """Outputs of a session: one, or for items one for every two chunks."""
    chunks = (load(session, _COUNT) + CHUNK - 1) // CHUNK
    return chunks * (chunks - 1) // 2 if load(words, OWN + 4) and chunks > 1 else 1


@inlined
def _pack(items: int, count: int, chunk: int, place: int) -> None:
    """Write a chunk of items, two per word, padded with 0."""
    for at in range(0, CHUNK, 2):
        first = chunk * CHUNK + at
        low = load(items, first) + 1 if first < count else 0
        high = load(items, first + 1) + 1 if first + 1 < count else 0
        store(place, at // 2, low + (high << 32))


@inlined
def _give(words: int, session: int, place: int) -> int:
    """Write the outputs of a session, and empty it; returns the address for the next ones."""
    items, count, stride = load(session, _ITEMS), load(session, _COUNT), load(words, STRIDE)
    chunks = (count + CHUNK - 1) // CHUNK
    if not load(words, OWN + 4):
        store(place, 0, count)
        store(place, 1, load(session, _KINDS))
        place += stride
    elif chunks == 1:
        _pack(items, count, 0, place)
        _pack(items, 0, 0, place + 8 * (CHUNK // 2))
        store(place, _WITHIN, 1)
        place += stride
    else:
        for one in range(chunks - 1):
            for other in range(one + 1, chunks):
                _pack(items, count, one, place)
                _pack(items, count, other, place + 8 * (CHUNK // 2))
                store(place, _WITHIN, (1 if other == one + 1 else 0) + (2 if one == chunks - 2 else 0))
                place += stride
    store(session, _COUNT, 0)
    store(session, _KINDS, 0)
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


def _add_click(words: int, partition: int, given: int, outputs: int) -> int:
    part, key = load(words, STATE) + 8 * _PART_WORDS * partition, load(given, load(words, OWN))
    time, read, count = load(given, load(words, OWN + 1)), load(given, load(words, OWN + 2)), 0
    session = _session(words, key)
    if load(session, _LAST) and _over(session, time):
        count = _outputs_of(words, session)
        place = room_for(words, outputs, count)
        if place == 0:
            return NO_MEMORY
        _give(words, session, place)
    _touch(words, part, session, key, time)
    if not load(words, OWN + 4):
        store(session, _COUNT, load(session, _COUNT) + 1)
        store(session, _KINDS, load(session, _KINDS) | (1 << read))
    elif not _keep_item(session, read):
        return NO_MEMORY
    return int(count)


def _close_sessions(words: int, partition: int, given: int, outputs: int) -> int:
    part, time, count = load(words, STATE) + 8 * _PART_WORDS * partition, load(given, 0), 0
    key = load(part, _OLDEST)
    while key and _over(_session(words, key - 1), time):
        count += _outputs_of(words, _session(words, key - 1))
        key = load(_session(words, key - 1), _AFTER)
    place = room_for(words, outputs, count)
    if place == 0:
        return NO_MEMORY
    key = load(part, _OLDEST)
    while key and _over(_session(words, key - 1), time):
        session = _session(words, key - 1)
        place = _give(words, session, place)
        _unlink(words, part, session)
        store(session, _LAST, 0)
        key = load(part, _OLDEST)
    return int(count)


_ADDING, _CLOSING = AtAddress(SIGNATURE, _add_click), AtAddress(SIGNATURE, _close_sessions)


def sessions(read: str) -> Callable[[BoundOperator], Function]:
    """Sessions of a key, when they end.

    Of pages, their number and their kinds as bits. Of items, the distinct ones in chunks of eight: a session of one
    chunk is one tuple. A longer one has a tuple for every two chunks; bits mark the chunks whose own items are to be
    paired, so that each two items of the session are paired once. Any number of sessions may end at a punctuation.
    """

    def of(bound: BoundOperator) -> Function:
        words = bound.key_at, *bound.places(TIME, read), bound.partitions, read == "item"
        state = np.zeros(bound.partitions * _PART_WORDS + bound.keys * _SESSION_WORDS, np.int64)
        blocks = (Blocks(bound.partitions * _PART_WORDS + _ITEMS, _SESSION_WORDS, bound.keys),)
        return Function(_ADDING, words, _CLOSING, 8, True, state, blocks)

    return of


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


_RECENT_VIEWS = AtAddress(SIGNATURE, _recent_views)


def recent_views(bound: BoundOperator) -> Function:
    """At a checkout, the last five views of the key.

    At most ten days old, the oldest first. Clicks on other pages are ignored.
    """
    words = bound.key_at, *bound.places(TIME, "item", "page")
    return Function(_RECENT_VIEWS, words, most=VIEWS, state=np.zeros(bound.keys * _KEY_WORDS, np.int64))


_HALF = (1 << 32) - 1


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
def _give_pair(place: int, one: int, other: int) -> None:
    """Write a pair of items, each given plus 1."""
    store(place, 0, (min(one, other) - 1) * PAIR + max(one, other) - 1)
    store(place, 1, 1)


@inlined
def _pairs_within(given: int, first: int, count: int, place: int, stride: int) -> int:
    for one in range(count - 1):
        for other in range(one + 1, count):
            _give_pair(place, _item(given, first, one), _item(given, first, other))
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
            _give_pair(place, _item(given, first, one), _item(given, second, other))
            place += stride
    return int((place - outputs) // stride)


_ITEM_PAIRS = AtAddress(SIGNATURE, _item_pairs)


def item_pairs(bound: BoundOperator) -> Function:
    """Pairs of items of two chunks, and within a chunk if requested."""
    return Function(_ITEM_PAIRS, bound.places(CHUNKED[0], "within"), most=CHUNK * (2 * CHUNK - 1))


def _add_pages(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (outputs come at the end)
    state = load(words, STATE)
    store(state, 0, load(state, 0) + load(given, load(words, OWN)))
    store(state, 1, load(state, 1) + 1)
    return 0


def _give_pages(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001
    state = load(words, STATE)
    if load(given, 0) != END or load(state, 1) == 0:
        return 0
    store(outputs, 0, load(state, 0))
    store(outputs, 1, load(state, 1))
    return 1


_ADDING_PAGES, _GIVING_PAGES = AtAddress(SIGNATURE, _add_pages), AtAddress(SIGNATURE, _give_pages)


def mean_pages(bound: BoundOperator) -> Function:
    """Total pages and number of sessions, at the end of the stream.

    Nothing if there were no sessions.
    """
    return Function(_ADDING_PAGES, bound.places("pages"), _GIVING_PAGES, state=np.zeros(2, np.int64))
