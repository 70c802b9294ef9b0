"""The readj construction: leave keys where they are, then move and swap them while that makes the balance better."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.partitioners.balance import Balance
from adapt.core.partitioners.partitioner import Channels
from adapt.core.partitioners.problem import Problem
from adapt.core.partitioners.utility import UTILITIES, Weighing
from adapt.core.resources.functions import Floats

_TIE = 1e-12
"""Scores within this relative distance of the best tie; far above rounding."""

_LOGARITHM = int(Weighing.LOGARITHM)


def readj(problem: Problem) -> Channels:
    """Apply the move or swap of most gain, of those that lower rho, until none does; int32, shape (keys,).

    The gain is the fall of the utility, from the mapping as it stands, over the difference of the two counts. It may be
    negative, since any readjustment that lowers rho is taken. Keys start where they are, or where the ring sends them
    if that channel is gone, and what that moves is owed for good. Gains within a relative 1e-12 of the most tie: of
    (channel, other channel, key, other key) the first wins, and a move goes before the swaps of its key.

    The pseudo-code stops looking at the first readjustment that does not lower rho, where its comment goes on to the
    next, and takes the fall from the utility of the last candidate that it kept; for the latter see `readj_printed`.

    Source: partitioning functions, section 4.2.4, Algorithm 4, Eqs. 21, 22. Only readjustments between a channel that
    alone is fullest or emptiest and another can lower rho, and only those are looked at.
    """
    return readjust(problem, as_printed=False)


def readjust(problem: Problem, as_printed: bool) -> Channels:
    """Algorithm 4, or with `as_printed` its `u`, which starts at 0 and becomes the utility of each candidate kept."""
    balance, utility = Balance.of(problem), UTILITIES[problem.utility]
    channel_of = problem.start.astype(np.int32)
    stranded = problem.state[problem.home >= problem.channels]
    _readjust(
        problem.counts,
        np.array(problem.home, np.int32),
        problem.state,
        balance.loads,
        balance.powers,
        balance.root,
        balance.scale,
        problem.owed + float(stranded.sum()),
        problem.ideal,
        problem.channels,
        int(utility.weighing),
        utility.times,
        as_printed,
        np.iinfo(np.int64).max if problem.moves is None else problem.moves,
        channel_of,
    )
    return channel_of


@compiled
def _readjust(
    counts: Floats,
    home: Channels,
    state: Floats,
    loads: Floats,
    powers: NDArray[np.int64],
    root: int,
    scale: float,
    owed: float,
    ideal: float,
    channels: int,
    weighing: int,
    times: bool,
    as_printed: bool,
    most_moves: int,
    channel_of: Channels,
) -> None:
    """Algorithm 4 from the mapping in `channel_of`, which it changes in place."""
    resources, keys = loads.shape
    total = np.zeros(resources)
    for k in range(resources):
        for key in range(keys):
            total[k] += loads[k, key]
    members, ends = np.empty(keys, np.int64), np.empty(channels + 1, np.int64)
    on = np.empty((resources, channels))  # the load of each channel
    highest, lowest = np.empty((resources, 3), np.int64), np.empty((resources, 3), np.int64)  # channels
    alone = np.empty((resources, channels), np.bool_)  # the only fullest or emptiest channel of a resource
    spread, rest_high, rest_low = np.empty(resources), np.empty(resources), np.empty(resources)
    moves = np.zeros(keys, np.int64)
    moved, utility_kept = owed, 0.0

    while root and channels > 1:
        _members(channel_of, members, ends)
        _channel_loads(loads, channel_of, on)
        _extremes(on, highest, lowest, alone)
        rho = scale
        for k in range(resources):
            spread[k] = on[k, highest[k, 0]] - on[k, lowest[k, 0]]
            rho *= 0.0 if spread[k] <= 0 else (spread[k] / total[k]) ** (powers[k] / root)
        if rho == 0:
            break
        gamma = moved / ideal if ideal > 0 else 0.0
        best_gain, first, second, target = -np.inf, -1, -1, -1  # v: swap `first` with `second`, or move to `target`

        for i in range(channels):
            i_alone = False
            for k in range(resources):
                i_alone = i_alone or alone[k, i]
            for j in range(channels):
                j_alone = i_alone
                for k in range(resources):
                    j_alone = j_alone or alone[k, j]
                if i == j or not j_alone:
                    continue
                for k in range(resources):
                    rest_high[k] = _beside(on[k], highest[k], i, j, -np.inf)
                    rest_low[k] = _beside(on[k], lowest[k], i, j, np.inf)
                for a in range(ends[i], ends[i + 1]):
                    d1 = members[a]
                    if moves[d1] >= most_moves:
                        continue
                    begin, end = _partners(loads, d1, members, ends, on, alone, i, j)
                    from_d1 = state[d1] * ((home[d1] == i) * 1.0 - (home[d1] == j) * 1.0)
                    # The move, then the swaps; a swap is met from both of its ends, and counts only at the first.
                    swaps = end if as_printed or i < j else begin
                    for b in range(begin - 1, swaps):
                        d2 = members[b] if b >= begin else -1
                        if d2 >= 0 and moves[d2] >= most_moves:
                            continue
                        count = counts[d1] - (counts[d2] if d2 >= 0 else 0.0)
                        if count == 0:
                            continue
                        fall = _fall(loads, d1, d2, on, i, j, rest_high, rest_low, spread, powers, root)
                        if fall <= 0:
                            continue
                        migrates = from_d1
                        if d2 >= 0:
                            migrates += state[d2] * ((home[d2] == j) * 1.0 - (home[d2] == i) * 1.0)
                        weight, more = _weights(gamma, migrates / ideal if ideal > 0 else 0.0, weighing)
                        if as_printed:
                            utility = rho * (1 - fall)
                            utility = utility * (1 + weight) if times else utility + weight
                            gain = (utility_kept - utility) / abs(count)
                            size = max(abs(gain), 0.0 if best_gain == -np.inf else abs(best_gain))
                        else:
                            utility = 0.0
                            better = rho * fall * (1 + weight) if times else rho * fall
                            worse = rho * more if times else more
                            gain = (better - worse) / abs(count)
                            size = (better + abs(worse)) / abs(count)
                        if gain > best_gain + _TIE * size:
                            best_gain, first, second, target = gain, d1, d2, j
                            utility_kept = utility
        if first < 0:
            break
        source = channel_of[first]
        moved += state[first] * ((home[first] == source) * 1.0 - (home[first] == target) * 1.0)
        channel_of[first] = target
        moves[first] += 1
        if second >= 0:
            moved += state[second] * ((home[second] == target) * 1.0 - (home[second] == source) * 1.0)
            channel_of[second] = source
            moves[second] += 1


@inlined
def _members(channel_of: Channels, members: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
    """Write the keys channel by channel, in order: those of channel i are members[ends[i] : ends[i + 1]]."""
    ends[:] = 0
    for channel in channel_of:
        ends[channel + 1] += 1
    for channel in range(1, len(ends)):
        ends[channel] += ends[channel - 1]
    places = ends[:-1].copy()
    for key, channel in enumerate(channel_of):
        members[places[channel]] = key
        places[channel] += 1


@inlined
def _channel_loads(loads: Floats, channel_of: Channels, on: Floats) -> None:
    """Write the load of each channel; summed anew each time, so that it depends on the mapping alone."""
    on[:] = 0
    for k in range(len(on)):
        for key, channel in enumerate(channel_of):
            on[k, channel] += loads[k, key]


@inlined
def _extremes(on: Floats, highest: NDArray[np.int64], lowest: NDArray[np.int64], alone: NDArray[np.bool_]) -> None:
    """Write the three fullest and the three emptiest channels of each resource, -1 where there are fewer."""
    alone[:] = False
    for k in range(len(on)):
        highest[k], lowest[k] = -1, -1
        for channel in range(on.shape[1]):
            _insert(highest[k], on[k], channel, 1.0)
            _insert(lowest[k], on[k], channel, -1.0)
        alone[k, highest[k, 0]] = on[k, highest[k, 0]] > on[k, highest[k, 1]]
        alone[k, lowest[k, 0]] = on[k, lowest[k, 0]] < on[k, lowest[k, 1]]


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
def _beside(on: Floats, ranked: NDArray[np.int64], i: int, j: int, none: float) -> float:
    """The load of the first of three channels that is neither i nor j; `none` if there is no other."""
    for channel in ranked:
        if channel >= 0 and channel != i and channel != j:
            return float(on[channel])
    return none


@inlined
def _partners(
    loads: Floats,
    d1: int,
    members: NDArray[np.int64],
    ends: NDArray[np.int64],
    on: Floats,
    alone: NDArray[np.bool_],
    i: int,
    j: int,
) -> tuple[int, int]:
    """Where in `members` the keys of channel j are that may lower rho when swapped with d1 of channel i.

    For that, some resource must flow from the fuller of the two to the other, by less than they lie apart, and one of
    them must be alone at an end. Such keys lie side by side, as keys stand by falling load.
    """
    first, last = ends[j + 1], ends[j]
    for k in range(len(on)):
        if alone[k, i] or alone[k, j]:
            own, apart = loads[k, d1], on[k, i] - on[k, j]
            below, above = (own, own - apart) if apart > 0 else (own - apart, own)
            first = min(first, _first_at_most(loads[k], members, ends[j], ends[j + 1], below, False))
            last = max(last, _first_at_most(loads[k], members, ends[j], ends[j + 1], above, True))
    return first, max(first, last)


@inlined
def _first_at_most(loads: Floats, members: NDArray[np.int64], begin: int, end: int, bound: float, itself: bool) -> int:
    """The first place from `begin` to `end` with a load below the bound, or at it if `itself`; `end` if none."""
    while begin < end:
        middle = (begin + end) // 2
        load = loads[members[middle]]
        if load < bound or (itself and load == bound):
            end = middle
        else:
            begin = middle + 1
    return begin


@inlined
def _fall(
    loads: Floats,
    d1: int,
    d2: int,
    on: Floats,
    i: int,
    j: int,
    rest_high: Floats,
    rest_low: Floats,
    spread: Floats,
    powers: NDArray[np.int64],
    root: int,
) -> float:
    """The part of rho by which a readjustment lowers it, in constant time; 0 if it does not by more than a tie."""
    logarithm, share = 0.0, 0.0
    for k in range(len(on)):
        flows = loads[k, d1] - (loads[k, d2] if d2 >= 0 else 0.0)
        one, other = on[k, i] - flows, on[k, j] + flows
        share = (spread[k] - max(one, other, rest_high[k]) + min(one, other, rest_low[k])) / spread[k]
        if root > 1:
            logarithm += powers[k] * np.log1p(-share)
    if root > 1:
        share = -np.expm1(logarithm / root)
    return share if share > _TIE else 0.0


@inlined
def _weights(gamma: float, change: float, weighing: int) -> tuple[float, float]:
    """w(gamma) (section 4.3) after gamma changed, and by how much it changed; without cancellation."""
    if weighing == 0:
        return 0.0, 0.0
    if weighing == _LOGARITHM:
        return np.log1p(gamma + change), np.log1p(change / (1 + gamma))
    return gamma + change, change
