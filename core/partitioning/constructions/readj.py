"""Readj constructions: move and swap keys while that improves the balance."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.problem.problem import UTILITIES, Balance, Problem, Weighing


class Step(NamedTuple):
    """Constants of a step, with one to three distinct loads.

    Unused ones have power 0.
    """

    weights: Floats
    loads: Floats
    units: Floats  # the weight of a unit of each load, if readjustments are weighed by these
    by_units: bool
    falling: bool  # whether keys are by falling load, in every resource
    state: Floats
    home: Channels
    powers: tuple[int, int, int]  # of two or three resources at most one has 2, the others 1
    root: int
    scale: float
    per_state: float  # gamma of a unit of state
    most_gamma: float  # the limit of gamma
    weighing: int
    times: bool
    as_printed: bool

    @classmethod
    def from_problem(cls, problem: Problem, balance: Balance, most_migrated: float, as_printed: bool) -> "Step":
        """The constants of a problem."""
        per_state = 1 / problem.ideal if problem.ideal > 0 else 0.0
        utility, powers = UTILITIES[problem.utility], [*balance.powers.tolist(), 0, 0]
        return cls(
            weights=problem.weights,
            loads=balance.loads,
            units=np.append(balance.units, np.zeros(3 - len(balance.units))),
            by_units=bool(problem.resources.sources),
            falling=bool((np.diff(balance.loads) <= 0).all()),
            state=problem.state,
            home=np.array(problem.home, np.int32),
            powers=(powers[0], powers[1], powers[2]),
            root=balance.root,
            scale=balance.scale,
            per_state=per_state,
            most_gamma=most_migrated * per_state if most_migrated < np.inf else np.inf,
            weighing=int(utility.weighing),
            times=utility.times,
            as_printed=as_printed,
        )


class Mapping(NamedTuple):
    """Current mapping, by channel."""

    members: NDArray[np.int64]  # keys channel by channel, each in order
    ends: NDArray[np.int64]  # the keys of channel i are members[ends[i] : ends[i + 1]]
    on: Floats  # load of each resource on each channel
    highest: NDArray[np.int64]  # the three fullest channels of each resource
    lowest: NDArray[np.int64]  # the three emptiest
    alone: NDArray[np.bool_]  # whether a channel alone is fullest or emptiest, by resource
    at_end: NDArray[np.bool_]  # whether it is in any resource
    fixed: NDArray[np.bool_]  # whether the user pinned each key
    weights: Floats  # of the members, shape (1, keys)
    loads: Floats  # of the members
    returns: Floats  # state that migrates when a member is swapped between the two current channels

    @classmethod
    def from_step(cls, step: Step, channels: int, fixed: NDArray[np.bool_]) -> "Mapping":
        """An empty mapping, for `list_members` and `rank_channels` to fill."""
        rows, keys = step.loads.shape
        return cls(
            members=np.empty(keys, np.int64),
            ends=np.empty(channels + 1, np.int64),
            on=np.empty((rows, channels)),
            highest=np.empty((rows, 3), np.int64),
            lowest=np.empty((rows, 3), np.int64),
            alone=np.empty((rows, channels), np.bool_),
            at_end=np.empty(channels, np.bool_),
            fixed=fixed,
            weights=np.empty((1, keys)),
            loads=np.empty((rows, keys)),
            returns=np.empty(keys),
        )


@inlined
def list_members(step: Step, channel_of: Channels, mapping: Mapping) -> None:
    """List the keys and sum the loads of each channel."""
    members, ends = mapping.members, mapping.ends
    ends[:] = 0
    mapping.on[:] = 0.0
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
        mapping.weights[0, place] = step.weights[key]
        mapping.loads[:, place] = step.loads[:, key]
        places[channel] += 1


@inlined
def rank_channels(mapping: Mapping) -> None:
    """Find the three most and three least loaded channels.

    For each resource; -1 if there are fewer.
    """
    mapping.alone[:] = False
    for k in range(len(mapping.on)):
        on, highest, lowest = mapping.on[k], mapping.highest[k], mapping.lowest[k]
        highest[:], lowest[:] = -1, -1
        for channel in range(len(on)):
            _insert(highest, on, channel, 1.0)
            _insert(lowest, on, channel, -1.0)
        mapping.alone[k, highest[0]] = on[highest[0]] > on[highest[1]]
        mapping.alone[k, lowest[0]] = on[lowest[0]] < on[lowest[1]]
    for channel in range(len(mapping.at_end)):
        mapping.at_end[channel] = mapping.alone[:, channel].any()


@inlined
def _insert(ranked: NDArray[np.int64], on: Floats, channel: int, sign: float) -> None:
    """Insert a channel into the ranking of the three largest `sign` * load."""
    place = 3
    while place > 0 and (ranked[place - 1] < 0 or sign * on[channel] > sign * on[ranked[place - 1]]):
        place -= 1
        if place < 2:
            ranked[place + 1] = ranked[place]
    if place < 3:
        ranked[place] = channel


@inlined
def swap_partners(step: Step, mapping: Mapping, d1: int, i: int, j: int) -> tuple[int, int]:
    """The swap partners of key d1 in channel j.

    A range in `members` of the keys that may lower rho when swapped with d1 of channel i.

    For that, some resource must flow from the fuller of the two to the other, by less than their difference, and one of
    them must be alone at an end. Such keys are adjacent if keys are by falling load; if not, all are returned.
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
    """The first place from `begin` on with a load below the bound, or at it if `itself`; else `end`."""
    while begin < end:
        middle = (begin + end) // 2
        if loads[k, middle] < bound or (itself and loads[k, middle] == bound):
            end = middle
        else:
            begin = middle + 1
    return begin


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


