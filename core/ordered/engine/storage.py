"""Storage of a run: arrays that are shared by address and live as long as it."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import Words
from adapt.core.ordered.engine.kernel.layout import LINE
from adapt.core.ordered.engine.settings import RunSettings

MOST_BYTES = 1 << 34


class Storage:
    """Arrays of a run, at most 16 GiB. The machine backs none with memory before a worker touches it."""

    def __init__(self, settings: RunSettings) -> None:
        """No arrays yet; the settings are named where they would take too much."""
        self._settings, self._arrays, self._bytes = settings, list[Words](), 0

    def zeros(self, words: int) -> Words:
        """Words on cache lines of their own, all zero."""
        self._count(words)
        whole = np.zeros(words + 2 * LINE // 8, np.int64)
        first = -whole.ctypes.data % LINE // 8
        self._arrays.append(whole)
        return whole[first : first + words]

    def records(self, count: int, kind: np.dtype[np.void]) -> NDArray[np.void]:
        """Records on cache lines of their own, all zero."""
        return self.zeros(count * kind.itemsize // 8).view(kind)

    def room(self, words: int) -> int:
        """The address of words that are written before they are read."""
        self._count(words)
        return self.keep(np.empty(words, np.int64))

    def keep(self, array: Words) -> int:
        """The address of an array, which is kept alive."""
        self._arrays.append(array)
        return int(array.ctypes.data)

    def _count(self, words: int) -> None:
        self._bytes += 8 * words
        if self._bytes > MOST_BYTES:
            raise UsageError(
                f"a run with rings of {self._settings.ring} and queues of {self._settings.queue} tuples for each "
                f"operator and partition would take above {MOST_BYTES >> 30} GiB; make them smaller"
            )
