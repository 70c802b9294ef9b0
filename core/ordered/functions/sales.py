"""Operators over sales: derived fields, baskets, the most frequent, slopes."""

from collections.abc import Callable

import numpy as np

from adapt.core.atomics import clear, load, reallocate, store
from adapt.core.compiled import AtAddress, inlined
from adapt.core.ordered.chain.bound import END, BoundOperator
from adapt.core.ordered.chain.chain import COUNTED, TIME, VALUE
from adapt.core.ordered.chain.columns import CODES
from adapt.core.ordered.functions.function import (
    NO_MEMORY,
    OWN,
    SIGNATURE,
    STATE,
    STRIDE,
    ZEROS,
    Blocks,
    Function,
    forget_all,
    key_of,
    room_for,
    state_at,
    state_of,
    states_in,
    table_at,
    tables,
)

HOUR_US, DAY_US = 3_600_000_000, 86_400_000_000

_CART, _CHECKOUT = CODES["page"].index("cart"), CODES["page"].index("checkout")


def _places(bound: BoundOperator, *made: str) -> tuple[int, ...]:
    """Place of each output field in the inputs; -1, -2 and so on for derived fields. Their number first."""
    return len(bound.gives), *(
        -1 - made.index(name) if name in made else bound.fields.index(name) for name in bound.gives
    )


@inlined
def _copied(places: int, given: int, outputs: int, first: int, second: int) -> None:
    """Write an output: the fields at these places, and the derived ones."""
    for field in range(load(places, 0)):
        place = load(places, 1 + field)
        word = first if place == -1 else second
        if place >= 0:
            word = load(given, place)
        store(outputs, field, word)


