"""Placement of least imbalance within budgets of state and pins."""

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.fill_to_level import fill_to_level
from adapt.core.partitioning.frontier.local_search import (
    Placed,
    Step,
    busiest,
    climb,
    fits,
    keep_to_budgets,
    move,
    price_of,
)
from adapt.core.partitioning.frontier.today import Budget, Today
from adapt.core.random_bits import output, uniform

WORK = 15_000_000
"""Default number of comparisons of a search: a few hundredths of a second, the same on every machine."""

_TIE = 1e-9
"""Relative difference of utilizations that counts as none."""

_KICKS = 3
"""Keys moved at random before each further search."""

_STARTS = 4
"""Placements to begin with: today's, two that level, one from scratch."""


def rebalance(today: Today, budget: Budget, floor: float = 1.0, work: int = WORK) -> Channels:
    """The placement of least imbalance found within a budget.

    Starts are today's placement, that of `level` and one from scratch (hottest keys first, each to the channel of least
    utilization), less what the budget does not allow. Each is improved by moves and swaps, priced by the part of the
    budget that they take, and pinned keys whose return does not raise the highest utilization go home. The best is then
    searched around: a few keys moved at random, and improved again. Of equal imbalances, fewer pins win, then less
    state.

    Args:
        floor: A known lower bound of the imbalance, at which the search ends.
        work: Comparisons after which the search ends.

    Returns:
        The channel of each key, int32, shape (keys,). Equal arguments have equal results.

    Source: ours; the start from scratch is that of Graham, Bounds on multiprocessing timing anomalies, SIAM Journal on
    Applied Mathematics 17, 1969, the search around the best that of Lourenço, Martin and Stützle, Iterated local
    search, 2003.
    """
    order = np.argsort(-today.loads, kind="stable")
    placed = np.array(today.home[order], np.int32)
    if len(order) and len(today.residual) > 1 and today.average > 0:
        _search(
            np.ascontiguousarray(today.loads[order], np.float64),
            np.ascontiguousarray(today.state[order], np.float64),
            placed.copy(),
            np.ascontiguousarray(today.residual, np.float64),
            np.ascontiguousarray(today.capacities, np.float64),
            np.array([min(today.state_in(budget), 2 * float(today.state.sum())), min(budget.pins, len(order))]),
            max(floor, 1.0) * today.average,
            work,
            placed,
        )
    found = np.empty_like(placed)
    found[order] = placed
    return found


@compiled
def _search(
    loads: Floats,
    state: Floats,
    home: Channels,
    residual: Floats,
    capacities: Floats,
    most: Floats,
    floor: float,
    work: int,
    best: Channels,
) -> None:
    """Search from `best`, today's placement, which receives the best found; keys are by falling load."""
    keys, channels = len(loads), len(residual)
    step = Step(loads, state, home, residual, capacities, most)
    placed = Placed(home.copy(), np.empty(channels), np.empty(2))
    _measure(step, placed)
    value = _value(step, placed)
    steps = np.array([work])
    for start in range(_STARTS):
        placed.of[:] = home
        if start == 1 or start == 2:
            fill_to_level(loads, residual, capacities, start == 2, 0, keys, placed.of)
        elif start == 3:
            _from_scratch(loads, residual, capacities, placed.of)
        _measure(step, placed)
        keep_to_budgets(step, placed)
        for _ in range(3):
            climb(step, placed, floor, steps)
        value = _better(step, placed, value, best)
    drawn = np.uint64(0)
    while steps[0] > 0 and value[0] > floor * (1 + _TIE):
        placed.of[:] = best
        _measure(step, placed)
        for kick in range(_KICKS):
            source, to = busiest(placed.on, capacities), int(uniform(output(np.uint64(0), drawn)) * channels)
            if kick > 0:
                source = int(uniform(output(np.uint64(1), drawn)) * channels)
            first = int(uniform(output(np.uint64(2), drawn)) * keys)
            drawn += np.uint64(1)
            for turn in range(keys):
                key = (first + turn) % keys
                if source != to and placed.of[key] == source:
                    cost, pins = price_of(step, placed, key, to)
                    if fits(cost, pins, placed.left):
                        move(step, placed, key, to)
                        break
        steps[0] -= 10 * keys
        climb(step, placed, floor, steps)
        value = _better(step, placed, value, best)


@inlined
def _measure(step: Step, placed: Placed) -> None:
    """Compute the load of each channel, and what is left of the budgets."""
    placed.on[:] = step.residual
    placed.left[:] = step.most
    for key in range(len(step.loads)):
        placed.on[placed.of[key]] += step.loads[key]
        if placed.of[key] != step.home[key]:
            placed.left[0] -= step.state[key]
            placed.left[1] -= 1


@inlined
def _value(step: Step, placed: Placed) -> tuple[float, float, float]:
    """What is to be low: the highest utilization, then pins, then state moved, the last two up to a constant."""
    return (placed.on / step.capacities).max(), -placed.left[1], -placed.left[0]


@inlined
def _better(
    step: Step, placed: Placed, value: tuple[float, float, float], best: Channels
) -> tuple[float, float, float]:
    """The value of the best placement, which a placement that is no worse replaces."""
    found = _value(step, placed)
    if abs(found[0] - value[0]) > _TIE * value[0]:
        is_better = found[0] < value[0]
    else:
        is_better = found[1] < value[1] or (found[1] == value[1] and found[2] <= value[2])
    if is_better:
        best[:] = placed.of
        return found
    return value


@inlined
def _from_scratch(loads: Floats, residual: Floats, capacities: Floats, placed: Channels) -> None:
    """Place the hottest keys first, each where utilization is then least; on its own channel if that is as good."""
    on = residual.copy()
    for key in range(len(loads)):
        least = (on[placed[key]] + loads[key]) / capacities[placed[key]]
        for channel in range(len(on)):
            filled = (on[channel] + loads[key]) / capacities[channel]
            if filled < least * (1 - _TIE):
                placed[key], least = channel, filled
        on[placed[key]] += loads[key]