def readj(problem: Problem) -> Channels:
    """Apply the best move or swap until none lowers rho.

    The gain is the fall of the utility of the current mapping / the difference of the two counts or, with measured
    resources, / the largest share of a load that changes channels. It may be negative, since any readjustment that
    lowers rho is taken. Keys start on their current
    channel, or where the ring sends them if that is removed, and that migration is fixed. Gains within a relative 1e-12
    of the most tie: of (channel, other channel, key, other key) the first wins, and a move goes before the swaps of its
    key. A limit of migration excludes what would exceed it; other readjustments may bring keys home and make room.

    The pseudo-code stops at the first readjustment that does not lower rho, where its comment continues with the next,
    and takes the fall from the utility of the last kept candidate; for the latter see `readj_printed`.

    Source: partitioning functions, section 4.2.4, Algorithm 4, Eqs. 21, 22. Only readjustments between a channel that
    alone is fullest or emptiest and another can lower rho, and only those are looked at.
    """
    return readjust(problem, as_printed=False)


def readjust(problem: Problem, as_printed: bool, channel_of: Channels | None = None) -> Channels:
    """Algorithm 4; int32, shape (keys,).

    Args:
        as_printed: Take the gain from `u` as printed: 0 at first, then the utility of each kept candidate.
        channel_of: The mapping to start from, shape (keys,), each channel below N. Default: `problem.start`.
    """
    balance, most_moved = Balance.from_problem(problem), problem.most_moved  # refuses less than must move
    channel_of = np.array(problem.start if channel_of is None else channel_of, np.int32)
    if balance.root == 0 or problem.channels == 1:
        return channel_of
    away, inevitable = (problem.state[each != problem.home].sum() for each in (channel_of, problem.start))
    most_migrated = problem.owed + float(inevitable) + most_moved
    step = Step.from_problem(problem, balance, most_migrated, as_printed)
    mapping = Mapping.from_step(step, problem.channels, problem.pinned >= 0)
    _readjust(step, mapping, problem.owed + float(away), problem.channels, channel_of)
    return channel_of


class Best(NamedTuple):
    """v, the best readjustment so far.

    Swap `first` with `second`, or move `first` if `second` is -1.
    """

    gain: float  # g
    utility: float  # u
    first: int  # d1
    second: int  # d2
    target: int  # j


