"""Readj construction: move and swap keys while that improves the balance."""

from typing import NamedTuple

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.readj_gain import (
    TIE,
    balance_penalty,
    changed_weight,
    migrates,
    pair_loads,
    rho_fall,
    rho_fall_at_most,
    spread_fall,
    utility_change,
)
from adapt.core.partitioning.constructions.readj_mapping import (
    Mapping,
    Step,
    list_members,
    rank_channels,
    swap_partners,
)
from adapt.core.partitioning.problem.balance_penalty import Balance
from adapt.core.partitioning.problem.problem import Problem


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
