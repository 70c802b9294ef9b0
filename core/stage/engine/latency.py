"""Percentiles of latencies that were counted in bins."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.engine.kernel import BINS_AN_OCTAVE, LEAST_EXPONENT, OCTAVES

LEAST, MOST = 2.0 ** (LEAST_EXPONENT - 1), 2.0 ** (LEAST_EXPONENT + OCTAVES - 1)
"""Seconds between which a percentile has its precision."""


def upper_edges() -> NDArray[np.float64]:
    """The end of each bin in seconds, shape (bins,); an octave has equal bins, so each is at most 1/32 wide of it."""
    octave = 1 + np.arange(1, BINS_AN_OCTAVE + 1) / BINS_AN_OCTAVE
    starts = 2.0 ** np.arange(LEAST_EXPONENT - 1, LEAST_EXPONENT - 1 + OCTAVES)
    return np.asarray((starts[:, None] * octave).ravel())


_EDGES = upper_edges()


def percentile(counts: NDArray[np.int64], share: float, first: int = 0) -> float | None:
    """The latency that `share` of the tuples do not exceed: the end of the bin in which it lies, so at most 1/32 above.

    Args:
        counts: Tuples in consecutive bins, all that there are.
        share: In (0, 1].
        first: The bin that `counts` begins with.

    Returns:
        Seconds; None where nothing was counted.
    """
    total = int(counts.sum())
    if total == 0:
        return None
    return float(_EDGES[first + np.searchsorted(np.cumsum(counts), share * total)])
