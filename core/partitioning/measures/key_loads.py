"""Loads of listed keys, by their counts or as measured."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Counts, Frequencies
from adapt.core.partitioning.measures.resources import Load, Measured, ResourceFunction, Resources, load_of


def listed_loads(frequencies: Frequencies, load: Load) -> Floats:
    """The load of each listed key, shape (keys,)."""
    return load_of(load, frequencies.count_low, lambda source: frequencies.column(source).values)


def loads_at(frequencies: Frequencies, rows: NDArray[np.int32], load: Load) -> Floats:
    """The load of the key in each row.

    Shape (rows,); row -1 is a key that is not listed, of count 0.
    """
    counts = _at(frequencies.count_low, rows)
    return load_of(load, counts, lambda source: _at(frequencies.column(source).values, rows))


def largest_shares(frequencies: Frequencies, resources: Resources, rows: NDArray[np.int32] | None = None) -> Floats:
    """The largest share of each key in any load.

    Shape (keys,) or (rows,).

    This is a key's weight where loads were measured, since a rare key may be large in bytes. Constant resources are
    skipped: they do not tell keys apart.

    Args:
        rows: The rows of keys, -1 for one that is not listed. Default: all listed keys.
    """
    at = np.arange(len(frequencies.keys), dtype=np.int32) if rows is None else rows
    shares = [
        loads_at(frequencies, at, load) * share_of_unit(frequencies, load)
        for load in dict.fromkeys(resources.loads)
        if load is not ResourceFunction.CONSTANT
    ]
    return np.max(shares, axis=0) if shares else np.zeros(len(at))


def share_of_unit(frequencies: Frequencies, load: Load) -> float:
    """The share of one unit in a whole load; 0 without load."""
    whole = whole_load(frequencies, load)
    return 1 / whole if whole > 0 else 0.0


def whole_load(frequencies: Frequencies, load: Load) -> float:
    """The load of all keys.

    For a constant load, and a quadratic one, where rare keys hardly count, that of the listed keys.
    """
    if isinstance(load, Measured):
        return frequencies.column(load.source).total
    return frequencies.total if load is ResourceFunction.LINEAR else float(listed_loads(frequencies, load).sum())


def _at(values: Counts, rows: NDArray[np.int32]) -> Floats:
    """The value in each row, 0 in row -1; shape (rows,)."""
    return np.where(rows >= 0, values[rows], 0).astype(np.float64) if len(values) else np.zeros(len(rows))
