"""Messages of a stream, for key splitting."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.partitioning.measures.population import Counted, Population, frequencies_in
from adapt.core.partitioning.measures.resources import ResourceFunction

MOST_MESSAGES = 10_000_000
"""Most messages that represent a counted stream; in a larger stream each represents several."""


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages of a stream in order."""

    keys: pa.Array  # the distinct keys, shape (keys,)
    rows: NDArray[np.int64]  # the row in `keys` of each message, shape (messages,)
    weights: Floats  # the weight of each message, shape (messages,)
    periods: NDArray[np.int64]  # the period of each message, from 0, never falling; shape (messages,)

    def __post_init__(self) -> None:
        if not len(self.rows) == len(self.weights) == len(self.periods):
            raise ValueError(
                f"{len(self.rows)} messages do not fit {len(self.weights)} weights and {len(self.periods)} periods"
            )

    @classmethod
    def of_counts(cls, counted: Counted, generator: np.random.Generator, most: int = MOST_MESSAGES) -> "Messages":
        """Messages in random order with these counts, in one period.

        Whole counts are met exactly with at most `most` messages. Otherwise messages are sampled at even steps of the
        cumulated weight, so each key's weight is exact to one step. Keys that a lossy counter did not list have
        stand-ins: splitting follows keys, not sums.
        """
        population = Population.from_counts(frequencies_in(counted))
        ends = np.cumsum(population.loads(ResourceFunction.LINEAR))
        total = float(ends[-1]) if len(ends) else 0.0
        whole = np.issubdtype(population.frequencies.count_low.dtype, np.integer)
        number = min(round(total) if whole else population.frequencies.rows, most) if total > 0 else 0
        step = total / max(number, 1)
        rows = np.searchsorted(ends, (np.arange(number) + 0.5) * step, side="right").astype(np.int64)
        generator.shuffle(rows)
        return cls(population.keys, rows, np.full(number, step), np.zeros(number, np.int64))
