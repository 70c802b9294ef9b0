"""Built-in functions of operators in plain Python: what the compiled ones must give."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adapt.core.ordered.chain.bound import BoundOperator
from adapt.core.ordered.chain.chain import COUNTED, TIME, VALUE, WORD
from adapt.core.ordered.chain.layouts import payload_fields
from adapt.core.ordered.chain.mixing import FOLD, MASK, mixed
from adapt.core.ordered.chain.names import FunctionName, OperatorKind
from adapt.core.ordered.functions.function import Row
from adapt.core.ordered.functions.sales import HOUR_US, PAIR

Step = Callable[[Row], Sequence[Row]]


class Windowed(ABC):
    """A step with further outputs at punctuations."""

    @abstractmethod
    def __call__(self, row: Row) -> Sequence[Row]: ...

    @abstractmethod
    def close(self, partition: int, time: int) -> Sequence[Row]: ...


def step_of(bound: BoundOperator) -> Step:
    """The function of an operator, with its initial state."""
    return STEPS[bound.operator.function](bound)


def hour(bound: BoundOperator) -> Step:
    at = bound.fields.index(TIME)
    places = [bound.fields.index(name) if name in bound.fields else -1 for name in bound.gives]
    return lambda row: [tuple(row[place] if place >= 0 else row[at] // HOUR_US for place in places)]


def count(bound: BoundOperator) -> Step:
    at, key_at, counts = bound.value_at, bound.key_at, [0] * bound.keys

    def step(row: Row) -> list[Row]:
        counts[row[key_at]] += 1
        return [(*row[:at], counts[row[key_at]], *row[at + 1 :])]

    return step


def work(bound: BoundOperator) -> Step:
    at, key_at, seed = bound.value_at, bound.key_at, mixed(bound.number + 1)
    whole = int(bound.operator.selectivity)
    share = int((bound.operator.selectivity - whole) * 2**64)
    read = payload_fields(bound.operator.tuple_bytes)
    state = None if bound.operator.kind is OperatorKind.STATELESS else [0] * bound.keys
    first, payload, size = bound.fields.index(read[0]) if read else 0, len(read), bound.operator.state_bytes // WORD
    large = np.zeros((bound.keys if size else 0, size), np.uint64)

    def step(row: Row) -> list[Row]:
        value = row[at] + sum(word * (2 * place + 1) for place, word in enumerate(row[first : first + payload]))
        key = row[key_at] if key_at >= 0 else 0
        if size:
            words = large[key]
            words[:] = (
                np.bitwise_or(words << 7, words >> (57)) + np.uint64(value & MASK) + np.arange(size, dtype=np.uint64)
            )
            value = int(words.sum())
        elif state is not None:
            value = state[key] = (state[key] * 0xD1342543DE82EF95 + value) & MASK
        value = mixed((value + seed) & MASK)
        count = whole + (mixed(value ^ FOLD) < share)
        return [(*row[:at], mixed(value + copy & MASK) if copy else value, *row[at + 1 :]) for copy in range(count)]

    return step


class Baskets(Windowed):
    def __init__(self, bound: BoundOperator) -> None:
        self._key_at, self._item_at, self._hour_at = bound.key_at, *bound.places("item", "hour")
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

    def close(self, partition: int, time: int) -> Sequence[Row]:
        return ()


class Counting(Windowed):
    def __init__(self, bound: BoundOperator) -> None:
        self._bound = bound
        self._counted_at, self._value_at = bound.fields.index(COUNTED), bound.fields.index(VALUE)
        self._sums: list[dict[int, int]] = [{} for _ in range(bound.partitions)]

    def __call__(self, row: Row) -> Sequence[Row]:
        sums, word = self._sums[self._bound.partition(row)], row[self._counted_at]
        sums[word] = sums.get(word, 0) + row[self._value_at] & MASK
        return ()

    def close(self, partition: int, time: int) -> Sequence[Row]:
        sums, self._sums[partition] = self._sums[partition], {}
        ranked = sorted(sums.items(), key=lambda counted: (-counted[1], counted[0]))
        return [(time, word, total) for word, total in ranked[:100]]


STEPS: dict[Any, Callable[[BoundOperator], Step]] = {
    FunctionName.WORK: work,
    FunctionName.COUNT: count,
    FunctionName.HOUR: hour,
    FunctionName.BASKET_PAIRS: Baskets,
    FunctionName.WINDOW_TOP_100: Counting,
}
