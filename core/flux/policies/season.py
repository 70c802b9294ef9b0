"""Season of a stream, found from its arrivals.

Not in the paper.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.settings import StageSettings

MOST_BINS = 4096
"""Bins from which two become one, so that memory does not grow with the stream."""

BUCKETS = 256
"""Series of load: partitions beyond are added to those before."""

FIRST_LAG = 8
"""Shortest season, in bins."""

SEEN = 3
"""Seasons that must have passed."""

CORRELATED = 0.3
"""Autocorrelation of a season."""

ERRORS = 4.0
"""Standard errors of an autocorrelation, 1 / sqrt(bins), by which a season must be above 0."""

NEXT_LOOK = 1.1
"""Ratio of the bins of two looks for a season."""

Loads: TypeAlias = NDArray[np.float64]
"""CPU seconds or rows of each bucket by bin, shape (bins, buckets)."""


@dataclass(frozen=True, slots=True)
class Season:
    """Time after which load recurs.

    Raises:
        UsageError: It is not above 0.

    Attributes:
        length_s: Length in simulated seconds.
        known_s: From when it is known: the end of the rows that it was found from.
    """

    length_s: float
    known_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.length_s < np.inf:
            raise UsageError(f"the season must be above 0 (got {self.length_s:g} s)")


def season_of(rows: Rows, settings: StageSettings, bin_s: float) -> Season:
    """First season that the arrivals show.

    It is found from the rows before `known_s` alone.

    Args:
        bin_s: Resolution at the start, in simulated seconds; it doubles after every `MOST_BINS` bins.

    Raises:
        UsageError: Rows have no arrival times, or show no season.
    """
    bins, looked, width_s = 0, 2 * FIRST_LAG, bin_s
    for loads, width_s in _growing(rows.chunks(), settings, bin_s):
        bins = len(loads)
        if looked / NEXT_LOOK <= bins < looked * NEXT_LOOK:
            continue
        looked = bins
        lag = _recurs_by_any(loads)
        if lag is not None:
            return Season(lag * width_s, bins * width_s)
    last_s = bins * width_s
    raise UsageError(
        f"recurring: the load of no partition recurs within {last_s:.3g} simulated seconds (seasons from"
        f" {FIRST_LAG * width_s:.3g} to {last_s / SEEN:.3g} s were tried); give --season, or use load-several"
    )


def _growing(chunks: Iterable[Chunk], settings: StageSettings, width_s: float) -> Iterator[tuple[Loads, float]]:
    """Load of the full bins so far, and their width in seconds, as each bin ends."""
    buckets = min(BUCKETS, settings.partitions)
    loads: Loads = np.zeros((MOST_BINS, buckets))
    bucket_of = settings.partition_of % buckets
    full = 0
    for chunk in chunks:
        if chunk.due_s is None:
            raise UsageError(
                "recurring finds a season by arrival times, and --arrivals saturate has none; give --season"
            )
        begin = 0
        while begin < len(chunk.groups):
            if full == MOST_BINS:
                loads[: MOST_BINS // 2] = loads.reshape(-1, 2, buckets).sum(axis=1)
                loads[MOST_BINS // 2 :] = 0
                full, width_s = full // 2, 2 * width_s
            end = int(np.searchsorted(chunk.due_s, (full + 1) * width_s))
            cost = None if chunk.cost_s is None else chunk.cost_s[begin:end]
            loads[full] += np.bincount(bucket_of[chunk.groups[begin:end]], cost, buckets)
            begin = end
            if end < len(chunk.groups):
                full += 1
                yield loads[:full], width_s


def _recurs_by_any(loads: Loads) -> float | None:
    """Lag in bins, by these bins or wider ones: noise hides a season in bins of few rows."""
    wider = 1
    while len(loads) >= SEEN * FIRST_LAG:
        lag = _recurs(loads)
        if lag is not None:
            return lag * wider
        loads, wider = loads[: len(loads) // 2 * 2].reshape(-1, 2, loads.shape[1]).sum(axis=1), 2 * wider
    return None


def _recurs(loads: Loads) -> float | None:
    """Lag in bins of the first high peak of the autocorrelation after a trough; None without any."""
    bins = len(loads)
    most = bins // SEEN
    varying = loads - loads.mean(axis=0)
    spectrum = np.abs(np.fft.rfft(varying, 2 * bins, axis=0)) ** 2
    products = np.fft.irfft(spectrum.sum(axis=1), 2 * bins)[: 3 * bins // 4 + 2]
    if most <= FIRST_LAG or not products[0] > 0:
        return None
    related = products / products[0] * bins / (bins - np.arange(len(products)))
    least = max(CORRELATED, ERRORS / np.sqrt(bins))
    inner = related[1:most]
    rises = inner - np.minimum.accumulate(related)[1:most] >= CORRELATED
    peaks = (
        np.flatnonzero((inner >= least) & rises & (inner >= related[: most - 1]) & (inner >= related[2 : most + 1])) + 1
    )
    peaks = peaks[(peaks >= FIRST_LAG) & (related[2 * peaks] >= least)]
    high = peaks[related[peaks] >= 0.8 * related[peaks].max(initial=0)]
    return _vertex(related, int(high[0])) if len(high) else None


def _vertex(related: NDArray[np.float64], lag: int) -> float:
    """Lag between bins: half of the vertex of a parabola through the peak after two seasons."""
    near = np.arange(max(0, 2 * lag - lag // 4), min(len(related), 2 * lag + lag // 4 + 1))
    bend, slope, _ = np.polyfit(near - 2.0 * lag, related[near], 2)
    off = -slope / (4 * bend) if bend < 0 else 0.0
    return lag + float(off) if abs(off) <= lag / 8 else float(lag)
