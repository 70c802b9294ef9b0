"""Pairs of items of one session."""

from itertools import combinations

from adapt.core.atomics import load, store
from adapt.core.compiled import AtAddress, inlined
from adapt.core.ordered.chain.bound import BoundOperator
from adapt.core.ordered.chain.roles import CHUNK, CHUNKED
from adapt.core.ordered.functions.baskets import PAIR
from adapt.core.ordered.functions.function import OWN, SIGNATURE, STRIDE, Function, Row, Step

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
