"""Arrival rates with bursts, daily cycles and lagging streams."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.errors import UsageError
from adapt.core.random_bits import substream, uniforms
from adapt.core.synthetic.variation import Bursts, Diurnal, Lags

STEPS_A_DAY = 288
"""Steps of constant rate per diurnal cycle."""

MOST_BREAKS = 4_000_000
"""Changes of the rate in one stream; limits a path to 64 MB."""

_BURSTS = 1
"""Random substream for burst lengths."""


@dataclass(frozen=True, slots=True)
class RatePath:
    """Rates in rows per second, constant between breaks."""

    breaks_s: Floats  # times at which a rate changes, rising from 0; shape (breaks,)
    expected: Floats  # expected rows until each break; shape (breaks,), never falling
    # cumulative shares of the streams in the rate between a break and the next, the last one 1; shape (breaks - 1,
    # streams)
    shares: Floats

    def times_s(self, rows: Floats) -> Floats:
        """Times, in seconds, at which rows are expected; shape (rows,)."""
        return np.asarray(np.interp(rows, self.expected, self.breaks_s))

    def streams(self, times_s: Floats, uniforms: Floats) -> NDArray[np.int64]:
        """Stream of the row at each time; shape (rows,).

        Args:
            times_s: Sorted, shape (rows,).
            uniforms: In [0, 1), one per row.
        """
        drawn = np.empty(len(times_s), np.int64)
        _streams(self.breaks_s, self.shares, times_s, uniforms, drawn)
        return drawn


def rate_path(
    rows: int, rate_per_s: float, seed: int, diurnal: Diurnal | None, bursts: Bursts | None, lags: Lags
) -> RatePath:
    """Rates until this number of rows is expected.

    Bursts and the time of day multiply. At time t, stream i has the rate of the first stream at t - i lags; before
    that, it has the average rate. Every diurnal cycle begins at its trough.

    Args:
        rows: Number of rows, at least 1.
        rate_per_s: Average rate of all streams together.
    """
    until_s = rows / rate_per_s + lags.lag_s * lags.streams
    while True:  # with few bursts, the rows take longer
        path = _path_until(until_s, rate_per_s, seed, diurnal, bursts, lags)
        if path.expected[-1] >= rows:
            return path
        until_s *= 2


def _path_until(
    until_s: float, rate_per_s: float, seed: int, diurnal: Diurnal | None, bursts: Bursts | None, lags: Lags
) -> RatePath:
    step_s = diurnal.period_s / STEPS_A_DAY if diurnal else math.inf
    changes = until_s / step_s + (2 * until_s / (bursts.every_s + bursts.for_s) if bursts else 0.0)
    if changes * lags.streams * lags.streams > MOST_BREAKS:
        raise UsageError(
            f"the rates of {lags.streams} streams would change {changes * lags.streams:,.0f} times; use fewer"
            " --rows or --streams, a higher --rate, or rarer bursts"
        )
    switches = _switches(bursts, until_s, seed) if bursts else np.zeros(0)
    own = np.concatenate((switches, np.arange(1, int(until_s // step_s) + 1) * step_s if diurnal else []))
    later = [own + number * lags.lag_s for number in range(lags.streams)]
    starts = [np.full(1, number * lags.lag_s) for number in range(lags.streams)]
    breaks = np.unique(np.concatenate([np.zeros(1), *later, *starts, np.full(1, until_s)]))
    breaks = breaks[breaks <= until_s]
    middles = (breaks[1:] + breaks[:-1]) / 2
    rates = np.column_stack(
        [_relative(middles - number * lags.lag_s, switches, diurnal, bursts) for number in range(lags.streams)]
    )
    total = rates.sum(axis=1)
    expected = np.concatenate((np.zeros(1), np.cumsum(total * np.diff(breaks)))) * (rate_per_s / lags.streams)
    return RatePath(breaks, expected, np.cumsum(rates, axis=1) / total[:, None])


def _switches(bursts: Bursts, until_s: float, seed: int) -> Floats:
    """Times at which bursts begin and end, quiet first, at least until a time."""
    count = 64 + int(2.2 * until_s / (bursts.every_s + bursts.for_s))
    while True:
        # each length has its own draw, so that drawing more changes none of them
        lengths = -np.log1p(-uniforms(substream(seed, _BURSTS), np.arange(count)))
        lengths[::2] *= bursts.every_s
        lengths[1::2] *= bursts.for_s
        switches: Floats = np.cumsum(lengths)
        if switches[-1] > until_s:
            return switches[: int(np.searchsorted(switches, until_s)) + 1]
        count *= 2


def _relative(times_s: Floats, switches: Floats, diurnal: Diurnal | None, bursts: Bursts | None) -> Floats:
    """Rate of the first stream relative to its average, at times between breaks."""
    rate = np.ones(len(times_s))
    if bursts:
        burst = np.searchsorted(switches, times_s) % 2 == 1
        rate *= np.where(burst, bursts.factor, 1.0) * bursts.quiet
    if diurnal:
        step_s = diurnal.period_s / STEPS_A_DAY
        rate *= 1 - diurnal.swing * np.cos(2 * np.pi * (np.floor(times_s / step_s) + 0.5) / STEPS_A_DAY)
    rate[times_s < 0] = 1.0
    return rate


@compiled
def _streams(breaks_s: Floats, shares: Floats, times_s: Floats, uniforms: Floats, drawn: NDArray[np.int64]) -> None:
    last_stretch, last_stream = shares.shape[0] - 1, shares.shape[1] - 1
    at = min(max(np.searchsorted(breaks_s, times_s[0], side="right") - 1, 0), last_stretch) if len(times_s) else 0
    for row in range(len(times_s)):
        while at < last_stretch and breaks_s[at + 1] <= times_s[row]:
            at += 1
        stream = 0
        while stream < last_stream and uniforms[row] >= shares[at, stream]:
            stream += 1
        drawn[row] = stream
