"""The best assignment of units to workers, against each client's own."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.keys.partitioner import Channels
from adapt.core.out_of_sample.placing import moved_hottest
from adapt.core.partitioning.measures.floors import best_possible, search_placements
from adapt.core.unit_loads.clients import Client, assigned_by

_MOST_STEPS = 200_000
"""Steps of the search for the best assignment by total loads; a few hundredths of a second."""

_NEAR = 1.01
"""Imbalance over the lowest within which fewer moves count more."""

_DEALS = 101
"""Random deals of leases, of which the median counts."""


def imbalances(loads: Floats, owners: Channels, workers: int) -> Floats:
    """Load of the busiest worker over the mean, by window with load.

    Args:
        loads: Load of each unit in each window, shape (units, windows).
        owners: Worker of each unit, shape (units,).

    Returns:
        Shape (windows with load,).
    """
    on = _added(loads, owners, workers)
    totals = on.sum(axis=0)
    return np.asarray(on[:, totals > 0].max(axis=0) * workers / totals[totals > 0])


def best_assignment(loads: Floats, workers: int, today: Channels | None = None) -> Channels:
    """The worker of each unit that balances past windows best.

    Units are placed whole by their total loads, best of all placements if a short search ends; then units move while
    that lowers the imbalance of the windows on average, also from today's assignment. Of those whose mean imbalance
    over the windows is lowest, or within 1 % of it, the one wins that moves fewest units.

    Args:
        loads: Load of each unit in each window, from 0; shape (units, windows).
        workers: Number of workers, from 1.
        today: Worker of each unit now, below the number of workers; shape (units,). None if not known.

    Returns:
        Worker of each unit; int32, shape (units,).

    Raises:
        UsageError: no unit or no worker.

    Source: the search of `search_placements` and the moves of `moved_hottest`, with units as keys.
    """
    units = len(loads)
    if not units or workers < 1:
        raise UsageError(f"there must be at least 1 unit and 1 worker (got {units} units, {workers} workers)")
    totals = loads.sum(axis=1)
    if workers == 1 or not totals.any():
        return np.zeros(units, np.int32) if today is None else today
    shares = np.ascontiguousarray(loads[:, loads.sum(axis=0) > 0])
    shares = shares / shares.sum(axis=0)
    falling = np.argsort(-totals, kind="stable")
    packed = np.empty(units, np.int32)
    found = np.zeros(units, np.int32)
    enough = float(totals.sum()) / workers * (1 + 1e-12)
    search_placements(totals[falling], np.ones(workers), math.inf, enough, _MOST_STEPS, found)
    packed[falling] = found
    if today is None:
        return min((_moved(shares, packed, workers, falling), packed), key=lambda of: _mean(shares, of, workers))
    packed = _renamed(packed, today, workers)
    candidates = [today, *(_moved(shares, start, workers, falling) for start in (today, packed)), packed]
    reached = [_mean(shares, owners, workers) for owners in candidates]
    near = [of for of, imbalance in zip(candidates, reached, strict=True) if imbalance <= min(reached) * _NEAR]
    return min(near, key=lambda owners: int((owners != today).sum()))


def _added(loads: Floats, owners: Channels, workers: int) -> Floats:
    """Load of each worker in each window; shape (workers, windows)."""
    on = np.zeros((workers, loads.shape[1]))
    np.add.at(on, owners, loads)
    return on


def _mean(shares: Floats, owners: Channels, workers: int) -> float:
    return float(imbalances(shares, owners, workers).mean())


def _renamed(owners: Channels, today: Channels, workers: int) -> Channels:
    """The same assignment with workers exchanged, so that many units stay where they are today."""
    together = np.zeros((workers, workers))
    np.add.at(together, (owners, today), 1.0)
    names = np.empty(workers, np.int32)
    for _ in range(workers):
        one, other = np.unravel_index(together.argmax(), together.shape)
        names[one] = other
        together[one], together[:, other] = -1.0, -1.0
    return names[owners]


def _moved(shares: Floats, start: Channels, workers: int, falling: NDArray[np.int64]) -> Channels:
    """An assignment after moves that lower the mean imbalance of the windows."""
    loads = _added(shares, start, workers)
    owners = np.empty(len(start), np.int32)
    pins = np.array([len(start)])
    owners[falling] = moved_hottest(falling, shares, start, loads, np.ones(workers), pins)[0]
    return owners


@dataclass(frozen=True, slots=True)
class Assigned:
    """What one assignment makes of past windows."""

    name: str  # the client, `today` or `best`
    owners: Channels  # worker of each unit; shape (units,)
    imbalance: float  # of all load together
    median: float  # imbalance of the median window
    worst: float  # imbalance of the worst window
    moved: float | None  # share of the units that change their worker; None if today's is not known


def compared_assignments(
    loads: Floats, workers: int, clients: Sequence[Client], topics: Sequence[str], today: Channels | None = None
) -> list[Assigned]:
    """Today's assignment, each client's, and the best one.

    Of leases, which are dealt at random, the deal of median imbalance.

    Args:
        loads: Load of each unit in each window, shape (units, windows).
        topics: Topic of each unit, shape (units,).
        today: Worker of each unit now; None if not known.
    """
    total = loads.sum(axis=1, keepdims=True)
    named = [] if today is None else [("today", today)]
    for client in clients:
        deals = [assigned_by(client, topics, workers, seed) for seed in range(_DEALS if client is Client.KCL else 1)]
        by_imbalance = sorted(deals, key=lambda owners: float(imbalances(total, owners, workers).max(initial=1.0)))
        named.append((client.value, by_imbalance[len(deals) // 2]))
    named.append(("best", best_assignment(loads, workers, today)))
    found = []
    for name, owners in named:
        over_time = imbalances(loads, owners, workers)
        whole = float(imbalances(total, owners, workers).max(initial=1.0))
        moved = None if today is None else float((owners != today).mean())
        median, worst = (float(np.median(over_time)), float(over_time.max())) if len(over_time) else (1.0, 1.0)
        found.append(Assigned(name, owners, whole, median, worst, moved))
    return found


def floor_of(loads: Floats, workers: int) -> float:
    """Best possible imbalance of all load, with whole units."""
    falling = np.sort(loads.sum(axis=1))[::-1]
    return best_possible(falling, float(falling.sum()), workers) or 1.0
