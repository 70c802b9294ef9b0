"""Measured service times, and what their mean depends on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.costs.profile import KeyMean, Service, ServiceBy, SizeMean, quantiles_of
from adapt.traces.calibrate.spark import line_through

LEAST_ROWS = 30
"""Fewest measurements of a key or size that give it a mean of its own."""

MOST_KEYS = 1000
"""Most keys with a mean of their own, those with the most rows."""

MOST_SIZES = 20
"""Most classes of sizes, with equally many rows."""

LEAST_GAIN = 0.05
"""Smallest share of the variance, out of sample, for which means of keys or sizes are used."""


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Service times of rows, with what they may depend on."""

    seconds: NDArray[np.float64]  # of each row, shape (rows,)
    keys: Sequence[str | None] | None = None  # its key as text, None for a missing one; None, unknown
    sizes: NDArray[np.float64] | None = None  # its bytes; None, unknown
    costs: NDArray[np.float64] | None = None  # its stated cost in seconds; None, unknown


def service_of_samples(samples: Samples) -> tuple[Service, tuple[KeyMean, ...], tuple[SizeMean, ...]]:
    """Distribution, and means by key or size where they explain enough.

    A stated cost decides where rows have one. Else means of a random half must explain the logarithms of the other
    half, by at least `LEAST_GAIN` of their variance; keys or sizes, whatever explains more.
    """
    seconds = samples.seconds
    rows, mean_s, overall = len(seconds), float(seconds.mean()), quantiles_of(seconds)
    if samples.costs is not None and samples.costs.max() > 0:
        factor, fixed_s = line_through(samples.costs, seconds)
        within = quantiles_of(seconds / np.maximum(fixed_s + factor * samples.costs, 1e-12))
        return Service(rows, ServiceBy.COST, mean_s, overall, within, factor, fixed_s), (), ()
    classes: dict[ServiceBy, tuple[NDArray[np.int64], list[str], NDArray[np.float64]]] = {}
    if samples.keys is not None:
        encoded = pa.array(samples.keys, pa.string()).dictionary_encode()
        names, places = encoded.dictionary, encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()
        counts = np.bincount(places, minlength=len(names))[: len(names)]
        often = np.argsort(-counts, kind="stable")[:MOST_KEYS]
        often = often[counts[often] >= LEAST_ROWS]
        classes[ServiceBy.KEY] = _relabelled(places, often), names.take(often).to_pylist(), np.empty(0)
    if samples.sizes is not None and np.ptp(samples.sizes) > 0:
        most = np.unique(np.quantile(samples.sizes, np.linspace(0, 1, MOST_SIZES + 1)[1:], method="higher"))
        classes[ServiceBy.SIZE] = np.searchsorted(most, samples.sizes), [], most
    gains = {by: _gain(seconds, places) for by, (places, _, _) in classes.items()}
    best = max(gains, key=lambda by: gains[by], default=ServiceBy.ALL)
    if gains.get(best, 0.0) < LEAST_GAIN:
        return Service(rows, ServiceBy.ALL, mean_s, overall), (), ()
    places, names, most = classes[best]
    own = places >= 0
    count = np.bincount(places[own])
    means = np.bincount(places[own], seconds[own]) / np.maximum(count, 1)
    others_s = float(seconds[~own].mean()) if not own.all() else mean_s
    within = quantiles_of(seconds / np.maximum(np.where(own, means[places], others_s), 1e-12))
    service = Service(rows, best, mean_s, overall, within, fixed_s=0.0)
    if best is ServiceBy.KEY:
        listed = zip(names, means.tolist(), count.tolist(), strict=True)
        return service, tuple(KeyMean(*one) for one in listed), ()
    sizes = zip(most.astype(np.int64).tolist(), means.tolist(), count.tolist(), strict=True)
    return service, (), tuple(SizeMean(*one) for one in sizes if one[2])


def _relabelled(places: NDArray[np.int64], kept: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places among those kept; -1 for others."""
    labels = np.full(int(places.max(initial=0)) + 1, -1)
    labels[kept] = np.arange(len(kept))
    return np.asarray(labels[places])


def _gain(seconds: NDArray[np.float64], places: NDArray[np.int64]) -> float:
    """Share of the variance of logarithms of a random half that means of the other half explain."""
    logs = np.log(np.maximum(seconds, 1e-9))
    known = np.random.default_rng(0).random(len(seconds)) < 0.5
    asked = ~known
    if not (known.any() and asked.any()):
        return 0.0
    labels = places + 1
    sums = np.bincount(labels[known], logs[known], int(labels.max()) + 1)
    counts = np.bincount(labels[known], minlength=int(labels.max()) + 1)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), logs[known].mean())
    left = ((logs[asked] - means[labels[asked]]) ** 2).sum()
    whole = ((logs[asked] - logs[known].mean()) ** 2).sum()
    return float(1 - left / whole) if whole > 0 else 0.0
