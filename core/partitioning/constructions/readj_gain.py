"""Gain of a readjustment: balance, migration (Eq. 22) and utility."""

from typing import TypeAlias

import numpy as np

from adapt.core.compiled import inlined
from adapt.core.partitioning.constructions.readj_mapping import Mapping, Step
from adapt.core.partitioning.problem.utility import Weighing

TIE = 1e-12
"""Relative tolerance of ties; far above rounding."""

_LOGARITHM = int(Weighing.LOGARITHM)


Pair: TypeAlias = tuple[float, float, float, float, float]
"""For one resource: the loads of channels i and j, the largest and least load of the others, and max - min."""

Falls: TypeAlias = tuple[float, float, float]
"""Relative fall of max - min for each resource; 0 for an unused one."""


@inlined
def balance_penalty(step: Step, mapping: Mapping) -> float:
    """Rho (Eqs. 19, 20) of the mapping."""
    rho = step.scale
    for k in range(len(mapping.on)):
        total = mapping.on[k].sum()
        apart = pair_loads(mapping, k, 0, 0)[4]
        rho *= (apart / total) ** (step.powers[k] / step.root) if total > 0 else 0.0
    return rho


@inlined
def migrates(step: Step, key: int, source: int, target: int) -> float:
    """State that migrates by moving a key, negative if it returns.

    One half of M (Eq. 22).
    """
    home = step.home[key]
    return float(step.state[key] * ((home == source) * 1.0 - (home == target) * 1.0))


@inlined
def changed_weight(gamma: float, change: float, weighing: int) -> tuple[float, float]:
    """w(gamma) (section 4.3) after a change of gamma, without cancellation.

    Returns it with its change.
    """
    if weighing == 0:
        return 0.0, 0.0
    if weighing == _LOGARITHM:
        return np.log1p(gamma + change), np.log1p(change / (1 + gamma))
    return gamma + change, change


@inlined
def pair_loads(mapping: Mapping, k: int, i: int, j: int) -> Pair:
    """The pair of channels i and j in resource k."""
    on, highest, lowest = mapping.on, mapping.highest, mapping.lowest
    rest_high, rest_low = -np.inf, np.inf
    for place in range(2, -1, -1):
        if highest[k, place] >= 0 and highest[k, place] != i and highest[k, place] != j:
            rest_high = on[k, highest[k, place]]
        if lowest[k, place] >= 0 and lowest[k, place] != i and lowest[k, place] != j:
            rest_low = on[k, lowest[k, place]]
    return on[k, i], on[k, j], rest_high, rest_low, on[k, highest[k, 0]] - on[k, lowest[k, 0]]


@inlined
def spread_fall(pair: Pair, flow: float) -> float:
    """Relative fall of max - min.

    For a flow of load from i to j, in constant time; negative if it grows.
    """
    on_i, on_j, rest_high, rest_low, apart = pair
    one, other = on_i - flow, on_j + flow
    return (apart - (max(one, other, rest_high) - min(one, other, rest_low))) / apart


@inlined
def rho_fall_at_most(step: Step, falls: Falls) -> float:
    """Cheap upper bound of the relative fall of rho.

    0 if it does not fall.
    """
    left = (1 - falls[0]) * (1 - falls[1]) * (1 - falls[2])
    if step.powers[0] == 2:
        left *= 1 - falls[0]
    elif step.powers[1] == 2:
        left *= 1 - falls[1]
    if left >= 1:
        return 0.0
    # 1 - x^(1/n) is at most 1 - x, and at most (1 - x) / (n x).
    return (1 - left) / max(step.root * left, 1.0) + 1e-15


@inlined
def rho_fall(step: Step, falls: Falls) -> float:
    """Relative fall of rho."""
    logarithm = step.powers[0] * np.log1p(-falls[0]) + step.powers[1] * np.log1p(-falls[1])
    logarithm += step.powers[2] * np.log1p(-falls[2])
    return float(-np.expm1(logarithm / step.root))


@inlined
def utility_change(step: Step, rho: float, fall: float, weight: float, more: float, kept: float) -> tuple[float, float]:
    """Fall of the utility, as a difference of two terms.

    Without cancellation for the current mapping: the terms are then the differences of rho and of w(gamma). As printed,
    they are the kept utility and the new one.
    """
    if step.as_printed:
        left = rho * (1 - fall)
        return kept, left * (1 + weight) if step.times else left + weight
    if step.times:
        return rho * fall * (1 + weight), rho * more
    return rho * fall, more
