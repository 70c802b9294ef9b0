"""Categories whose daily revenue falls."""

from collections.abc import Sequence

import numpy as np

from adapt.core.atomics import load, store
from adapt.core.compiled import AtAddress
from adapt.core.ordered.chain.bound import END, BoundOperator, Words
from adapt.core.ordered.chain.mixing import MASK
from adapt.core.ordered.functions.function import OWN, SIGNATURE, STATE, STRIDE, Function, Row, Windowed

_FIRST_KEY, _LAST_KEY, _PART_WORDS = 0, 1, 2
"""State of a partition: its first and its last key in order of arrival, plus 1; 0 if it has none."""
_DAYS, _D, _Y, _DY, _DD, _LATEST, _BEGAN, _NEXT, _CATEGORY, _KEY_WORDS = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
"""State of a key: its days with sales, n; the sums of d, y, dy and dd over them, d counted from the first; the latest
and the first of them plus 1; the key after it in its partition plus 1; its category."""


class _Revenue(Windowed):
    def __init__(self, bound: BoundOperator) -> None:
        self._bound = bound
        self._key_at, self._category_at, self._day_at, self._revenue_at, _ = FallingRevenue().words(bound)
        self._daily: list[dict[int, tuple[int, dict[int, int]]]] = [{} for _ in range(bound.partitions)]

    def __call__(self, row: Row) -> Sequence[Row]:
        of = self._daily[self._bound.partition(row)]
        _, daily = of.setdefault(row[self._key_at], (row[self._category_at], {}))
        daily[row[self._day_at]] = daily.get(row[self._day_at], 0) + row[self._revenue_at]
        return ()

    def close(self, partition: int, time: int) -> Sequence[Row]:
        if time != END:
            return ()
        return [row for category, daily in self._daily[partition].values() for row in _slope_rows(category, daily)]


def _slope_rows(category: int, daily: dict[int, int]) -> Sequence[Row]:
    days = [day - min(daily) for day in daily]
    rise = len(days) * sum(day * y for day, y in zip(days, daily.values(), strict=True)) - sum(days) * sum(
        daily.values()
    )
    spread = len(days) * sum(day * day for day in days) - sum(days) ** 2
    return [(category, rise & MASK, spread & MASK)] if spread > 0 and rise <= 0 else []


def _add(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (outputs come at the end)
    part, key = load(words, STATE) + 8 * _PART_WORDS * partition, load(given, load(words, OWN))
    keys = load(words, STATE) + 8 * _PART_WORDS * load(words, OWN + 4)
    of, day = keys + 8 * _KEY_WORDS * key, load(given, load(words, OWN + 2))
    if load(of, _BEGAN) == 0:
        store(of, _BEGAN, day + 1)
        store(of, _CATEGORY, load(given, load(words, OWN + 1)))
        last = load(part, _LAST_KEY)
        if last:
            store(keys + 8 * _KEY_WORDS * (last - 1), _NEXT, key + 1)
        else:
            store(part, _FIRST_KEY, key + 1)
        store(part, _LAST_KEY, key + 1)
    d, y = day + 1 - load(of, _BEGAN), load(given, load(words, OWN + 3))
    if load(of, _LATEST) != day + 1:
        store(of, _LATEST, day + 1)
        store(of, _DAYS, load(of, _DAYS) + 1)
        store(of, _D, load(of, _D) + d)
        store(of, _DD, load(of, _DD) + d * d)
    store(of, _Y, load(of, _Y) + y)
    store(of, _DY, load(of, _DY) + d * y)
    return 0


def _close(words: int, partition: int, given: int, outputs: int) -> int:
    if load(given, 0) != END:
        return 0
    keys = load(words, STATE) + 8 * _PART_WORDS * load(words, OWN + 4)
    key, count = load(load(words, STATE) + 8 * _PART_WORDS * partition, _FIRST_KEY), 0
    while key:
        of = keys + 8 * _KEY_WORDS * (key - 1)
        rise = load(of, _DAYS) * load(of, _DY) - load(of, _D) * load(of, _Y)
        spread = load(of, _DAYS) * load(of, _DD) - load(of, _D) * load(of, _D)
        if spread > 0 and rise <= 0:
            store(outputs, 0, load(of, _CATEGORY))
            store(outputs, 1, rise)
            store(outputs, 2, spread)
            outputs += load(words, STRIDE)
            count += 1
        key = load(of, _NEXT)
    return int(count)


class FallingRevenue(Function):
    """Categories without rising daily revenue, at the end of the stream.

    Flat or falling means a least-squares slope of 0 or less.

    The slope is taken over the days with sales, and given as two integers: the rise n sum(dy) - sum(d) sum(y), and its
    divisor, the spread n sum(dd) - sum(d)^2. A category with a single day has no slope. Days arrive in order.
    """

    compiled = AtAddress(SIGNATURE, _add)
    closing = AtAddress(SIGNATURE, _close)

    def most(self, bound: BoundOperator) -> int:
        """Keys of the largest partition."""
        return 0 if bound.partition_of is None else int(np.bincount(bound.partition_of, minlength=1).max())

    def step(self, bound: BoundOperator) -> Windowed:
        """The plain-Python step."""
        return _Revenue(bound)

    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """Places of key, category, day and revenue; number of partitions."""
        return bound.key_at, *(bound.fields.index(name) for name in ("category", "day", "revenue")), bound.partitions

    def state(self, bound: BoundOperator) -> Words:
        """One record per partition, then one per key."""
        return np.zeros(bound.partitions * _PART_WORDS + bound.keys * _KEY_WORDS, np.int64)
