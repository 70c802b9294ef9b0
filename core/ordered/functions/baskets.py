"""Pairs of items bought together."""

from collections.abc import Sequence

import numpy as np

from adapt.core.atomics import allocate, clear, load, reallocate, store
from adapt.core.compiled import AtAddress, inlined
from adapt.core.ordered.chain.bound import BoundOperator, Words
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
from adapt.core.ordered.functions.stateless import HOUR_US

PAIR = 1 << 32
"""Code of a pair: the lower item times this, plus the other."""

_NODES, _USED, _ROOM, _LATEST, _PART_WORDS = 0, 1, 2, 3, 4
"""State of a partition: address, number and capacity of its items, and the hour of the latest plus 1."""
_NODE_WORDS = 2
"""An item, and the number of the previous item of its basket, from 1; 0 if it is the first."""
_HOUR, _LAST, _BASKET_WORDS = 0, 1, 2
"""State of a key: the hour of its basket plus 1, and the number of the last item in it."""
_FIRST_NODES = 64


class _Baskets(Windowed):
    def __init__(self, bound: BoundOperator) -> None:
        self._key_at, self._item_at, self._hour_at, _ = BasketPairs().words(bound)
        self._baskets: dict[int, tuple[int, list[int]]] = {}

    def __call__(self, row: Row) -> Sequence[Row]:
        key, item, hour = row[self._key_at], row[self._item_at], row[self._hour_at]
        of, items = self._baskets.get(key, (hour, []))
        if of != hour:
            items = []
        if item in items:
            return ()
        pairs = [(min(item, other) * PAIR + max(item, other), 1) for other in reversed(items)]
        self._baskets[key] = hour, [*items, item]
        return pairs

    def close(self, partition: int, time: int) -> Sequence[Row]:  # noqa: ARG002 (forgets only what is no longer read)
        return ()


@inlined
def _room(words: int, outputs: int, count: int) -> int:
    """Address for outputs: the given room, or a block of their own; 0 if there is no memory."""
    if count <= load(words, MOST):
        return outputs
    block = allocate((count + 1) * load(words, STRIDE) // 8)
    store(outputs, 0, block)
    return block + 8 if block else 0


@inlined
def _grown(part: int) -> bool:
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
    part = state + 8 * _PART_WORDS * partition
    key, item = load(given, load(words, OWN)), load(given, load(words, OWN + 1))
    hour = load(given, load(words, OWN + 2))
    basket = state + 8 * (_PART_WORDS * load(words, OWN + 3) + _BASKET_WORDS * key)
    if load(basket, _HOUR) != hour + 1:
        store(basket, _HOUR, hour + 1)
        store(basket, _LAST, 0)
    nodes, count = load(part, _NODES), 0
    node = load(basket, _LAST)
    while node:
        if load(nodes, _NODE_WORDS * (node - 1)) == item:
            return 0
        node = load(nodes, _NODE_WORDS * (node - 1) + 1)
        count += 1
    place = _room(words, outputs, count)
    if place == 0:
        return NO_MEMORY
    node = load(basket, _LAST)
    while node:
        other = load(nodes, _NODE_WORDS * (node - 1))
        store(place, 0, min(item, other) * PAIR + max(item, other))
        store(place, 1, 1)
        place += load(words, STRIDE)
        node = load(nodes, _NODE_WORDS * (node - 1) + 1)
    used = load(part, _USED)
    if used == load(part, _ROOM) and not _grown(part):
        return NO_MEMORY
    nodes = load(part, _NODES)
    store(nodes, _NODE_WORDS * used, item)
    store(nodes, _NODE_WORDS * used + 1, load(basket, _LAST))
    store(basket, _LAST, used + 1)
    store(part, _USED, used + 1)
    store(part, _LATEST, hour + 1)
    return int(count)


def _forget(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (gives nothing)
    part = load(words, STATE) + 8 * _PART_WORDS * partition
    if load(given, 0) // HOUR_US >= load(part, _LATEST):
        store(part, _USED, 0)
    return 0


class BasketPairs(Function):
    """Pairs of an item with the earlier items of its key's hour.

    An item already in the basket makes no pair. The baskets of an hour are forgotten at a later punctuation.
    """

    compiled = AtAddress(SIGNATURE, _pair)
    closing = AtAddress(SIGNATURE, _forget)
    unbounded = True
    """A basket has no limit on its items."""

    def most(self, bound: BoundOperator) -> int:  # noqa: ARG002 (whatever the operator)
        """Pairs of a basket of nine items."""
        return 8

    def step(self, bound: BoundOperator) -> Windowed:
        """The plain-Python step."""
        return _Baskets(bound)

    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """Places of key, item and hour; number of partitions."""
        return bound.key_at, bound.fields.index("item"), bound.fields.index("hour"), bound.partitions

    def state(self, bound: BoundOperator) -> Words:
        """One record per partition, then one per key."""
        return np.zeros(bound.partitions * _PART_WORDS + bound.keys * _BASKET_WORDS, np.int64)

    def blocks(self, bound: BoundOperator) -> Sequence[Blocks]:
        """Items of each partition."""
        return (Blocks(_NODES, _PART_WORDS, bound.partitions, _ROOM, _NODE_WORDS),)
