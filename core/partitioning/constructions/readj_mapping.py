"""Mapping of keys to channels that readj changes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import inlined
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.problem.balance_penalty import Balance
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.problem.utility import UTILITIES


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
