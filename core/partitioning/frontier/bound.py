"""Lower bound of the imbalance within budgets of moved state and pins."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.frontier.integer_program import Program
from adapt.core.partitioning.frontier.today import NO_LIMITS, Budget, Today
from adapt.core.partitioning.measures.floors import best_possible

MOST_PAIRS = 500
"""Most pairs of a key and a channel for which the exact bound is searched."""

NODES = 100
"""Default node limit of that search."""

_HALVINGS = 40
"""Halvings in the search for the least utilization that the relaxation allows."""

_MIXES = 8
"""Weightings of state against pins that the relaxation tries, besides each alone."""

_ROUNDING = 1e-9
"""Relative slack of the relaxation, so that rounding never makes a bound too high."""


def bound_of_today(today: Today, budget: Budget) -> float:
    """Lower bound of the imbalance within a budget, without a search.

    No utilization can be below U if bringing all channels down to U takes more than the budget, even if keys could be
    split: each channel above U gives away the keys that cost least for their load, where the cost is the state, or a
    mix of state and pins; or, for pins alone, the fewest whole keys. A key stays if no other channel has room for it
    below U, even after giving away all that the budget allows. And U is no less than whole keys need on any placement
    (`whole_floor`).

    Source: ours; the mix of two budgets is a Lagrangian relaxation, the cost for each channel the linear relaxation of
    a knapsack cover. O(keys * log keys), times a few hundred.
    """
    if not len(today.loads) or len(today.residual) == 1 or today.average <= 0:
        return today.imbalance(today.home)
    falling = np.argsort(-today.loads, kind="stable")
    loads, state, home = today.loads[falling], today.state[falling], np.asarray(today.home[falling], np.int32)
    most = np.array([min(today.state_in(budget), 2 * float(state.sum())), min(budget.pins, len(loads))])
    highest = float(today.utilizations(today.home).max())
    lowest = min(today.average * whole_floor(today), highest)
    on = today.utilizations(today.home) * today.capacities
    costs, orders = _costs(loads, state, most)
    least = _least_utilization(
        loads, state, home, today.residual, on, today.capacities, most, costs, orders, lowest, highest
    )
    return max(1.0, least * (1 - _ROUNDING) / today.average)


def whole_floor(today: Today) -> float:
    """Lower bound of the imbalance with whole keys."""
    program = _program(today, NO_LIMITS)
    if program.total <= 0:
        return 1.0
    unequal = today.capacities if np.ptp(today.capacities) else None
    floor = best_possible(np.sort(today.loads)[::-1], program.total, program.channels, unequal) or 1.0
    return max(floor, program.least_highest / program.average)


def exact_bound(today: Today, budget: Budget, first: Channels, nodes: int = NODES) -> tuple[float, Channels, bool]:
    """Lower bound by an integer program, and its best placement.

    Args:
        first: A placement within the budget to start from.
        nodes: Node limit of the search tree.

    Returns:
        The bound, the placement, and whether it is proven optimal.
    """
    program = _program(today, budget)
    if program.total == 0 or program.channels == 1:
        return today.imbalance(first), first, True
    found = program.minimise(first, nodes)
    reached = today.imbalance(found.placement)
    return reached if found.proved else min(found.bound / program.average, reached), found.placement, found.proved


def _program(today: Today, budget: Budget) -> Program:
    most_moved = None if budget.max_moved_state is None else today.state_in(budget)
    scaled = today.capacities / today.capacities.mean()
    return Program(today.loads, today.residual, today.state, today.home, most_moved, scaled, budget.max_pins)


def _costs(loads: Floats, state: Floats, most: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """The cost of moving each key in parts of the budget, by mix, and the keys by rising cost for their load.

    Shapes (mixes, keys); the first mix is pins alone, the last one state alone.
    """
    parts = np.linspace(0, 1, _MIXES + 1)[:, None]
    # More state than the budget is never moved, whatever its cost.
    of_state = np.minimum(state, 2 * most[0]) / most[0] if most[0] > 0 else np.zeros(len(state))
    of_pins = 1 / most[1] if most[1] > 0 else 0.0
    costs = parts * of_state + (1 - parts) * of_pins
    ratios = np.divide(costs, loads, out=np.full(costs.shape, np.inf), where=loads > 0)
    return costs, np.argsort(ratios, axis=1, kind="stable")


class _Keys(NamedTuple):
    """Keys by falling load on the channels of today, budgets, and costs by mix (`_costs`)."""

    loads: Floats
    state: Floats
    home: Channels
    residual: Floats
    on: Floats
    capacities: Floats
    most: Floats
    costs: Floats
    orders: NDArray[np.int64]


@compiled
def _least_utilization(
    loads: Floats,
    state: Floats,
    home: Channels,
    residual: Floats,
    on: Floats,
    capacities: Floats,
    most: Floats,
    costs: Floats,
    orders: NDArray[np.int64],
    low: float,
    high: float,
) -> float:
    """The least utilization that the relaxation allows, from below; `high` is allowed."""
    keys = _Keys(loads, state, home, residual, on, capacities, most, costs, orders)
    spare = _spare(keys)
    if _is_allowed(keys, spare, low):
        return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _is_allowed(keys, spare, middle):
            high = middle
        else:
            low = middle
    return low


@inlined
def _spare(keys: _Keys) -> Floats:
    """The most load that each channel could give away, keys split; shape (channels,)."""
    loads, state, most, channels = keys.loads, keys.state, keys.most, len(keys.on)
    by_state, by_pins = np.zeros(channels), np.zeros(channels)
    ratios = np.empty(len(loads))
    for key in range(len(loads)):
        ratios[key] = state[key] / loads[key] if loads[key] > 0 else np.inf
    left, pins = np.full(channels, most[0]), np.full(channels, most[1])
    for key in np.argsort(ratios, kind="mergesort"):
        channel = keys.home[key]
        part = min(1.0, left[channel] / state[key]) if state[key] > 0 else 1.0
        by_state[channel] += part * loads[key]
        left[channel] -= part * state[key]
    for key in range(len(loads)):
        channel = keys.home[key]
        if pins[channel] > 0:
            by_pins[channel] += loads[key]
            pins[channel] -= 1
    return np.minimum(by_state, by_pins)


@inlined
def _is_allowed(keys: _Keys, spare: Floats, utilization: float) -> bool:
    """Whether the relaxation brings all channels down to a utilization within the budgets."""
    loads, on, most = keys.loads, keys.on, keys.most
    slack = 1 + 1e-12
    allowed = utilization * slack * keys.capacities
    room = allowed - (on - spare)
    widest = np.argmax(room)
    second = -np.inf
    for channel in range(len(on)):
        if keys.residual[channel] > allowed[channel]:
            return False
        if channel != widest:
            second = max(second, room[channel])
    excess = np.empty(len(on))
    for mix in range(len(keys.costs)):
        excess[:] = on - allowed
        cost = 0.0
        for key in keys.orders[mix]:
            channel = keys.home[key]
            if excess[channel] <= 0 or loads[key] <= 0 or loads[key] > (second if channel == widest else room[widest]):
                continue
            if keys.state[key] > most[0] or most[1] < 1:
                continue
            part = min(1.0, excess[channel] / loads[key]) if mix > 0 else 1.0
            cost += part * keys.costs[mix, key]
            excess[channel] -= part * loads[key]
        if cost > slack or (excess > 1e-12 * on).any():
            return False
    return True
