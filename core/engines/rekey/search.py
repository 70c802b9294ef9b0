"""Search for the shortest replacements that an engine places as wanted."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from adapt.core.engines.rekey.marks import Mark
from adapt.core.errors import UsageError
from adapt.core.keys.partitioner import Channels

Place: TypeAlias = Callable[[pa.Array], Channels]
"""The channel of each key of a column."""

CANDIDATES = 1 << 19
"""Candidates hashed at once."""


def replacements(keys: pa.Array, channels: Channels, place: Place, mark: Mark) -> pa.Array:
    """The first replacement of each key that lands on its channel.

    Args:
        keys: Without null; a key may occur several times, with different channels.
        channels: The channel wanted for each; shape (keys,).

    Returns:
        A replacement for each key, by number of the mark; shape (keys,).
    """
    left = np.arange(len(keys))
    rows: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    found: list[pa.Array] = []
    first = 0
    while len(left):
        size = min(max(CANDIDATES // len(left), 1), mark.most - first)
        if size <= 0:
            key, channel = keys[int(left[0])].as_py(), int(channels[left[0]])
            raise UsageError(f"none of {first:,} replacements of key {key!r} lands on channel {channel}")
        candidates = mark.marked(keys.take(pa.array(left)), first, size)
        hits = place(candidates).reshape(len(left), size) == channels[left][:, None]
        done = hits.any(axis=1)
        found.append(candidates.take(pa.array(np.flatnonzero(done) * size + hits.argmax(axis=1)[done])))
        rows.append(left[done])
        left, first = left[~done], first + size
    if not rows:
        return keys
    back = np.argsort(np.concatenate(rows))
    return pa.concat_arrays(found).take(pa.array(back))
