"""Arrays of a run, shared with the workers by address."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import Words
from adapt.core.ordered.engine.kernel.layout import LINE
from adapt.core.ordered.engine.settings import RunSettings

MOST_BYTES = 1 << 34


class Storage:
    """Arrays of a run, at most 16 GiB.

    Pages take memory only once a worker touches them.
    """

    def __init__(self, settings: RunSettings) -> None:
        """Start without arrays; errors name the settings."""
        self._settings, self._arrays, self._bytes = settings, list[Words](), 0

    def zeros(self, words: int) -> Words:
        """Zeroed words on their own cache lines."""
        self._count(words)
        whole = np.zeros(words + 2 * LINE // 8, np.int64)
        first = -whole.ctypes.data % LINE // 8
        self._arrays.append(whole)
        return whole[first : first + words]

    def records(self, count: int, kind: np.dtype[np.void]) -> NDArray[np.void]:
        """Zeroed records on their own cache lines."""
        return self.zeros(count * kind.itemsize // 8).view(kind)

    def room(self, words: int) -> int:
        """Address of uninitialized words."""
        self._count(words)
        return self.keep(np.empty(words, np.int64))

    def keep(self, array: Words) -> int:
        """Address of an array, which is kept alive."""
        self._arrays.append(array)
        return int(array.ctypes.data)

    def _count(self, words: int) -> None:
        self._bytes += 8 * words
        if self._bytes > MOST_BYTES:
            raise UsageError(
                f"ring buffers of {self._settings.ring_buffer} and work queues of {self._settings.queue_capacity} "
                f"tuples "
                f"for each operator and partition need more than {MOST_BYTES >> 30} GiB; make them smaller"
            )
