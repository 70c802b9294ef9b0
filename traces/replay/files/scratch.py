"""Words of long streams in temporary files, mapped into memory."""

import mmap
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import Self
from weakref import WeakSet

import numpy as np

from adapt.core.errors import EnvironmentFailure
from adapt.core.ordered.chain.columns import Words
from adapt.traces.store.disk import disk_failures

_FORGOTTEN_EVERY_S = 0.01

_DONTNEED: int | None = getattr(mmap, "MADV_DONTNEED", None)


class Scratch:
    """Arrays in temporary files, which go with the arrays.

    Inside the context, pages that were read leave the memory of the process, so that it stays small whatever is read.
    """

    def __init__(self) -> None:
        """Start without files."""
        self._maps: WeakSet[mmap.mmap] = WeakSet()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start; a thread works only if there are files."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def check(self, size: int, instead: str) -> None:
        """Check that the disk has room."""
        folder = gettempdir()
        if (free := shutil.disk_usage(folder).free) < size:
            raise EnvironmentFailure(
                f"the encoded rows need {size / 1e9:,.1f} GB in {folder}, which has {free / 1e9:,.1f} GB free; set "
                f"TMPDIR to a folder with more, or {instead}"
            )

    def store(self, blocks: Iterator[Words]) -> Words:
        """Write blocks of words, which are the rows of an array."""
        shape: tuple[int, ...] = (0,)
        with disk_failures(Path(gettempdir()) / "rows"), TemporaryFile(prefix="adapt-") as file:
            for block in blocks:
                shape = (-1, *block.shape[1:])
                file.write(np.ascontiguousarray(block, np.int64).data)
            file.flush()
            if not file.tell():
                return np.zeros((0, *shape[1:]), np.int64)
            words = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._maps.add(words)
        if self._thread is None and _DONTNEED is not None:
            self._thread = threading.Thread(target=self._forget, args=(_DONTNEED,), name="scratch", daemon=True)
            self._thread.start()
        return np.frombuffer(words, np.int64).reshape(shape)

    def _forget(self, advice: int) -> None:
        """Drop all pages from the memory of the process, again and again.

        The cache of the disk keeps them.
        """
        while not self._is_over.wait(_FORGOTTEN_EVERY_S):
            for words in list(self._maps):
                words.madvise(advice)
