"""Constructions of the paper that assign keys: scan and redist."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.problem.problem import UTILITIES, Balance, Problem, utility, weighed

_TIE = 1e-12
"""Relative tolerance of ties; far above rounding."""

Records: TypeAlias = NDArray[Any]
"""An array of records."""

_RESOURCES = 3
"""Most resources; unused ones have load 0."""

KEY = np.dtype(
    [
        ("weight", np.float64),  # f
        ("state", np.float64),  # beta_s
        ("loads", np.float64, _RESOURCES),
        ("home", np.int32),  # p(t)
        ("pinned", np.int32),  # -1, free
        ("channel", np.int32),  # H_p(t+1); -1, not assigned yet
    ],
    align=True,
)

CHANNEL = np.dtype([("loads", np.float64, _RESOURCES)], align=True)
"""The load of a channel: of the assigned keys."""

STEP = np.dtype(
    [
        ("migrated", np.float64),  # m, of the assigned keys
        ("left", np.float64),  # state that may still leave its channel by choice
        ("ideal", np.float64),  # m with a bar over it
        ("resources", np.int64),  # distinct loads
        ("powers", np.int64, _RESOURCES),  # as in `Balance`
        ("root", np.int64),
        ("scale", np.float64),
        ("totals", np.float64, _RESOURCES),  # over all channels
        ("most", np.float64, _RESOURCES),  # on a channel
        ("least", np.float64, _RESOURCES),
        ("second_least", np.float64, _RESOURCES),  # infinite with one channel
        ("weighing", np.int64),  # as in `Utility`
        ("times", np.bool_),
    ],
    align=True,
)
"""Values that all keys and channels share."""


class Placement(NamedTuple):
    """The keys assigned so far; every step assigns one key for good.

    Records, since a kernel function with many array arguments counts references to each at every call.
    """

    step: Records  # one record of `STEP`
    keys: Records  # records of `KEY`, in the order of the problem; shape (keys,)
    channels: Records  # records of `CHANNEL`, shape (channels,)

    @classmethod
    def from_problem(cls, problem: Problem) -> "Placement":
        """An empty assignment."""
        balance, utility = Balance.from_problem(problem), UTILITIES[problem.utility]
        resources = len(balance.loads)
        step, keys = np.zeros(1, STEP), np.zeros(len(problem.weights), KEY)
        step["migrated"], step["ideal"], step["left"] = problem.owed, problem.ideal, problem.most_moved
        step["resources"], step["root"], step["scale"] = resources, balance.root, balance.scale
        step["powers"][0, :resources] = balance.powers
        step["weighing"], step["times"] = int(utility.weighing), utility.times
        keys["weight"], keys["state"], keys["channel"] = problem.weights, problem.state, -1
        keys["home"], keys["pinned"] = problem.home, problem.pinned
        keys["loads"][:, :resources] = balance.loads.T
        return cls(step, keys, np.zeros(problem.channels, CHANNEL))

    @property
    def chosen(self) -> Channels:
        """The channel of each key, int32, shape (keys,)."""
        return np.ascontiguousarray(self.keys["channel"])


@inlined
def place(step: Any, key: Any, channels: Records, channel: int) -> None:
    """Assign a key to a channel, adding its migration to m."""
    key.channel = channel
    for k in range(step.resources):
        channels[channel].loads[k] += key.loads[k]
        step.totals[k] += key.loads[k]
    if channel != key.home:
        step.migrated += key.state
        if key.pinned < 0 and key.home < len(channels):
            step.left -= key.state


@inlined
def place_pinned(step: Any, keys: Records, channels: Records) -> int:
    """Assign the keys of --pin before all others; returns their number."""
    pinned = 0
    for at in range(len(keys)):
        if keys[at].pinned >= 0:
            place(step, keys[at], channels, keys[at].pinned)
            pinned += 1
    return pinned


@inlined
def may_leave(step: Any, key: Any, channels: Records) -> bool:
    """Whether the migration limit lets a key leave its channel."""
    return bool(key.home >= len(channels) or key.state <= step.left)


@inlined
def measure(step: Any, channels: Records) -> None:
    """Update the extremes of the channel loads."""
    for k in range(step.resources):
        most, least, second_least = -np.inf, np.inf, np.inf
        for channel in range(len(channels)):
            load = channels[channel].loads[k]
            most = max(most, load)
            if load < least:
                least, second_least = load, least
            elif load < second_least:
                second_least = load
        step.most[k], step.least[k], step.second_least[k] = most, least, second_least


@inlined
def balance_penalty(step: Any, key: Any, channel: Any) -> float:
    """Rho (Eqs. 19, 20) after assigning a key.

    In constant time. Without load, it is 0.
    """
    if step.root == 0:
        return 0.0
    product = 1.0
    for k in range(step.resources):
        load, before = key.loads[k], channel.loads[k]
        after = before + load
        least = min(after, step.second_least[k]) if before == step.least[k] else step.least[k]
        most, total = max(after, step.most[k]), step.totals[k] + load
        if most <= least:
            return 0.0
        share = (most - least) / total
        product *= share * share if step.powers[k] == 2 else share
    return float(step.scale * (product if step.root == 1 else product ** (1.0 / step.root)))


@inlined
def migration_weights(step: Any, key: Any) -> tuple[float, float]:
    """w(gamma) (Eq. 18, section 4.3) if a key stays or moves.

    Both 0 without state.
    """
    if step.ideal <= 0:
        return 0.0, 0.0
    stays, leaves = step.migrated / step.ideal, (step.migrated + key.state) / step.ideal
    return weighed(stays, step.weighing), weighed(leaves, step.weighing)


@inlined
def first_lowest(scores: Floats, least: float) -> int:
    """The first score that ties with the least."""
    at = 0
    while scores[at] > least + _TIE * least:
        at += 1
    return at


@inlined
def unbeaten(step: Any, channels: Records) -> NDArray[np.int64]:
    """Channels that no other undercuts in every resource.

    One channel with fewer than two resources.

    The rho of a key on a channel (Eqs. 19, 20) never falls as the loads of the channel rise, so a key has its least
    utility on its current channel or on one of these.
    """
    first = np.empty(len(channels))
    for channel in range(len(channels)):
        first[channel] = channels[channel].loads[0]
    if step.resources < 2:
        return np.full(1, np.argmin(first), np.int64)
    found, kept = 0, np.empty(len(channels), np.int64)
    for channel in np.argsort(first, kind="mergesort"):
        if not _undercut(channels, channel, kept[:found]):
            kept[found] = channel
            found += 1
    return kept[:found]


@inlined
def _undercut(channels: Records, channel: int, emptier: NDArray[np.int64]) -> bool:
    """Whether a channel that is emptier in the first resource is no fuller in the others."""
    loads, at = channels[channel].loads, len(emptier) - 1
    while at >= 0 and (channels[emptier[at]].loads[1] > loads[1] or channels[emptier[at]].loads[2] > loads[2]):
        at -= 1
    return at >= 0


def redist(problem: Problem) -> Channels:
    """Repeatedly assign the key and channel of least utility / weight.

    The weight of a key is its count or, with measured resources, its largest share of a load. Dividing by it assigns
    hot keys early, but a small key that fits well may go before them. Scores within a relative 1e-12 of the least tie:
    the hotter key wins, then the earlier key, then the lower channel.

    Assigned keys are no longer candidates, and the utility is divided by the weight of the candidate itself, which the
    pseudo-code omits. Keys without weight come last, by their undivided utility. If migration is limited, a key whose
    state no longer fits has its current channel alone.

    Source: partitioning functions, section 4.2.3, Algorithm 3. O(keys^2 * tried), where the channels tried for a key
    are its current one and those that no other channel beats in every resource: two if the resources that are not
    constant have one load.
    """
    placement = Placement.from_problem(problem)
    _redist(*placement)
    return placement.chosen


@compiled
def _redist(steps: Records, keys: Records, channels: Records) -> None:
    """Algorithm 3; a candidate is tried only on channels that can be its best."""
    step, utilities = steps[0], np.empty(len(channels))
    place_pinned(step, keys, channels)
    left = np.array([d for d in range(len(keys)) if keys[d].channel < 0])
    scores = np.empty(len(left))
    while len(left) > 0:
        measure(step, channels)
        tried = unbeaten(step, channels)
        candidates = _with_weight(keys, left)
        least = np.inf
        for c in range(candidates):
            key = keys[left[c]]
            weights, best, leaves = migration_weights(step, key), np.inf, may_leave(step, key, channels)
            for turn in range(len(tried) + 1):
                j = tried[turn] if turn < len(tried) else key.home
                if j < len(channels) and (leaves or j == key.home):
                    best = min(best, _utility(step, key, channels, j, weights))
            scores[c] = best
            least = min(least, best)
        c = first_lowest(scores, least)
        key = keys[left[c]]
        weights, leaves = migration_weights(step, key), may_leave(step, key, channels)
        for j in range(len(channels)):
            utilities[j] = _utility(step, key, channels, j, weights) if leaves or j == key.home else np.inf
        place(step, key, channels, first_lowest(utilities, least))
        left[c:-1] = left[c + 1 :]
        left = left[:-1]


@inlined
def _utility(step: Any, key: Any, channels: Records, j: int, weights: tuple[float, float]) -> float:
    """U of a key on a channel / the key's weight; `weights` is w(gamma) if it stays and if it moves."""
    rho = balance_penalty(step, key, channels[j])
    undivided = utility(rho, weights[0] if j == key.home else weights[1], step.times)
    return float(undivided / key.weight if key.weight > 0 else undivided)


