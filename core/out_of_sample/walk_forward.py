"""Walk-forward: plans from past windows, measured on the windows that follow.

A plan keeps today's placement for every key that it does not pin. How many keys it pins is itself decided by earlier
windows: only as many as have lowered the imbalance of windows that the plan had not seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.out_of_sample.outcome import KEPT, LEVEL, REBUILT, TODAY, OutOfSample, Track
from adapt.core.out_of_sample.placing import moved_hottest
from adapt.core.out_of_sample.windows import Windows, loads_of
from adapt.core.statistics.student import student_quantile

PINS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 300)
"""Numbers of pinned keys that are tried."""

MOST_HOT = 1000
"""Only this many of the hottest keys may be pinned."""

FEWEST_PAST = 5
"""Fewest past windows that a plan is chosen from: with fewer, luck and gain look alike."""

EVIDENCE = 0.99
"""Confidence that a plan lowers the imbalance, before it pins any key."""

EVIDENCE_NEXT = 0.95
"""For a plan that is kept, also the confidence that it lowers that of the window right after it: means over all later
windows share most of them, and look more certain than they are."""

LEAST_GAIN = 0.01
"""Least fall of the logarithm of the imbalance that is worth a pin."""

TIE = 0.005
"""Plans whose mean logarithms differ by less are as good; the fewest pins win."""

_FIRST_PLAN = 2
"""Fewest windows that a plan is built from."""


@dataclass(frozen=True, slots=True)
class Pins:
    """Pinned keys of a plan over today's placement.

    Attributes:
        rows: Pinned keys, by their row in the windows; hottest first.
        channels: Their channels, none of which is today's.
    """

    rows: NDArray[np.int64]
    channels: Channels

    def __len__(self) -> int:
        return len(self.rows)

    def over(self, home: Channels) -> Channels:
        """Channel of every key, shape (keys,)."""
        placed = home.copy()
        placed[self.rows] = self.channels
        return placed


def walk_forward(windows: Windows, others: Mapping[str, Partitioner] | None = None) -> tuple[OutOfSample, Pins] | None:
    """Walk forward over windows; None with fewer than `FEWEST_PAST` + 1.

    The first half of the windows, and at least `FEWEST_PAST`, are past; plans are tested on the others.

    Args:
        others: Further placements to measure, by name.

    Returns:
        What was measured, and the plan for the rows that follow, built from all windows.

    Source: ours; evidence as in one-sided tests by Student's t.
    """
    number = len(windows)
    past = max(FEWEST_PAST, number // 2)
    if number <= past:
        return None
    plans = {upto: _plans(windows, upto) for upto in range(_FIRST_PLAN, number + 1)}
    measured = {upto: _measured(windows, plans[upto], upto) for upto in range(_FIRST_PLAN, number)}
    today = np.log(windows.imbalances(windows.loads))
    then, now = (_chosen_to_keep(measured, today, upto) for upto in (past, number))
    kept = plans[past][then]
    state = _moved(windows, windows.home, kept.over(windows.home), past)
    following = np.array([measured[upto][now, 0] for upto in range(_FIRST_PLAN, number)])
    tracks = {
        TODAY: Track(tuple(np.exp(today[past:]).tolist()), 0.0),
        **{name: _hashed(windows, partitioner, past) for name, partitioner in (others or {}).items()},
        KEPT: Track(tuple(np.exp(measured[past][then]).tolist()), state, len(kept)),
        REBUILT: _rebuilt(windows, plans, measured, today, range(past, number)),
    }
    tested = OutOfSample(
        past,
        windows.starts_us[past:],
        windows.rows[past:],
        tuple(windows.floors[past:].tolist()),
        tracks,
        _next_window(following, today),
    )
    return tested, plans[number][now]


def _plans(windows: Windows, upto: int) -> list[Pins]:
    """The plans from the windows before one: without pins, then by rising number."""
    none = Pins(np.zeros(0, np.int64), np.zeros(0, np.int32))
    past = windows.shares[:, :upto].sum(axis=1)
    hottest = _hottest(past)
    if len(windows.capacities) == 1 or not len(hottest):
        return [none] * (len(PINS) + 1)
    shares, loads = np.ascontiguousarray(windows.shares[:, :upto]), np.ascontiguousarray(windows.loads[:, :upto])
    placed = moved_hottest(hottest, shares, windows.home, loads, windows.capacities, np.array(PINS))
    plans = [none]
    for channels in placed:
        is_moved = channels != windows.home[hottest]
        plans.append(Pins(hottest[is_moved], channels[is_moved]))
    return plans


def _hottest(past: Floats) -> NDArray[np.int64]:
    """Rows of the hottest keys with load, by falling load; at most `MOST_HOT`."""
    most = min(MOST_HOT, len(past))
    if not most:
        return np.zeros(0, np.int64)
    reaching = np.flatnonzero((past >= np.partition(past, -most)[-most]) & (past > 0))
    return np.asarray(reaching[np.argsort(-past[reaching], kind="stable")][:most])


def _measured(windows: Windows, plans: Sequence[Pins], upto: int) -> Floats:
    """Log imbalance of each plan in each window from one on; shape (plans, windows)."""
    found = np.empty((len(plans), len(windows) - upto))
    for at, plan in enumerate(plans):
        loads = windows.loads[:, upto:].copy()
        moved = windows.shares[plan.rows][:, upto:]
        np.subtract.at(loads, windows.home[plan.rows], moved)
        np.add.at(loads, plan.channels, moved)
        found[at] = np.log(windows.imbalances(loads))
    return found


def _chosen_to_keep(measured: Mapping[int, Floats], today: Floats, now: int) -> int:
    """The number of pins, by index, of a plan built now and kept; 0 for none.

    Of several numbers, one may do well by luck; so the next smaller and the next larger have to do well too.
    """
    kept = [(measured[upto][:, : now - upto] - today[upto:now]).mean(axis=1) for upto in range(_FIRST_PLAN, now)]
    is_certain = _certain(np.array(kept), EVIDENCE) & _certain(_gains_next(measured, today, now), EVIDENCE_NEXT)
    is_certain[0] = is_certain[1]  # no pins: neither better nor worse
    around = np.pad(is_certain, 1, mode="edge")
    return _best(np.array(kept), around[:-2] & is_certain & around[2:] & (np.arange(len(is_certain)) > 0))


def _chosen_for_next(measured: Mapping[int, Floats], today: Floats, now: int) -> int:
    """The number of pins, by index, of a plan built now for the next window alone; 0 for none."""
    gains = _gains_next(measured, today, now)
    return _best(gains, _certain(gains, EVIDENCE))


def _gains_next(measured: Mapping[int, Floats], today: Floats, now: int) -> Floats:
    """Log ratio to today's imbalance in the window after each plan; shape (plans, numbers of pins)."""
    return np.array([measured[upto][:, 0] - today[upto] for upto in range(_FIRST_PLAN, now)])


