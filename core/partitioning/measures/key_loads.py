"""What listed keys load onto a resource, by a function of their counts or as it was measured."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Counts, Frequencies
from adapt.core.partitioning.measures.resources import Load, Measured, ResourceFunction, Resources


def listed_loads(frequencies: Frequencies, load: Load) -> Floats:
    """The load of each listed key, shape (keys,).

    Raises:
        UsageError: it was not measured.
    """
    return frequencies.column(load.source).values if isinstance(load, Measured) else load.costs(frequencies.count_low)


def loads_at(frequencies: Frequencies, rows: NDArray[np.int32], load: Load) -> Floats:
    """The load of the key in each of some rows, shape (rows,); in row -1 that of a key that is not listed.

    Such a key has a count of 0, and nothing was measured of it.

    Raises:
        UsageError: it was not measured.
    """
    if isinstance(load, Measured):
        return _at(frequencies.column(load.source).values, rows)
    return load.costs(_at(frequencies.count_low, rows))


def largest_shares(frequencies: Frequencies, resources: Resources, rows: NDArray[np.int32] | None = None) -> Floats:
    """The largest share of a load that keys have, over the resources; shape (keys,), or (rows,) if they are given.

    It is what a key weighs where loads were measured, since a key that is light in count may be heavy in bytes.
    Constant resources are passed over: all keys are alike to them.

    Args:
        rows: The rows of some keys, -1 for one that is not listed; all listed keys if not given.

    Raises:
        UsageError: a load was not measured.
    """
    at = np.arange(len(frequencies.keys), dtype=np.int32) if rows is None else rows
    shares = [
        loads_at(frequencies, at, load) * share_of_unit(frequencies, load)
        for load in dict.fromkeys(resources.loads)
        if load is not ResourceFunction.CONSTANT
    ]
    return np.max(shares, axis=0) if shares else np.zeros(len(at))


def share_of_unit(frequencies: Frequencies, load: Load) -> float:
    """The part of a whole load that one unit of it is; 0 where there is no load.

    Of a quadratic load, which makes little of light keys, the whole is that of the listed ones.
    """
    if isinstance(load, Measured):
        whole = frequencies.column(load.source).total
    else:
        whole = frequencies.total if load is ResourceFunction.LINEAR else float(listed_loads(frequencies, load).sum())
    return 1 / whole if whole > 0 else 0.0


def _at(values: Counts, rows: NDArray[np.int32]) -> Floats:
    """The value in each row, 0 in row -1; shape (rows,)."""
    return np.where(rows >= 0, values[rows], 0).astype(np.float64) if len(values) else np.zeros(len(rows))
