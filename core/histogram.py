"""Histograms of latencies: 32 bins per power of two seconds."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import bits_of, inlined

BINS_AN_OCTAVE = 32

LEAST_EXPONENT = -26
"""Latencies below 2^-27 s, 7 ns, are in the first bin."""

OCTAVES = 48
"""Latencies from 2^21 s, 24 days, are in the last bin."""

BINS = OCTAVES * BINS_AN_OCTAVE

_BELOW_BINS = 52 - 5
"""Bits of a double below those that decide its bin: the exponent and the first five of the fraction."""

_FIRST_BIN = (1022 + LEAST_EXPONENT) * BINS_AN_OCTAVE

LEAST, MOST = 2.0 ** (LEAST_EXPONENT - 1), 2.0 ** (LEAST_EXPONENT + OCTAVES - 1)
"""The range of full precision, in seconds."""


@inlined
def bin_of(latency: float) -> int:
    """The bin of a latency in seconds, in kernels."""
    at: int = (bits_of(latency) >> _BELOW_BINS) - _FIRST_BIN
    return min(max(at, 0), BINS - 1)


def bins_of(latencies: NDArray[np.float64]) -> NDArray[np.int64]:
    """The bin of each latency in seconds."""
    bits = np.ascontiguousarray(latencies, np.float64).view(np.int64)
    return np.asarray(np.clip((bits >> _BELOW_BINS) - _FIRST_BIN, 0, BINS - 1))


def upper_edges() -> NDArray[np.float64]:
    """The upper end of each bin in seconds; shape (bins,)."""
    octave = 1 + np.arange(1, BINS_AN_OCTAVE + 1) / BINS_AN_OCTAVE
    starts = 2.0 ** np.arange(LEAST_EXPONENT - 1, LEAST_EXPONENT - 1 + OCTAVES)
    return np.asarray((starts[:, None] * octave).ravel())


_EDGES = upper_edges()


def percentile(counts: NDArray[np.int64], share: float, first: int = 0) -> float | None:
    """A percentile of latency, at most 1/32 too high.

    Args:
        counts: Tuples in consecutive bins.
        share: In (0, 1].
        first: The first bin of `counts`.

    Returns:
        Seconds; None without tuples.
    """
    total = int(counts.sum())
    if total == 0:
        return None
    return float(_EDGES[first + np.searchsorted(np.cumsum(counts), share * total)])