def _pick(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (no state; so below)
    at = load(words, OWN)
    if at >= 0:
        word = load(given, at)
        if word < 0 or word > 63 or not (load(words, OWN + 1) >> word) & 1:
            return 0
    _copied(words + 8 * (OWN + 2), given, outputs, 0, 0)
    return 1


def _hour(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001
    _copied(words + 8 * (OWN + 1), given, outputs, load(given, load(words, OWN)) // HOUR_US, 0)
    return 1


def _day_revenue(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001
    revenue = load(given, load(words, OWN + 1)) * load(given, load(words, OWN + 2))
    _copied(words + 8 * (OWN + 3), given, outputs, load(given, load(words, OWN)) // DAY_US, revenue)
    return 1


_PICK, _HOUR, _DAY_REVENUE = (AtAddress(SIGNATURE, each) for each in (_pick, _hour, _day_revenue))


def picking(field: str | None = None, *allowed: int) -> Callable[[BoundOperator], Function]:
    """A filter by values of a field, with a projection.

    They are from 0 to 63.
    """
    bits = sum(1 << word for word in allowed)
    return lambda bound: Function(_PICK, (-1 if field is None else bound.fields.index(field), bits, *_places(bound)))


ABANDONED = tuple(kinds for kinds in range(16) if kinds >> _CART & 1 and not kinds >> _CHECKOUT & 1)
"""Sets of page kinds, as bits, with a cart and without a checkout."""


def hour(bound: BoundOperator) -> Function:
    """Adds the hour of a tuple's time, counted from 1970."""
    return Function(_HOUR, (bound.fields.index(TIME), *_places(bound, "hour")))


def day_revenue(bound: BoundOperator) -> Function:
    """Adds the day since 1970 and the revenue of a sale."""
    return Function(_DAY_REVENUE, (*bound.places(TIME, "cents", "qty"), *_places(bound, "day", "revenue")))


PAIR = 1 << 32
"""Code of a pair: the lower item times this, plus the other."""

_NODES, _NODES_USED, _ROOM, _BASKETS_LATEST, _BASKETS_WORDS = 0, 1, 2, 3, 4
"""State of a partition: address, number and capacity of its items, and the hour of the latest plus 1."""
_NODE_WORDS = 2
"""An item, and the number of the previous item of its basket, from 1; 0 if it is the first."""
_BASKET_HOUR, _LAST, _BASKET_WORDS = 0, 1, 2
"""State of a key: the hour of its basket plus 1, and the number of the last item in it."""
_FIRST_NODES = 64


@inlined
def _more_nodes(part: int) -> bool:
    room = max(2 * load(part, _ROOM), _FIRST_NODES)
    nodes = reallocate(load(part, _NODES), _NODE_WORDS * room)
    if nodes == 0:
        return False
    filled = _NODE_WORDS * load(part, _ROOM)
    clear(nodes + 8 * filled, _NODE_WORDS * room - filled)
    store(part, _NODES, nodes)
    store(part, _ROOM, room)
    return True


def _pair(words: int, partition: int, given: int, outputs: int) -> int:
    state = load(words, STATE)
    part = state + 8 * _BASKETS_WORDS * partition
    key, item = load(given, load(words, OWN)), load(given, load(words, OWN + 1))
    hour = load(given, load(words, OWN + 2))
    basket = state + 8 * (_BASKETS_WORDS * load(words, OWN + 3) + _BASKET_WORDS * key)
    if load(basket, _BASKET_HOUR) != hour + 1:
        store(basket, _BASKET_HOUR, hour + 1)
        store(basket, _LAST, 0)
    nodes, count = load(part, _NODES), 0
    node = load(basket, _LAST)
    while node:
        if load(nodes, _NODE_WORDS * (node - 1)) == item:
            return 0
        node = load(nodes, _NODE_WORDS * (node - 1) + 1)
        count += 1
    place = room_for(words, outputs, count)
    if place == 0:
        return NO_MEMORY
    node = load(basket, _LAST)
    while node:
        other = load(nodes, _NODE_WORDS * (node - 1))
        store(place, 0, min(item, other) * PAIR + max(item, other))
        store(place, 1, 1)
        place += load(words, STRIDE)
        node = load(nodes, _NODE_WORDS * (node - 1) + 1)
    used = load(part, _NODES_USED)
    if used == load(part, _ROOM) and not _more_nodes(part):
        return NO_MEMORY
    nodes = load(part, _NODES)
    store(nodes, _NODE_WORDS * used, item)
    store(nodes, _NODE_WORDS * used + 1, load(basket, _LAST))
    store(basket, _LAST, used + 1)
    store(part, _NODES_USED, used + 1)
    store(part, _BASKETS_LATEST, hour + 1)
    return int(count)


def _forget(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (gives nothing)
    part = load(words, STATE) + 8 * _BASKETS_WORDS * partition
    if load(given, 0) // HOUR_US >= load(part, _BASKETS_LATEST):
        store(part, _NODES_USED, 0)
    return 0


_PAIRING, _FORGETTING = AtAddress(SIGNATURE, _pair), AtAddress(SIGNATURE, _forget)


def basket_pairs(bound: BoundOperator) -> Function:
    """Pairs of an item with the earlier items of its key's hour.

    An item already in the basket makes no pair. The baskets of an hour are forgotten at a later punctuation. There is
    room for the pairs of a basket of nine items, and a basket has no limit on its items.
    """
    words = bound.key_at, *bound.places("item", "hour"), bound.partitions
    state = np.zeros(bound.partitions * _BASKETS_WORDS + bound.keys * _BASKET_WORDS, np.int64)
    blocks = (Blocks(_NODES, _BASKETS_WORDS, bound.partitions),)
    return Function(_PAIRING, words, _FORGETTING, 8, True, state, blocks)


def _count_word(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (outputs come at punctuations)
    state = state_of(table_at(words, partition), load(given, load(words, OWN)), 1, load(words, OWN + 4))
    if state == 0:
        return NO_MEMORY
    store(state, 0, load(state, 0) + load(given, load(words, OWN + 1)))
    return 0


@inlined
def _before(total: int, word: int, other: int) -> bool:
    """Whether a word with its sum ranks before an output."""
    if load(other, 2) != total:
        return bool(np.uint64(total) > np.uint64(load(other, 2)))
    return bool(np.uint64(word) < np.uint64(load(other, 1)))


def _rank(words: int, partition: int, given: int, outputs: int) -> int:
    time, most = load(given, 0), load(words, OWN + 2)
    if load(words, OWN + 3) and time != END:
        return 0
    table, stride, kept = table_at(words, partition), load(words, STRIDE), 0
    for number in range(states_in(table)):
        state = state_at(table, number, 1)
        word, total = key_of(state), load(state, 0)
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
    forget_all(table, 1)
    return int(kept)


_COUNTING, _RANKING = AtAddress(SIGNATURE, _count_word), AtAddress(SIGNATURE, _rank)


def top(most: int, *, final: bool) -> Callable[[BoundOperator], Function]:
    """The top k of the sums by the counted word.

    Ties go to the lower word. Once, at the end of the stream, or at each punctuation, which resets the sums. A word
    outside the top k of its partition is outside the overall top k: a partitioned operator followed by a stateful one
    gives the overall top k.
    """

    def of(bound: BoundOperator) -> Function:
        words = *bound.places(COUNTED, VALUE), most, final, ZEROS.ctypes.data
        state, blocks = tables(bound.partitions)
        return Function(_COUNTING, words, _RANKING, most, state=state, blocks=blocks)

    return of


_DAYS, _D, _Y, _DY, _DD, _LATEST, _BEGAN, _CATEGORY, _SLOPE_WORDS = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""State of a key: its days with sales, n; the sums of d, y, dy and dd over them, d counted from the first; the latest
and the first of them plus 1; its category."""


def _add_sale(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (outputs come at the end)
    key, day, y = load(given, load(words, OWN)), load(given, load(words, OWN + 2)), load(given, load(words, OWN + 3))
    of = state_of(table_at(words, partition), key, _SLOPE_WORDS, load(words, OWN + 4))
    if of == 0:
        return NO_MEMORY
    if load(of, _BEGAN) == 0:
        store(of, _BEGAN, day + 1)
        store(of, _CATEGORY, load(given, load(words, OWN + 1)))
    d = day + 1 - load(of, _BEGAN)
    if load(of, _LATEST) != day + 1:
        store(of, _LATEST, day + 1)
        store(of, _DAYS, load(of, _DAYS) + 1)
        store(of, _D, load(of, _D) + d)
        store(of, _DD, load(of, _DD) + d * d)
    store(of, _Y, load(of, _Y) + y)
    store(of, _DY, load(of, _DY) + d * y)
    return 0


def _slopes(words: int, partition: int, given: int, outputs: int) -> int:
    if load(given, 0) != END:
        return 0
    table, count = table_at(words, partition), 0
    for number in range(states_in(table)):
        of = state_at(table, number, _SLOPE_WORDS)
        rise = load(of, _DAYS) * load(of, _DY) - load(of, _D) * load(of, _Y)
        spread = load(of, _DAYS) * load(of, _DD) - load(of, _D) * load(of, _D)
        if spread > 0 and rise <= 0:
            store(outputs, 0, load(of, _CATEGORY))
            store(outputs, 1, rise)
            store(outputs, 2, spread)
            outputs += load(words, STRIDE)
            count += 1
    return int(count)


_ADDING, _SLOPING = AtAddress(SIGNATURE, _add_sale), AtAddress(SIGNATURE, _slopes)


def falling_revenue(bound: BoundOperator) -> Function:
    """Categories without rising daily revenue, at the end of the stream.

    Flat or falling means a least-squares slope of 0 or less.

    The slope is taken over the days with sales, and given as two integers: the rise n sum(dy) - sum(d) sum(y), and its
    divisor, the spread n sum(dd) - sum(d)^2. A category with a single day has no slope. Days arrive in order. There is
    room for all keys of the largest partition.
    """
    words = bound.key_at, *bound.places("category", "day", "revenue"), ZEROS.ctypes.data
    most = 0 if bound.partition_of is None else int(np.bincount(bound.partition_of, minlength=1).max())
    state, blocks = tables(bound.partitions)
    return Function(_ADDING, words, _SLOPING, most, state=state, blocks=blocks)
