"""Why loads of units are uneven: one hot key, several, or luck."""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.unit_loads.loads import few_windows
from adapt.core.unit_loads.populations import Populations, populations
from adapt.core.verdict.busiest import HOT, LUCK

POPULATIONS = 10_000
"""Random populations to which the loads are compared; for more than 2,000 units fewer, down to a fifth."""

_UNITS = 20_000_000
"""Units of all populations, where these are fewer."""

_NEAREST = 50
"""Of this number of populations, the one most like the loads counts for the answer."""

_BATCH = 60_000
"""Units of populations that are drawn at once."""

_PROBABLE = 0.8
"""Least probability of one hot key, and of one or several."""

_LUCK_PROBABLE, _HOT_IMPROBABLE = 0.5, 0.1
"""Luck is the answer from the one, while one hot key has at most the other."""

_TAIL = 0.01
"""Share of the nearest populations beyond each end of an interval."""

_MARGIN = 1.2
"""Factor at each end of an interval, since real keys differ from drawn ones; chosen on the benchmark's columns."""

PLACEMENTS = 10_000
"""Random placements of equal keys."""

_FEWER = 1_000
"""Placements for each number of keys in a search."""

_EVEN = 1e-6
"""Excess over the mean that counts as none."""

_LEAST = 1e-9
_NO_VARIANCE = 1e-14


class Cause(StrEnum):
    """Why a unit is busier than the mean."""

    HOT = "hot key"
    """One key makes at least half of the excess."""

    LUCK = "luck of the hash"
    """No key makes half of it, and most likely none a tenth: many keys are placed unevenly."""

    SEVERAL = "one or several hot keys"
    """The hottest key on the unit makes at least a tenth of the excess."""

    UNKNOWN = "cannot tell"
    """Populations with such loads differ too much."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Probabilities of causes, and bounds of the hottest key."""

    hot: float  # probability that one key makes at least half of the excess
    luck: float  # probability that no key makes a tenth of it
    low: float  # low, high: bounds of the hottest key's share of all load
    high: float

    @property
    def cause(self) -> Cause:
        """The answer: the narrowest cause that is probable."""
        if self.hot >= _PROBABLE:
            return Cause.HOT
        if 1 - self.luck >= _PROBABLE:
            return Cause.SEVERAL
        is_luck = self.luck >= _LUCK_PROBABLE and self.hot <= _HOT_IMPROBABLE
        return Cause.LUCK if is_luck else Cause.UNKNOWN

    @property
    def probability(self) -> float | None:
        """Probability of the cause; None if it is not known."""
        by_cause = {Cause.HOT: self.hot, Cause.LUCK: 1 - self.hot, Cause.SEVERAL: 1 - self.luck}
        return by_cause.get(self.cause)


def cause_of(loads: Floats, fair: Floats, keys: int | None = None) -> Judged | None:
    """Why the busiest unit is busier than the mean, from loads alone.

    The loads are compared to `POPULATIONS` random populations of keys on as many units and windows. Of each, properties
    of its loads are known (`_properties`), and its hottest key; a quadratic regression on the properties finds what
    they say of the hottest key. Those populations of which they say the same as of the loads give the probabilities,
    and the interval as a multiple of the excess.

    Args:
        loads: Load of each unit in each window, from 0; shape (units, windows), with at least 2 units and some load.
        fair: Share of equal keys that each unit gets on average, shape (units,).
        keys: Number of keys, if known; within a factor of three is enough.

    Returns:
        Probabilities and the interval: that of 98 % of the populations with a margin, bounded by the busiest unit and
        1 / keys. None if all units have the same load, which no hash of keys makes.

    Source: approximate Bayesian computation with regressed statistics (Fearnhead and Prangle, Journal of the Royal
    Statistical Society B 74, 2012). Populations and properties are ours.
    """
    most = float(loads.sum(axis=1).max() / loads.sum())
    if most * len(loads) < 1 + _EVEN:
        return None
    shares = few_windows(loads)
    if shares.shape[1] < 3:  # change in time needs more
        shares = few_windows(loads.sum(axis=1, keepdims=True))
    known = _reference(tuple(np.asarray(fair).tolist()), shares.shape[1], keys)
    properties, _ = _properties(shares[None])
    said = known.said(properties)[0]
    number = _drawn(len(loads)) // _NEAREST
    nearest = np.argpartition(((known.statistics - said) ** 2).sum(axis=1), number)[:number]
    hot = float((known.on_busiest[nearest] >= HOT).mean())
    luck = float((known.on_busiest[nearest] < LUCK).mean())
    low, high = np.quantile(known.hottest[nearest] * (most - 1 / len(loads)), [_TAIL, 1 - _TAIL])
    high = min(float(high) * _MARGIN, most)
    low = min(max(float(low) / _MARGIN, 1 / keys if keys else 0.0), high)
    return Judged(hot, luck, low, high)


def equal_keys_as_uneven(share: float, fair: Floats, keys: int, placements: int = PLACEMENTS) -> float:
    """Share of random placements of equal keys that are as uneven.

    Args:
        share: Share of the busiest unit.
    """
    random = np.random.default_rng(0)
    placed = random.multinomial(keys, fair, placements).max(axis=1)
    return float((placed >= share * keys * (1 - 1e-9)).mean())


def most_equal_keys(share: float, fair: Floats, chance: float = 0.05) -> int:
    """Most equal keys that chance may place as unevenly.

    Args:
        share: Share of the busiest unit.
        chance: Least share of random placements that are as uneven.

    Returns:
        Their number to about a tenth, up to a billion; 1 if no more are.
    """
    low, high = 1.0, 1e9
    while high > 1.05 * low:
        middle = float(np.sqrt(low * high))
        if equal_keys_as_uneven(share, fair, round(middle), _FEWER) >= chance:
            low = middle
        else:
            high = middle
    return round(low)


