"""Errors of the answers from the rows that a plan keeps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.answers.sample import Sample
from adapt.core.fit.network.computed import Computed, Function
from adapt.core.fit.network.wiring import Indices

_Z = NormalDist().inv_cdf(0.975)
"""Half-width of an interval of 95 %, in standard deviations."""

Results: TypeAlias = Mapping[str, NDArray[Any]]
"""Sums of a `Sample`."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """One function of an aggregate, from the rows kept, against all rows.

    Errors are relative to the true value; they omit results whose true value is 0.
    """

    results: int  # true results: by window and group, or windows of a ranking
    missing: float  # share of them without any row
    harmed: float | None = None  # share of them without some of their rows
    error_p50: float | None = None  # median error of those harmed
    error_p95: float | None = None  # likewise
    # median half-width of their 95 % intervals / estimate; None for min, max and rankings, and where whole windows
    # are dropped, whose results are exact
    interval: float | None = None
    covered: float | None = None  # share of those harmed whose interval holds the true value
    found: float | None = None  # mean share of the true top groups that are found; None without a ranking
    # of the sum of all results, missing ones estimated; counts and sums alone. None where windows are dropped and
    # queues are bounded
    total_error: float | None = None
    total_interval: float | None = None  # half-width of its 95 % interval / true sum


@dataclass(frozen=True, slots=True, eq=False)
class WindowShares:
    """Windows that are dropped whole."""

    of: Callable[[Indices], Floats]  # the share kept of windows of these numbers
    batch: int  # consecutive windows kept or dropped together
    # whether windows that full queues took tuples of are missing too, with a share that nobody knows
    withdrawn: bool = False


def accuracy_of(computed: Computed, kept: Sample, whole: Sample, shares: WindowShares | None = None) -> Accuracy:
    """Errors of a function of the rows kept.

    Args:
        shares: Where whole windows are dropped.
    """
    true, guess = whole.results(), kept.results()
    values, _ = estimates(computed, true)
    guesses, half = estimates(computed, guess)
    if computed.top is not None:
        return _ranking(computed.top, true, values, guess, guesses)
    there = ~np.isnan(values)
    groups = 1 + max((int(each["group"].max(initial=0)) for each in (true, guess)), default=0)
    keys = (true["window"] * groups + true["group"])[there]
    known = ~np.isnan(guesses)
    all_rows = true["rows"][there]
    places = np.searchsorted(keys, (guess["window"] * groups + guess["group"])[known])
    answered = len(places)
    lost = guess["rows"][known] < all_rows[places]
    known[np.flatnonzero(known)[~lost]] = False
    exact, estimate = values[there][places[lost]], guesses[known]
    off = np.abs(estimate - exact)
    nonzero = exact != 0
    errors = off[nonzero] / np.abs(exact[nonzero])
    quantiles = [float(np.quantile(errors, share)) if len(errors) else None for share in (0.5, 0.95)]
    interval = covered = None
    if half is not None and shares is None and len(estimate):
        width = half[known]
        covered = float((off <= width * (1 + 1e-9) + 1e-9 * np.abs(exact)).mean())
        relative = width[estimate != 0] / np.abs(estimate[estimate != 0])
        interval = float(np.median(relative)) if len(relative) else None
    total: tuple[float | None, float | None] = (None, None)
    estimated = shares is None or not shares.withdrawn
    if estimated and computed.function in (Function.COUNT, Function.SUM) and values[there].sum():
        total = _total(computed, kept, guess, guesses, float(values[there].sum()), shares)
    missing, harmed = (1 - answered / len(keys), len(estimate) / len(keys)) if len(keys) else (0.0, 0.0)
    return Accuracy(len(keys), missing, harmed, quantiles[0], quantiles[1], interval, covered, None, *total)


def estimates(computed: Computed, sums: Results) -> tuple[Floats, Floats | None]:
    """Estimates of all results, and half-widths of their 95 % intervals.

    Results without values are NaN; min and max have no interval.
    A mean is a ratio of two estimates; its variance is that of the residuals of the ratio.

    Source: Cochran, Sampling Techniques, section 2.11; Horvitz and Thompson, 1952.
    """
    function, column = computed.function, computed.column
    if function is Function.COUNT:
        return sums["w"], _Z * np.sqrt(np.maximum(sums["v"], 0.0))
    weight = sums[f"w {column}"]
    there = weight > 0
    if function in (Function.MIN, Function.MAX):
        return np.where(there, sums[f"{function} {column}"], np.nan), None
    total, spread = sums[f"wx {column}"], sums[f"vxx {column}"]
    if function is Function.SUM:
        return np.where(there, total, np.nan), _Z * np.sqrt(np.maximum(spread, 0.0))
    mean = np.divide(total, weight, out=np.full(len(weight), np.nan), where=there)
    residual = spread - 2 * mean * sums[f"vx {column}"] + mean * mean * sums[f"v {column}"]
    return mean, _Z * np.sqrt(np.maximum(residual, 0.0)) / np.where(there, weight, 1.0)


def _total(
    computed: Computed, kept: Sample, guess: Results, guesses: Floats, true: float, shares: WindowShares | None
) -> tuple[float, float]:
    """Relative error of the sum of all results, and half-width of its interval."""
    if shares is None:
        total, variance = float(np.nansum(guesses)), kept.variances[computed.column]
    else:
        share = shares.of(guess["window"])
        weighted = np.nan_to_num(guesses) / share
        batches, place = np.unique(guess["window"] // shares.batch, return_inverse=True)
        sums = np.bincount(place, weighted, len(batches))
        lowest = np.ones(len(batches))
        np.minimum.at(lowest, place, share)
        total, variance = float(weighted.sum()), float((1 - lowest) @ (sums * sums))
    return abs(total - true) / abs(true), _Z * float(np.sqrt(max(variance, 0.0))) / abs(true)


def _ranking(top: int, true: Results, values: Floats, guess: Results, guesses: Floats) -> Accuracy:
    """How many of the highest groups of each window are found; of equal ones, those that came first are higher."""
    right, named = _highest(top, true, values), _highest(top, guess, guesses)
    windows = {window for window, _ in right}
    answered = {window for window, _ in named}
    sizes = dict.fromkeys(windows, 0)
    hits = dict.fromkeys(windows, 0)
    for window, group in right:
        sizes[window] += 1
        hits[window] += (window, group) in named
    found = [hits[window] / sizes[window] for window in sorted(answered & windows)]
    missing = 1 - len(found) / len(windows) if windows else 0.0
    return Accuracy(len(windows), missing, found=float(np.mean(found)) if found else None)


def _highest(top: int, results: Results, values: Floats) -> set[tuple[int, int]]:
    """The windows with their highest groups."""
    there = np.flatnonzero(~np.isnan(values))
    windows, groups = results["window"][there], results["group"][there]
    order = np.lexsort((groups, -values[there], windows))
    windows, groups = windows[order], groups[order]
    rank = np.arange(len(windows)) - np.searchsorted(windows, windows)
    return set(zip(windows[rank < top].tolist(), groups[rank < top].tolist(), strict=True))
