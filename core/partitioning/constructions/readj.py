"""The readj construction: leave keys where they are, then move and swap them while that makes the balance better."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.balance_penalty import Balance
from adapt.core.partitioning.constructions.problem import Problem
from adapt.core.partitioning.constructions.utility import UTILITIES, Weighing
from adapt.core.partitioning.measures.resources import Floats

_TIE = 1e-12
"""Scores within this relative distance of the best tie; far above rounding."""

_LOGARITHM = int(Weighing.LOGARITHM)


def readj(problem: Problem) -> Channels:
    """Apply the move or swap of most gain, of those that lower rho, until none does; int32, shape (keys,).

    The gain is the fall of the utility, from the mapping as it stands, over the difference of the two counts, or, where
    a resource was measured, over the largest share of a load that changes channels. It may be negative, since any
    readjustment that lowers rho is taken. Keys start where they are, or where the ring sends them if that channel is
    gone, and what that moves is owed for good. Gains within a relative 1e-12 of the most tie: of (channel, other
    channel, key, other key) the first wins, and a move goes before the swaps of its key.

    The pseudo-code stops looking at the first readjustment that does not lower rho, where its comment goes on to the
    next, and takes the fall from the utility of the last candidate that it kept; for the latter see `readj_printed`.

    Source: partitioning functions, section 4.2.4, Algorithm 4, Eqs. 21, 22. Only readjustments between a channel that
    alone is fullest or emptiest and another can lower rho, and only those are looked at.
    """
    return readjust(problem, as_printed=False)


def readjust(problem: Problem, as_printed: bool, channel_of: Channels | None = None) -> Channels:
    """Algorithm 4; int32, shape (keys,).

    Args:
        problem: The step.
        as_printed: Take the gain from `u` as it is printed: 0 at first, then the utility of each candidate kept.
        channel_of: The mapping to begin with, shape (keys,), each channel below N; `problem.start` if not given.
    """
    balance, utility = Balance.of(problem), UTILITIES[problem.utility]
    channel_of = np.array(problem.start if channel_of is None else channel_of, np.int32)
    if balance.root == 0 or problem.channels == 1:
        return channel_of
    powers = [*balance.powers.tolist(), 0, 0]
    away = problem.state[channel_of != problem.home]
    most_moves = np.iinfo(np.int64).max if problem.moves is None else problem.moves
    _readjust(
        _Step(
            problem.weights,
            balance.loads,
            balance.units,
            bool(problem.resources.sources),
            bool((np.diff(balance.loads) <= 0).all()),
            problem.state,
            np.array(problem.home, np.int32),
            powers[0],
            powers[1],
            powers[2],
            balance.root,
            balance.scale,
            1 / problem.ideal if problem.ideal > 0 else 0.0,
            int(utility.weighing),
            utility.times,
            as_printed,
            most_moves,
        ),
        np.where(problem.pinned >= 0, most_moves, 0),
        problem.owed + float(away.sum()),
        problem.channels,
        channel_of,
    )
    return channel_of


class _Step(NamedTuple):
    """What stays as it is: of one to three distinct loads; the powers of those that there are not are 0."""

    weights: Floats
    loads: Floats
    units: Floats  # what a unit of each load weighs, if that is how readjustments are weighed
    by_units: bool
    falling: bool  # whether keys stand by falling load in every row
    state: Floats
    home: Channels
    power: int
    other_power: int
    third_power: int  # of two or three powers at most one is 2, the others 1
    root: int
    scale: float
    per_state: float  # gamma of a unit of state
    weighing: int
    times: bool
    as_printed: bool
    most_moves: int


class _Mapping(NamedTuple):
    """A mapping in progress, as channels see it."""

    members: NDArray[np.int64]  # keys channel by channel, each in order
    ends: NDArray[np.int64]  # the keys of channel i are members[ends[i] : ends[i + 1]]
    on: Floats  # load of each resource on each channel
    highest: NDArray[np.int64]  # the three fullest channels of each resource
    lowest: NDArray[np.int64]  # the three emptiest
    alone: NDArray[np.bool_]  # whether a channel alone is fullest or emptiest, by resource
    moves: NDArray[np.int64]  # how often each key was moved
    weights: Floats  # of the members
    loads: Floats  # of the members
    returns: Floats  # state that migrates when a member is swapped between the two channels looked at


class _Best(NamedTuple):
    """The best readjustment so far: swap `first` with `second`, or move it where that is -1; none if both are."""

    gain: float
    utility: float
    first: int
    second: int
    target: int


@compiled
def _readjust(step: _Step, moves: NDArray[np.int64], owed: float, channels: int, channel_of: Channels) -> None:
    """Algorithm 4 from the mapping in `channel_of`, which it changes in place, and with it `moves`.

    A pinned key comes with as many moves as a key may make, so that nothing moves it.
    """
    keys, rows = len(channel_of), step.loads.shape[0]
    mapping = _Mapping(
        np.empty(keys, np.int64),
        np.empty(channels + 1, np.int64),
        np.empty((rows, channels)),
        np.empty((rows, 3), np.int64),
        np.empty((rows, 3), np.int64),
        np.empty((rows, channels), np.bool_),
        moves,
        np.empty(keys),
        np.empty((rows, keys)),
        np.empty(keys),
    )
    moved, utility, last_rho, last = owed, 0.0, np.inf, channel_of.copy()
    while True:
        _take_stock(step, channel_of, mapping)
        _rank(mapping)
        rho = _rho(step, mapping)
        if rho >= last_rho:  # costs with fractions can round so, whole counts never; it could go on for ever
            channel_of[:] = last
            break
        if rho == 0:
            break
        last_rho, last[:] = rho, channel_of
        best = _Best(-np.inf, utility, -1, -1, -1)
        at_end = mapping.alone[0].copy()
        for k in range(1, rows):
            at_end |= mapping.alone[k]
        for i in range(channels):
            for j in range(channels):
                if i != j and (at_end[i] or at_end[j]):
                    best = _best_between(step, mapping, i, j, rho, moved * step.per_state, best)
        if best.first < 0:
            break
        source, utility = channel_of[best.first], best.utility
        moved += _migrates(step, best.first, source, best.target)
        channel_of[best.first] = best.target
        mapping.moves[best.first] += 1
        if best.second >= 0:
            moved += _migrates(step, best.second, best.target, source)
            channel_of[best.second] = source
            mapping.moves[best.second] += 1


@inlined
def _migrates(step: _Step, key: int, source: int, target: int) -> float:
    """The state that migrates by moving a key, one half of M (Eq. 22): negative if it goes home."""
    home = step.home[key]
    return float(step.state[key] * ((home == source) * 1.0 - (home == target) * 1.0))


@inlined
def _best_between(step: _Step, mapping: _Mapping, i: int, j: int, rho: float, gamma: float, best: _Best) -> _Best:
    """The best so far, after every move from channel i to j and every swap between them."""
    members, ends = mapping.members, mapping.ends
    two, three = step.other_power > 0, step.third_power > 0
    pair = _pair(mapping, 0, i, j)
    other_pair = _pair(mapping, 1, i, j) if two else pair
    third_pair = _pair(mapping, 2, i, j) if three else pair
    for b in range(ends[j], ends[j + 1]):
        mapping.returns[b] = _migrates(step, members[b], j, i) * step.per_state
    for a in range(ends[i], ends[i + 1]):
        d1 = members[a]
        if mapping.moves[d1] >= step.most_moves:
            continue
        goes = _migrates(step, d1, i, j) * step.per_state
        begin, end = _partners(step, mapping, d1, i, j)
        # The move, then the swaps; a swap is met from both of its ends, and counts only at the first.
        for b in range(begin - 1, end if step.as_printed or i < j else begin):
            swaps = b >= begin
            size = abs(mapping.weights[a] - mapping.weights[b]) if swaps else mapping.weights[a]
            flows = mapping.loads[0, a] - mapping.loads[0, b] if swaps else mapping.loads[0, a]
            share, other_share, third_share = _share(pair, flows), 0.0, 0.0
            bound = share
            if step.by_units:
                size = abs(flows) * step.units[0]
            if two:
                flows = mapping.loads[1, a] - mapping.loads[1, b] if swaps else mapping.loads[1, a]
                other_share = _share(other_pair, flows)
                if step.by_units:
                    size = max(size, abs(flows) * step.units[1])
                if three:
                    flows = mapping.loads[2, a] - mapping.loads[2, b] if swaps else mapping.loads[2, a]
                    third_share = _share(third_pair, flows)
                    if step.by_units:
                        size = max(size, abs(flows) * step.units[2])
                bound = _fall_at_most(step, share, other_share, third_share)
            if bound <= _TIE or (swaps and mapping.moves[members[b]] >= step.most_moves):
                continue
            weight, more = _weights(gamma, goes + mapping.returns[b] if swaps else goes, step.weighing)
            better, worse = _change(step, rho, bound, weight, more, best.utility)
            if better - worse <= best.gain * size:
                continue
            if two:
                fall = _fall(step, share, other_share, third_share)
                if fall <= _TIE:
                    continue
                better, worse = _change(step, rho, fall, weight, more, best.utility)
            if best.first < 0 or better - worse > best.gain * size + _TIE * _magnitude(step, better, worse, best, size):
                best = _Best((better - worse) / size, worse, d1, members[b] if swaps else -1, j)
    return best


@inlined
def _change(step: _Step, rho: float, fall: float, weight: float, more: float, kept: float) -> tuple[float, float]:
    """Two terms whose difference is what the utility falls by, where rho falls by a part of it.

    Without cancellation if the fall is from the mapping as it stands: the terms then come from the differences of rho
    and of w(gamma). As printed, they are the utility kept and the new one.
    """
    if step.as_printed:
        left = rho * (1 - fall)
        return kept, left * (1 + weight) if step.times else left + weight
    if step.times:
        return rho * fall * (1 + weight), rho * more
    return rho * fall, more


@inlined
def _magnitude(step: _Step, better: float, worse: float, best: _Best, size: float) -> float:
    """What the rounding of a gain is relative to, times `size`."""
    if step.as_printed:
        return max(abs(better - worse), abs(best.gain * size))
    return better + abs(worse)


@inlined
def _pair(mapping: _Mapping, k: int, i: int, j: int) -> tuple[float, float, float, float, float]:
    """Of one resource: the loads of channels i and j, the most and the least of the others, and max - min."""
    on, highest, lowest = mapping.on, mapping.highest, mapping.lowest
    rest_high, rest_low = -np.inf, np.inf
    for place in range(2, -1, -1):
        if highest[k, place] >= 0 and highest[k, place] != i and highest[k, place] != j:
            rest_high = on[k, highest[k, place]]
        if lowest[k, place] >= 0 and lowest[k, place] != i and lowest[k, place] != j:
            rest_low = on[k, lowest[k, place]]
    return on[k, i], on[k, j], rest_high, rest_low, on[k, highest[k, 0]] - on[k, lowest[k, 0]]


@inlined
def _share(pair: tuple[float, float, float, float, float], flows: float) -> float:
    """The part of max - min by which it falls when a load flows from i to j, in constant time; negative if it grows."""
    on_i, on_j, rest_high, rest_low, spread = pair
    one, other = on_i - flows, on_j + flows
    return (spread - (max(one, other, rest_high) - min(one, other, rest_low))) / spread


@inlined
def _fall_at_most(step: _Step, share: float, other_share: float, third_share: float) -> float:
    """No less than the part by which rho falls when each max - min falls by these, and cheaper; 0 if it does not."""
    left = (1 - share) * (1 - other_share) * (1 - third_share)
    if step.power == 2:
        left *= 1 - share
    elif step.other_power == 2:
        left *= 1 - other_share
    if left >= 1:
        return 0.0
    # 1 - x^(1/n) is at most 1 - x, and at most (1 - x) / (n x).
    return (1 - left) / max(step.root * left, 1.0) + 1e-15


@inlined
def _fall(step: _Step, share: float, other_share: float, third_share: float) -> float:
    """The part by which rho falls when each max - min falls by these."""
    logarithm = step.power * np.log1p(-share) + step.other_power * np.log1p(-other_share)
    logarithm += step.third_power * np.log1p(-third_share)
    return float(-np.expm1(logarithm / step.root))


@inlined
def _rho(step: _Step, mapping: _Mapping) -> float:
    """Rho (Eqs. 19, 20) of the mapping."""
    rho = step.scale
    for k, power in ((0, step.power), (1, step.other_power), (2, step.third_power)):
        if power:
            total = mapping.on[k].sum()
            rho *= (_pair(mapping, k, 0, 0)[4] / total) ** (power / step.root) if total > 0 else 0.0
    return rho


@inlined
def _take_stock(step: _Step, channel_of: Channels, mapping: _Mapping) -> None:
    """List the keys channel by channel, and sum their loads anew, so that these depend on the mapping alone."""
    members, ends = mapping.members, mapping.ends
    ends[:] = 0
    mapping.on[:] = 0
    for key, channel in enumerate(channel_of):
        ends[channel + 1] += 1
        for k in range(len(mapping.on)):
            mapping.on[k, channel] += step.loads[k, key]
    for channel in range(1, len(ends)):
        ends[channel] += ends[channel - 1]
    places = ends[:-1].copy()
    for key, channel in enumerate(channel_of):
        place = places[channel]
        members[place] = key
        mapping.weights[place] = step.weights[key]
        mapping.loads[:, place] = step.loads[:, key]
        places[channel] += 1


@inlined
def _rank(mapping: _Mapping) -> None:
    """Find the three fullest and the three emptiest channels of each resource, -1 where there are fewer."""
    mapping.alone[:] = False
    for k in range(len(mapping.on)):
        on, highest, lowest = mapping.on[k], mapping.highest[k], mapping.lowest[k]
        highest[:], lowest[:] = -1, -1
        for channel in range(len(on)):
            _insert(highest, on, channel, 1.0)
            _insert(lowest, on, channel, -1.0)
        mapping.alone[k, highest[0]] = on[highest[0]] > on[highest[1]]
        mapping.alone[k, lowest[0]] = on[lowest[0]] < on[lowest[1]]


@inlined
def _insert(ranked: NDArray[np.int64], on: Floats, channel: int, sign: float) -> None:
    """Put a channel where it belongs among the three of most `sign` * load."""
    place = 3
    while place > 0 and (ranked[place - 1] < 0 or sign * on[channel] > sign * on[ranked[place - 1]]):
        place -= 1
        if place < 2:
            ranked[place + 1] = ranked[place]
    if place < 3:
        ranked[place] = channel


@inlined
def _partners(step: _Step, mapping: _Mapping, d1: int, i: int, j: int) -> tuple[int, int]:
    """Where in `members` the keys of channel j are that may lower rho when swapped with d1 of channel i.

    For that, some resource must flow from the fuller of the two to the other, by less than they lie apart, and one of
    them must be alone at an end. Such keys lie side by side if keys stand by falling load; if not, all are given.
    """
    begin, end = mapping.ends[j], mapping.ends[j + 1]
    if not step.falling:
        return begin, end
    first, last = end, begin
    for k in range(len(mapping.on)):
        if mapping.alone[k, i] or mapping.alone[k, j]:
            own, apart = step.loads[k, d1], mapping.on[k, i] - mapping.on[k, j]
            below, above = (own, own - apart) if apart > 0 else (own - apart, own)
            first = min(first, _first_at_most(mapping.loads, k, begin, end, below, False))
            last = max(last, _first_at_most(mapping.loads, k, begin, end, above, True))
    return first, max(first, last)


@inlined
def _first_at_most(loads: Floats, k: int, begin: int, end: int, bound: float, itself: bool) -> int:
    """The first place from `begin` to `end` with a load below the bound, or at it if `itself`; `end` if none."""
    while begin < end:
        middle = (begin + end) // 2
        if loads[k, middle] < bound or (itself and loads[k, middle] == bound):
            end = middle
        else:
            begin = middle + 1
    return begin


@inlined
def _weights(gamma: float, change: float, weighing: int) -> tuple[float, float]:
    """w(gamma) (section 4.3) after gamma changed, and by how much it changed; without cancellation."""
    if weighing == 0:
        return 0.0, 0.0
    if weighing == _LOGARITHM:
        return np.log1p(gamma + change), np.log1p(change / (1 + gamma))
    return gamma + change, change
