"""Top keys (heavy hitters) of a sequence of summaries, in bounded memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.counting.key_order import heaviest, key_order

MOST_KEYS = 1 << 16
"""Keys kept when twice as many have accumulated."""

_KEY = "key"


@dataclass(slots=True)
class HeavySums:
    """Sums several amounts per key.

    For every key: reported amounts <= true amounts, and reported weight + `missed` >= true weight, the sum of the first
    `weighing` amounts. The result depends on the order of the summaries.
    """

    amounts: Sequence[str]
    weighing: int = 1  # how many of the first amounts make up the weight that keys are ranked by
    missed: int = 0  # the largest weight that any key may have beyond what is reported
    _held: list[pa.Table] = field(default_factory=list)
    _keys: int = 0

    def add(self, keys: pa.Array, amounts: Mapping[str, NDArray[np.int64]], missed: int) -> None:
        """Add a summary; `missed` is the largest unreported weight of any key."""
        self._hold(pa.table({_KEY: keys, **{name: amounts[name] for name in self.amounts}}))
        self.missed += missed
        if self._keys > 2 * MOST_KEYS:
            self._cut()

    def done(self) -> tuple[pa.Array, dict[str, NDArray[np.int64]]]:
        """Distinct keys by descending weight, then key bytes, with their amounts."""
        keys, amounts = self._summed()
        order = key_order(keys, self._weights(amounts))
        return keys.take(pa.array(order)), {name: amount[order] for name, amount in amounts.items()}

    def top(self, most: int) -> tuple[pa.Array, dict[str, NDArray[np.int64]], int]:
        """The first keys of `done`, with their amounts.

        Last comes the largest weight that any key may have beyond what is reported.
        """
        keys, amounts = self.done()
        dropped = int(self._weights(amounts)[most]) if len(keys) > most else 0
        return keys[:most], {name: amount[:most] for name, amount in amounts.items()}, self.missed + dropped

    def _cut(self) -> None:
        keys, amounts = self._summed()
        self._held, self._keys = [], 0
        weights = self._weights(amounts)
        order = heaviest(keys, weights, MOST_KEYS + 1)
        kept, dropped = order[:MOST_KEYS], order[MOST_KEYS:]
        self.missed += int(weights[dropped[0]]) if len(dropped) else 0
        held = {name: amount[kept] for name, amount in amounts.items()}
        self._hold(pa.table({_KEY: keys.take(pa.array(kept)), **held}))

    def _hold(self, table: pa.Table) -> None:
        self._held.append(table)
        self._keys += len(table)

    def _summed(self) -> tuple[pa.Array, dict[str, NDArray[np.int64]]]:
        joined = pa.concat_tables(self._held)
        summed: Any = joined.group_by(_KEY, use_threads=False).aggregate([(name, "sum") for name in self.amounts])
        amounts = {name: summed[f"{name}_sum"].combine_chunks().to_numpy() for name in self.amounts}
        return summed[_KEY].combine_chunks(), amounts

    def _weights(self, amounts: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
        weights: NDArray[np.int64] = np.sum([amounts[name] for name in self.amounts[: self.weighing]], axis=0)
        return weights
