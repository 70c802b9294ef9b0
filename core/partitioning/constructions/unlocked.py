"""The unlocked construction: readj, helped on where channels that tie keep it from going on."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.readj import readjust
from adapt.core.partitioning.problem.balance_penalty import Balance
from adapt.core.partitioning.problem.problem import Problem

_TIE = 1e-12
"""Loads within this part of the distance from the emptiest to the fullest channel tie; far above rounding."""


def unlocked(problem: Problem) -> Channels:
    """Readj without its trap: where it stops at a tie, one key is handed on, and it resumes; int32, shape (keys,).

    A readjustment of readj must lower rho. Where two channels tie for the least load, or for the most, no move or swap
    can: it changes one of them and leaves the other. So readj stops, however much fuller the fullest channel is. Here
    the first channel that ties for the least is then given the largest key, up to half of what they lie apart, of the
    fullest channel that can spare one; failing that, the first that ties for the most gives the largest such key to the
    emptiest channel that can take one. Neither raises rho, and fewer channels tie after it, so this comes to an end.

    Where readj ends without a tie, this is readj. Channels that tie are taken from the lowest, equal keys from the
    first. A limit of moves counts anew whenever readj resumes.

    Source: ours; a cure for what partitioning functions, section 5.6, sees of readj where sigma is low.
    """
    balance = Balance.from_problem(problem)
    channel_of = readjust(problem, as_printed=False)
    while (freed := _freed(balance, channel_of, problem.channels, problem.pinned < 0)) is not None:
        channel_of = readjust(problem, as_printed=False, channel_of=freed)
    return channel_of


def _freed(balance: Balance, channel_of: Channels, channels: int, free: NDArray[np.bool_]) -> Channels | None:
    """The mapping with one free key moved so that fewer channels tie and rho is no more; None if no key does that."""
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
    """The tracked load of each channel, shape (functions, channels)."""
    on = [np.bincount(channel_of, loads, channels) for loads in balance.loads]
    return np.array(on, np.float64).reshape(len(on), channels)


def _emptiest(load: Floats) -> NDArray[np.bool_]:
    """Which channels have the least load, shape (channels,)."""
    return np.asarray(load <= load.min() + _TIE * np.ptp(load))


def _ties(on: Floats) -> int:
    """How many channels are emptiest or fullest, over all functions."""
    return sum(int(_emptiest(load).sum() + _emptiest(-load).sum()) for load in on)


def _rho(balance: Balance, on: Floats) -> float:
    """Rho (Eqs. 19, 20) up to a factor, to the power of how many resources there are."""
    return float(np.prod(np.ptp(on, axis=1) ** balance.powers))