@compiled
def _readjust(step: Step, mapping: Mapping, migrated: float, channels: int, channel_of: Channels) -> None:
    """Algorithm 4 from the mapping in `channel_of`, which it changes in place."""
    utility, last_rho, last = 0.0, np.inf, channel_of.copy()
    while True:
        list_members(step, channel_of, mapping)
        rank_channels(mapping)
        rho = balance_penalty(step, mapping)
        if rho >= last_rho:  # rounding of fractional costs; without this, the search might not end
            channel_of[:] = last
            break
        if rho == 0:
            break
        last_rho, last[:] = rho, channel_of
        best = Best(-np.inf, utility, -1, -1, -1)
        for i in range(channels):
            for j in range(channels):
                if i != j and (mapping.at_end[i] or mapping.at_end[j]):
                    best = _best_between(step, mapping, i, j, rho, migrated * step.per_state, best)
        if best.first < 0:
            break
        source, utility = channel_of[best.first], best.utility
        migrated += _reassign(step, channel_of, best.first, source, best.target)
        if best.second >= 0:
            migrated += _reassign(step, channel_of, best.second, best.target, source)


@inlined
def _reassign(step: Step, channel_of: Channels, key: int, source: int, target: int) -> float:
    """One half of A (Eq. 21): move a key to another channel; returns the state that migrates by it."""
    channel_of[key] = target
    return migrates(step, key, source, target)


@inlined
def _best_between(step: Step, mapping: Mapping, i: int, j: int, rho: float, gamma: float, best: Best) -> Best:
    """The best so far, after every move from channel i to j and every swap between them."""
    members, ends, loads, weights, units = mapping.members, mapping.ends, mapping.loads, mapping.weights, step.units
    several, three = step.powers[1] > 0, step.powers[2] > 0
    rooted = several or step.powers[0] < step.root  # rho is not max - min itself, up to a factor
    first = pair_loads(mapping, 0, i, j)
    second = pair_loads(mapping, 1, i, j) if several else first
    third = pair_loads(mapping, 2, i, j) if three else first
    for b in range(ends[j], ends[j + 1]):
        mapping.returns[b] = migrates(step, members[b], j, i) * step.per_state
    for a in range(ends[i], ends[i + 1]):
        d1 = members[a]
        if mapping.fixed[d1]:
            continue
        goes = migrates(step, d1, i, j) * step.per_state
        begin, end = swap_partners(step, mapping, d1, i, j)
        # The move, then the swaps; a swap is met from both of its ends, and counts only at the first.
        for b in range(begin - 1, end if step.as_printed or i < j else begin):
            swaps = b >= begin
            flow, other_flow, third_flow = _flow(loads, 0, a, b, swaps), 0.0, 0.0
            falls = spread_fall(first, flow), 0.0, 0.0
            if several:
                other_flow = _flow(loads, 1, a, b, swaps)
                third_flow = _flow(loads, 2, a, b, swaps) if three else 0.0
                falls = falls[0], spread_fall(second, other_flow), spread_fall(third, third_flow) if three else 0.0
            if step.by_units:
                size = max(abs(flow) * units[0], abs(other_flow) * units[1], abs(third_flow) * units[2])
            else:
                size = abs(_flow(weights, 0, a, b, swaps))
            fall = rho_fall_at_most(step, falls) if rooted else falls[0]
            if fall <= TIE or (swaps and mapping.fixed[members[b]]):
                continue
            change = goes + mapping.returns[b] if swaps else goes
            weight, more = changed_weight(gamma, change, step.weighing)
            better, worse = utility_change(step, rho, fall, weight, more, best.utility)
            if better - worse <= best.gain * size or (change > 0 and gamma + change > step.most_gamma):
                continue
            if rooted:
                fall = rho_fall(step, falls)
                if fall <= TIE:
                    continue
                better, worse = utility_change(step, rho, fall, weight, more, best.utility)
            tie = TIE * _magnitude(step, better, worse, best, size)
            if best.first < 0 or better - worse > best.gain * size + tie:
                best = Best((better - worse) / size, worse, d1, members[b] if swaps else -1, j)
    return best


@inlined
def _flow(loads: Floats, k: int, a: int, b: int, swaps: bool) -> float:
    """The load that leaves a member's channel by its move, or its swap with another."""
    return float(loads[k, a] - loads[k, b] if swaps else loads[k, a])


