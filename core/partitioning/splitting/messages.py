"""A stream as key splitting sees it: which key each message has, in order."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from adapt.core.arrays import Floats
from adapt.core.keys.columns import one_array
from adapt.core.partitioning.measures.population import Counted, Population
from adapt.core.partitioning.measures.resources import ResourceFunction

MOST_MESSAGES = 10_000_000
"""Messages that stand for a counted stream at most; of a heavier stream each stands for several."""


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages of a stream in order.

    Attributes:
        keys: The distinct keys, shape (keys,).
        rows: The row of `keys` that each message has, shape (messages,).
        weights: What each message weighs, shape (messages,).
        periods: The period of each message, from 0, falling nowhere; shape (messages,).
    """

    keys: pa.Array
    rows: NDArray[np.int64]
    weights: Floats
    periods: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not len(self.rows) == len(self.weights) == len(self.periods):
            raise ValueError(
                f"{len(self.rows)} messages do not fit {len(self.weights)} weights and {len(self.periods)} periods"
            )

    @classmethod
    def of_column(
        cls, keys: pa.Array | pa.ChunkedArray, weights: ArrayLike | None = None, periods: ArrayLike | None = None
    ) -> "Messages":
        """The messages of a trace, from its key column.

        Args:
            keys: The key of each message; null is a key.
            weights: What each weighs, from 0; 1 if not given.
            periods: The period of each, from 0, falling nowhere; partial results are merged at the end of each period.
                There is one if not given.

        Raises:
            ValueError: the columns differ in length.
        """
        encoded = pc.dictionary_encode(one_array(keys), null_encoding="encode")
        rows = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        weighed = np.ones(len(rows)) if weights is None else np.array(weights, np.float64)
        return cls(
            encoded.dictionary, rows, weighed, np.zeros_like(rows) if periods is None else np.array(periods, np.int64)
        )

    @classmethod
    def of_counts(cls, counted: Counted, generator: np.random.Generator, most: int = MOST_MESSAGES) -> "Messages":
        """Messages in random order that make up counted keys, in one period.

        Whole counts are met exactly if there are at most `most` messages. Otherwise messages are taken at even steps of
        the cumulated weight, so that each key's is met to one step, and lighter keys come in proportion. Keys that a
        lossy counter did not list have stand-ins (`Population`).
        """
        population = Population.from_counts(counted)
        ends = np.cumsum(population.loads(ResourceFunction.LINEAR))
        total = float(ends[-1]) if len(ends) else 0.0
        whole = np.issubdtype(population.frequencies.count_low.dtype, np.integer)
        number = min(round(total) if whole else population.frequencies.rows, most) if total > 0 else 0
        step = total / max(number, 1)
        rows = np.searchsorted(ends, (np.arange(number) + 0.5) * step, side="right").astype(np.int64)
        generator.shuffle(rows)
        return cls(population.keys, rows, np.full(number, step), np.zeros(number, np.int64))