@inlined
def _with_weight(keys: Records, left: NDArray[np.int64]) -> int:
    """Number of remaining keys with weight, by falling weight; all of them if none has."""
    size = len(left)
    if keys[left[0]].weight > 0:
        while keys[left[size - 1]].weight == 0:
            size -= 1
    return size


def scan(problem: Problem) -> Channels:
    """Assign each key to its least-utility channel, hottest first; int32, shape (keys,).

    Hot keys go first because they are the hardest to compensate for later: those of the largest count or, with measured
    resources, of the largest share of a load. Equal ones go by key, and of utilities within a relative 1e-12 of the
    least the lowest channel wins, so the same problem always has the same answer. If migration is limited, a key whose
    state no longer fits stays where it is.

    Source: partitioning functions, section 4.2.2, Algorithm 2. O(keys * channels).
    """
    placement = Placement.from_problem(problem)
    _scan(*placement)
    return placement.chosen


@compiled
def _scan(steps: Records, keys: Records, channels: Records) -> None:
    """Algorithm 2; the keys of a problem are sorted by falling weight."""
    step, utilities = steps[0], np.empty(len(channels))
    place_pinned(step, keys, channels)
    for d in range(len(keys)):
        key = keys[d]
        if key.pinned >= 0:
            continue
        measure(step, channels)
        at_home, elsewhere = migration_weights(step, key)
        leaves = may_leave(step, key, channels)
        for j in range(len(channels)):
            rho = balance_penalty(step, key, channels[j])
            weighed = utility(rho, at_home if j == key.home else elsewhere, step.times)
            utilities[j] = weighed if leaves or j == key.home else np.inf
        place(step, key, channels, first_lowest(utilities, utilities.min()))
