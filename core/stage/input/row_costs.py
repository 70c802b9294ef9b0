"""CPU time of each row.

It comes from a column or from the row's key, alone or with a spread around it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.core.random_bits import substream, uniforms
from adapt.core.stage.conditions.service_times import Spread

_DRAWS = 2**16
"""Draws that rows share."""

_PURPOSE = 0x5E471CE
"""Purpose of the random numbers that assign them."""

Reader: TypeAlias = Callable[[pa.Array, int], NDArray[np.float64]]
"""CPU seconds of rows, given their column and the number of rows before them."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyCosts:
    """Mean CPU seconds of keys.

    Attributes:
        keys: The keys, each once.
        mean_s: Mean of each, shape (keys,).

    Raises:
        BadInput: There are no keys, one is there twice, or a mean is negative or infinite.
    """

    keys: pa.Array
    mean_s: NDArray[np.float64]

    def __post_init__(self) -> None:
        if not len(self.keys):
            raise BadInput("the service times of keys name no key")
        if pc.count_distinct(self.keys, mode="all").as_py() < len(self.keys):
            raise BadInput("the service times of keys name a key twice; keep one row for each")
        if not (np.isfinite(self.mean_s).all() and (self.mean_s >= 0).all()):
            raise BadInput("the service time of a key is negative or infinite")

    def of(self, keys: pa.Array) -> NDArray[np.float64]:
        """The mean of each row's key.

        Keys that are not named have the mean over all that are.
        """
        if pa.types.is_dictionary(keys.type):
            known = self.of(keys.dictionary)
            places = keys.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
            return np.asarray(np.append(known, self.mean_s.mean())[places])
        try:
            named = self.keys.cast(keys.type)
        except pa.ArrowInvalid:
            raise BadInput(f"the service times of keys have {self.keys.type} keys, the trace {keys.type}") from None
        found = pc.index_in(keys, value_set=named).fill_null(len(named)).to_numpy(zero_copy_only=False)
        return np.asarray(np.append(self.mean_s, self.mean_s.mean())[found])


@dataclass(frozen=True, slots=True, eq=False)
class RowCosts:
    """CPU time of each row of a trace.

    Attributes:
        column: The column with microseconds, or the keys' column.
        keys: Mean of each key; None, the column has the time of each row.
        spread: Spread around it; None, none.
        seed: Seed of the spread.
    """

    column: str
    keys: KeyCosts | None = None
    spread: Spread | None = None
    seed: int = 0

    def reader(self) -> Reader:
        """A reader for one pass over the rows.

        A row's draw depends on its number and the seed alone.
        """
        if self.spread is None:
            return lambda column, _: self._mean_s(column)
        factors = self.spread.factors(_DRAWS, np.random.default_rng([self.seed, _PURPOSE]))
        stream = substream(self.seed, _PURPOSE)

        def read(column: pa.Array, before: int) -> NDArray[np.float64]:
            drawn = uniforms(stream, np.arange(before, before + len(column)))
            return np.asarray(self._mean_s(column) * factors[(drawn * _DRAWS).astype(np.int64)])

        return read

    def _mean_s(self, column: pa.Array) -> NDArray[np.float64]:
        """Seconds; a missing number counts as 0."""
        if self.keys is not None:
            return self.keys.of(column)
        return np.asarray(amounts(column) * 1e-6)


def amounts(column: pa.Array) -> NDArray[np.float64]:
    """Numbers; a missing one counts as 0."""
    found: NDArray[np.float64] = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return found