@inlined
def _magnitude(step: Step, better: float, worse: float, best: Best, size: float) -> float:
    """The scale of the rounding of a gain, times `size`."""
    if step.as_printed:
        return max(abs(better - worse), abs(best.gain * size))
    return better + abs(worse)


def readj_printed(problem: Problem) -> Channels:
    """Readj as Algorithm 4 prints it: gain from the last candidate.

    `u` starts at 0 and is overwritten with the utility of each candidate that becomes the best so far, within a round
    and into the next, so the winner depends on the order of candidates: (channel, other channel, key, other key), a
    move before the swaps of its key, each swap from both of its ends. The paper's text says otherwise (`readj`), but
    the migration of this variant is nearer to the reported numbers.

    Source: partitioning functions, section 4.2.4, Algorithm 4.
    """
    return readjust(problem, as_printed=True)


_TIE = 1e-12
"""Tolerance of ties, relative to max - min; far above rounding."""


def unlocked(problem: Problem) -> Channels:
    """Readj that moves one key whenever it gets stuck at a tie.

    A readjustment of readj must lower rho. If two channels tie for the least load, or for the most, no move or swap
    can: it changes only one of them. So readj stops, however busy the busiest channel is. Here the first channel that
    ties for the least then receives the largest key, up to half of their difference, of the busiest channel that can
    spare one; failing that, the first that ties for the most gives the largest such key to the least loaded channel
    that can take one. Neither raises rho, and fewer channels tie afterwards, so the search ends.

    Where readj ends without a tie, this is readj. Ties go to the lowest channel and the first key. A limit of moves is
    reset whenever readj resumes; a limit of migration holds throughout.

    Source: ours; fixes what partitioning functions, section 5.6, observes of readj at low sigma.
    """
    balance = Balance.from_problem(problem)
    channel_of = readjust(problem, as_printed=False)
    while (freed := _freed(balance, channel_of, problem)) is not None:
        channel_of = readjust(problem, as_printed=False, channel_of=freed)
    return channel_of


def _freed(balance: Balance, channel_of: Channels, problem: Problem) -> Channels | None:
    """The mapping with one free key moved so that fewer channels tie and rho does not rise; None if impossible."""
    channels, home = problem.channels, problem.home
    free, at_home = problem.pinned < 0, channel_of == home
    left = problem.most_moved - float(problem.state[free & ~at_home & (home < channels)].sum())
    free &= ~at_home | (problem.state <= left)
    on = _channel_loads(balance, channel_of, channels)
    rho, ties = _rho(balance, on), _ties(on)
    for loads, load in zip(balance.loads, on, strict=True):
        for sign in (1, -1):  # the emptiest channels, then the fullest
            tied = np.flatnonzero(_emptiest(sign * load))
            if len(tied) == 1 or np.ptp(load) == 0:
                continue
            for other in np.argsort(-sign * load, kind="stable"):
                donor, receiver = (other, tied[0]) if sign > 0 else (tied[0], other)
                spare = free & (channel_of == donor) & (loads <= (load[donor] - load[receiver]) / 2)
                if spare.any():
                    key = np.argmax(np.where(spare, loads, -1.0))
                    freed = channel_of.copy()
                    freed[key] = receiver
                    after = _channel_loads(balance, freed, channels)
                    if _rho(balance, after) <= rho * (1 + _TIE) and _ties(after) < ties:
                        return freed
    return None


def _channel_loads(balance: Balance, channel_of: Channels, channels: int) -> Floats:
    """The load of each channel, shape (functions, channels)."""
    on = [np.bincount(channel_of, loads, channels) for loads in balance.loads]
    return np.array(on, np.float64).reshape(len(on), channels)


def _emptiest(load: Floats) -> NDArray[np.bool_]:
    """Which channels have the least load, shape (channels,)."""
    return np.asarray(load <= load.min() + _TIE * np.ptp(load))


def _ties(on: Floats) -> int:
    """Number of channels with the least or the most load, over all functions."""
    return sum(int(_emptiest(load).sum() + _emptiest(-load).sum()) for load in on)


def _rho(balance: Balance, on: Floats) -> float:
    """Rho (Eqs. 19, 20), up to a factor, to the power of the number of resources."""
    return float(np.prod(np.ptp(on, axis=1) ** balance.powers))