def _certain(gains: Floats, level: float) -> NDArray[np.bool_]:
    """Which numbers of pins lower the imbalance enough at a confidence level."""
    errors = gains.std(axis=0, ddof=1) / np.sqrt(len(gains))
    return np.asarray(gains.mean(axis=0) + student_quantile(level, len(gains) - 1) * errors < -LEAST_GAIN)


def _best(gains: Floats, is_certain: NDArray[np.bool_]) -> int:
    """The fewest pins, by index, whose mean gain is that of the best or a tie; 0 if none is certain."""
    means = gains.mean(axis=0)
    return int(np.argmax(is_certain & (means <= means[is_certain].min(initial=np.inf) + TIE)))


def _rebuilt(
    windows: Windows,
    plans: Mapping[int, Sequence[Pins]],
    measured: Mapping[int, Floats],
    today: Floats,
    tested: range,
) -> Track:
    imbalances, moved, placed, pins = [], [], windows.home, 0
    for at in tested:
        chosen = _chosen_for_next(measured, today, at)
        plan = plans[at][chosen].over(windows.home)
        imbalances.append(float(np.exp(measured[at][chosen, 0])))
        moved.append(_moved(windows, placed, plan, at))
        placed, pins = plan, len(plans[at][chosen])
    return Track(tuple(imbalances), float(np.mean(moved)), pins)


def _hashed(windows: Windows, partitioner: Partitioner, past: int) -> Track:
    placed = partitioner.channels_of(windows.keys)
    loads = loads_of(placed, windows.shares[:, past:], windows.capacities)
    return Track(tuple(windows.imbalances(loads).tolist()), _moved(windows, windows.home, placed, past))


def _moved(windows: Windows, before: Channels, after: Channels, upto: int) -> float:
    """Share of the state of listed keys that moves, with state as in all rows before a window."""
    state = windows.shares[:, :upto].sum(axis=1)
    total = float(state.sum())
    return float(state[before != after].sum()) / total if total else 0.0


def _next_window(plan: Floats, today: Floats) -> tuple[float, float]:
    """Interval of the next imbalance: around the mean, and around the last one if windows resemble those before them.

    The spread is the plan's or today's, whichever is greater, since a plan that fits the past well varies less on it.
    """
    number, mean, last = len(plan), float(plan.mean()), float(plan[-1])
    times = student_quantile((1 + LEVEL) / 2, number - 1)
    own = float(plan.std(ddof=1))
    spread = times * max(own, float(today.std(ddof=1))) * np.sqrt(1 + 1 / number)
    low, high = mean - spread, mean + spread
    step = float(np.sqrt((np.diff(plan) ** 2).mean()))
    if step < np.sqrt(2) * own:  # else the windows are as unlike as in any order
        low, high = min(low, last - times * step), max(high, last + times * step)
    return max(1.0, float(np.exp(low))), float(np.exp(high))
