"""Unlocked construction: readj without getting stuck at ties."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.readj import readjust
from adapt.core.partitioning.problem.balance_penalty import Balance
from adapt.core.partitioning.problem.problem import Problem

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
