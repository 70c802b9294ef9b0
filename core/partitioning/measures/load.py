"""Loads of keys: functions of counts, or measured columns."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError


class ResourceFunction(StrEnum):
    """Beta: the load of a key by its count.

    Source: partitioning functions, sections 3.1 and 4.4.
    """

    CONSTANT = "C"
    LINEAR = "L"
    QUADRATIC = "Q"

    def costs(self, counts: ArrayLike) -> Floats:
        """The cost of each count, same shape.

        A constant function costs 1 even for a count of 0: the window over a key's last tuples stays in state when the
        key no longer occurs.
        """
        values = np.asarray(counts, dtype=np.float64)
        if self is ResourceFunction.CONSTANT:
            return np.ones_like(values)
        return values * values if self is ResourceFunction.QUADRATIC else values


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured load: the sum of a column per key."""

    source: str

    @property
    def value(self) -> str:
        """Its name, as `ResourceFunction.value`."""
        return f"column:{self.source}"


Load: TypeAlias = ResourceFunction | Measured
"""The load of a key on its channel."""


def _not_measured(source: str) -> ArrayLike:
    raise UsageError(f"column {source!r} was not measured")


def load_of(load: Load, counts: ArrayLike, column: Callable[[str], ArrayLike] = _not_measured) -> Floats:
    """The load of keys by their counts and columns; same shape.

    Args:
        column: The values of these keys in a measured column.
    """
    return np.asarray(column(load.source), np.float64) if isinstance(load, Measured) else load.costs(counts)
