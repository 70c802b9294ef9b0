"""Rows of a trace whose tuples wait in queues."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.running.tick import Offered


class HeldRows:
    """Arrival and values of rows, by their number."""

    def __init__(self) -> None:
        """No rows."""
        self._first, self._at_us, self._values = 0, np.empty(0, np.int64), np.empty((0, 0))

    def add(self, offered: Offered) -> None:
        """Hold the rows of a tick, which follow those before."""
        assert offered.values is not None
        if not len(self._at_us):
            self._first, self._at_us, self._values = offered.first, offered.at_us, offered.values
        else:
            self._at_us = np.concatenate((self._at_us, offered.at_us))
            self._values = np.concatenate((self._values, offered.values))

    def forget(self, before: int | None) -> None:
        """Let go of the rows before one; None: of all."""
        end = self._first + len(self._at_us)
        first = min(max(end if before is None else before, self._first), end)
        self._at_us, self._values = self._at_us[first - self._first :], self._values[first - self._first :]
        self._first = first

    def of(self, rows: Indices) -> tuple[NDArray[np.int64], Floats]:
        """Arrival and values of rows.

        Returns:
            Microseconds since the start, shape (rows,); shape (rows, columns).
        """
        return self._at_us[rows - self._first], self._values[rows - self._first]
