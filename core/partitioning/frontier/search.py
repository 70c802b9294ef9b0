"""Placement of least imbalance within budgets of state and pins."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.level import fill_to_level
from adapt.core.partitioning.frontier.today import Budget, Today
from adapt.core.random_bits import output, uniform

_GAIN = 1e-10
"""Relative fall of a utilization that counts as rounding."""

_FREE = 1e-3
"""Part of the budgets that every change counts as, so that changes at no cost compare too."""


class Step(NamedTuple):
    """Keys by falling load, channels of today, and both budgets."""

    loads: Floats
    state: Floats
    home: Channels
    residual: Floats
    capacities: Floats
    most: Floats


class Placed(NamedTuple):
    """A placement that changes.

    Channel of each key, load of each channel, and what is left of both budgets.
    """

    of: Channels
    on: Floats
    left: Floats


@inlined
def price_of(step: Step, placed: Placed, key: int, channel: int) -> tuple[float, float]:
    """State and pins that a move takes; below 0 towards home."""
    if placed.of[key] == step.home[key]:
        return step.state[key], 1.0
    if channel == step.home[key]:
        return -step.state[key], -1.0
    return 0.0, 0.0


@inlined
def fits(cost: float, pins: float, left: Floats) -> bool:
    """Whether the budgets have room for a change."""
    return (cost <= 0 or cost <= left[0]) and (pins <= 0 or pins <= left[1])


@inlined
def move(step: Step, placed: Placed, key: int, channel: int) -> None:
    """Move a key to another channel."""
    cost, pins = price_of(step, placed, key, channel)
    placed.left[0] -= cost
    placed.left[1] -= pins
    placed.on[placed.of[key]] -= step.loads[key]
    placed.on[channel] += step.loads[key]
    placed.of[key] = channel


@inlined
def busiest(on: Floats, capacities: Floats) -> int:
    """The channel of highest utilization; the lowest of several."""
    at = 0
    for channel in range(len(on)):
        if on[channel] / capacities[channel] > on[at] / capacities[at]:
            at = channel
    return at


@inlined
def climb(step: Step, placed: Placed, target: float, work: NDArray[np.int64]) -> None:
    """Relieve the busiest channel by moves and swaps within the budgets.

    A swap is made where no move helps. Each change lowers the busiest channel without raising another as high. The
    change of most gain for its part of the budgets is made; utilizations below the target count as the target. Then
    keys that are not needed elsewhere go home.

    Args:
        work: Comparisons left; the search ends when they are used up.
    """
    loads, capacities, most, on = step.loads, step.capacities, step.most, placed.on
    keys, channels = len(loads), len(on)
    while work[0] > 0:
        full = busiest(on, capacities)
        top = on[full] / capacities[full]
        best, widest, leaving, coming, to = 0.0, 0.0, -1, -1, -1
        for swaps in range(2):
            for key in range(keys):
                if placed.of[key] != full or top <= target:
                    continue
                # In return for a key comes a lighter one, or from a channel none, which is numbered after the keys.
                first, last = (key + 1, keys) if swaps == 1 else (keys, keys + channels)
                work[0] -= last - first
                for other in range(first, last):
                    channel = placed.of[other] if swaps == 1 else other - keys
                    shifted = loads[key] - (loads[other] if swaps == 1 else 0.0)
                    if channel == full or shifted <= 0:
                        continue
                    peak = max((on[full] - shifted) / capacities[full], (on[channel] + shifted) / capacities[channel])
                    if peak >= top * (1 - _GAIN):
                        continue
                    cost, pins = price_of(step, placed, key, channel)
                    if swaps == 1:
                        back, unpinned = price_of(step, placed, other, full)
                        cost, pins = cost + back, pins + unpinned
                    if not fits(cost, pins, placed.left):
                        continue
                    part = max(cost / most[0] if cost > 0 else 0.0, pins / most[1] if pins > 0 else 0.0)
                    score = (top - max(peak, target)) / (part + _FREE)
                    if score > best * (1 + _GAIN) or (score >= best * (1 - _GAIN) and top - peak > widest):
                        best, widest, leaving, coming, to = score, top - peak, key, other, channel
            if leaving >= 0:
                break
        if leaving < 0:
            break
        move(step, placed, leaving, to)
        if coming < keys:
            move(step, placed, coming, full)
    _send_home(step, placed)


@inlined
def _send_home(step: Step, placed: Placed) -> None:
    """Send pinned keys home, hottest first, unless that raises the maximum."""
    top = (placed.on / step.capacities).max() * (1 + _GAIN / 10)
    sent = True
    while sent:
        sent = False
        for key in range(len(step.loads)):
            there = step.home[key]
            if placed.of[key] != there and (placed.on[there] + step.loads[key]) / step.capacities[there] <= top:
                move(step, placed, key, there)
                sent = True


@inlined
def keep_to_budgets(step: Step, placed: Placed) -> None:
    """Send home pinned keys until both budgets are kept.

    Those of least harm for what they take go first. Harm is the rise of the sum of squared loads / capacities, per
    state if too much is moved, else per pin.
    """
    capacities, left = step.capacities, placed.left
    while left[0] < 0 or left[1] < 0:
        least, chosen = np.inf, -1
        for key in range(len(step.loads)):
            here, there = placed.of[key], step.home[key]
            if here == there:
                continue
            apart = placed.on[there] / capacities[there] - placed.on[here] / capacities[here]
            harm = step.loads[key] * (2 * apart + step.loads[key] * (1 / capacities[there] + 1 / capacities[here]))
            if left[0] < 0:
                harm = harm / step.state[key] if step.state[key] > 0 else np.inf
            if chosen < 0 or harm < least:
                least, chosen = harm, key
        move(step, placed, chosen, step.home[chosen])


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