@dataclass(frozen=True, slots=True)
class _Reference:
    """Populations, and what the properties of their loads say of the hottest key."""

    mean: Floats  # of each property
    deviation: Floats
    slopes: Floats  # of the regression, shape (terms, statistics)
    statistics: Floats  # shape (populations, statistics)
    hottest: Floats  # share of the hottest key over the excess of the busiest unit, shape (populations,)
    on_busiest: Floats  # the same of the hottest key on that unit

    def said(self, properties: Floats) -> Floats:
        """What properties say of the hottest key; shape (rows, statistics)."""
        return _statistics(properties, self.mean, self.deviation, self.slopes)


def _drawn(units: int) -> int:
    return min(POPULATIONS, max(POPULATIONS // 5, _UNITS // units))


@lru_cache(maxsize=8)
def _reference(fair: tuple[float, ...], windows: int, keys: int | None) -> _Reference:
    random, units = np.random.default_rng(0), np.array(fair)
    number = _drawn(len(units))
    batch = min(max(_BATCH // (len(units) + 100), 20), number)
    drawn: list[tuple[Floats, ...]] = []
    for _ in range(-(-number // batch)):
        each: Populations = populations(random, batch, units, windows, keys)
        properties, excess = _properties(each.shares)
        is_uneven = (excess > 1e-7) & np.isfinite(properties).all(axis=1) & (each.hottest > 0)
        over = [(of / excess)[is_uneven] for of in (each.hottest, each.on_busiest)]
        drawn.append((properties[is_uneven], *over))
    properties, hottest, on_busiest = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    mean, deviation = properties.mean(axis=0), properties.std(axis=0) + _LEAST
    terms = _terms(properties, mean, deviation)
    truths = [
        np.log(np.clip(on_busiest, 1e-3, 5)),
        np.log(np.clip(hottest, 1e-3, 20)),
        3.0 * (on_busiest >= HOT),
        3.0 * (on_busiest < LUCK),
    ]
    square = terms.T @ terms + 1e-5 * len(terms) * np.eye(terms.shape[1])
    slopes = np.linalg.solve(square, terms.T @ np.stack(truths, axis=1))
    statistics = _statistics(properties, mean, deviation, slopes)
    return _Reference(mean, deviation, slopes, statistics, hottest, on_busiest)


def _statistics(properties: Floats, mean: Floats, deviation: Floats, slopes: Floats) -> Floats:
    regressed = _terms(properties, mean, deviation) @ slopes
    return np.hstack((regressed, properties[:, :1] / 2))


def _terms(properties: Floats, mean: Floats, deviation: Floats) -> Floats:
    """Terms of a quadratic regression; shape (rows, terms)."""
    own = np.clip((properties - mean) / deviation, -4, 4)
    one, other = np.triu_indices(own.shape[1])
    return np.hstack((np.ones((len(own), 1)), own, own[:, one] * own[:, other]))


def _properties(shares: Floats) -> tuple[Floats, Floats]:
    """Properties of loads, and the excess of the busiest unit's share over the mean.

    First the shape of all load: the excess, other units in its measure, their third moment, empty units. Then the
    change of shares in time: the busiest unit's against others', and how it goes with the load.

    Args:
        shares: Share of each unit in each window; shape (rows, units, windows).

    Returns:
        Shapes (rows, properties) and (rows,).
    """
    rows, units, windows = shares.shape
    mean, each = shares.mean(axis=2), np.arange(rows)
    falling, busiest = -np.sort(-mean, axis=1), mean.argmax(axis=1)
    excess = np.maximum(falling[:, 0] - 1 / units, _LEAST)
    off = falling - 1 / units
    found = [
        np.log(excess * units),
        off[:, 1] / excess,
        off[:, min(2, units - 1)] / excess,
        -off[:, -1] / excess,
        falling[:, 1:].std(axis=1) / excess,
        (off**3).mean(axis=1) / np.maximum((off**2).mean(axis=1), _NO_VARIANCE) ** 1.5,
        (mean < 1e-6).mean(axis=1),
    ]
    if windows > 1:
        varies = shares.var(axis=2) + _NO_VARIANCE
        steps = (np.diff(shares, axis=2) ** 2).mean(axis=2) / 2 + _NO_VARIANCE
        own, of_others = varies[each, busiest], (varies.sum(axis=1) - varies[each, busiest]) / (units - 1)
        own_steps, other_steps = steps[each, busiest], (steps.sum(axis=1) - steps[each, busiest]) / (units - 1)
        logs, centred = np.log(varies), mean - mean.mean(axis=1, keepdims=True)
        covaries = (centred * (logs - logs.mean(axis=1, keepdims=True))).mean(axis=1)
        deviations = shares[each, busiest] - mean[each, busiest][:, None]
        found += [
            np.log(own / of_others),
            np.log(own / np.median(varies, axis=1)),
            np.log(of_others) / 2 - np.log(excess),
            np.log(own_steps / other_steps),
            np.log(other_steps / of_others),
            logs.std(axis=1),
            covaries / (centred.std(axis=1) * logs.std(axis=1) + _LEAST),
            np.log(varies.max(axis=1)) / 2 - np.log(excess),
            np.log(((deviations**4).mean(axis=1) + _NO_VARIANCE**2) / own**2),
        ]
    return np.stack(found, axis=1), excess
