"""Walk-forward: plans from past windows, measured on the windows that follow.

A plan keeps today's placement for every key that it does not pin. How many keys it pins is itself decided by earlier
windows: only as many as have lowered the imbalance of windows that the plan had not seen.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.out_of_sample.outcome import KEPT, LEVEL, REBUILT, TODAY, OutOfSample, Track
from adapt.core.out_of_sample.placing import moved_hottest
from adapt.core.out_of_sample.windows import Windows, loads_of
from adapt.core.partitioning.frontier.today import NO_LIMITS, Budget
from adapt.core.statistics.intervals import student_quantile

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
    """Pinned keys of a plan over today's placement."""

    rows: NDArray[np.int64]  # pinned keys, by their row in the windows; hottest first
    channels: Channels  # their channels, none of which is today's

    def __len__(self) -> int:
        return len(self.rows)

    def over(self, home: Channels) -> Channels:
        """Channel of every key, shape (keys,)."""
        placed = home.copy()
        placed[self.rows] = self.channels
        return placed


@dataclass(frozen=True, slots=True)
class Walk:
    """Plans from the windows before each, measured on later windows."""

    windows: Windows
    past: int  # number of windows before the first tested one
    # by the number of windows that they were built from: without pins, then by rising number
    plans: Mapping[int, Sequence[Pins]]
    measured: Mapping[int, Floats]  # log imbalance of those plans in each window from then on; shape (plans, windows)
    today: Floats  # log imbalance of today's placement; shape (windows,)

    @classmethod
    def over(cls, windows: Windows, limits: Budget = NO_LIMITS) -> "Walk | None":
        """Walk forward over windows; None with fewer than `FEWEST_PAST` + 1.

        The first half of the windows, and at least `FEWEST_PAST`, are past; plans are tested on the others.

        Args:
            limits: Limits that every plan keeps to.
        """
        number = len(windows)
        past = max(FEWEST_PAST, number // 2)
        if number <= past:
            return None
        plans = {upto: _plans(windows, upto, limits) for upto in range(_FIRST_PLAN, number + 1)}
        measured = {upto: _measured(windows, plans[upto], upto) for upto in range(_FIRST_PLAN, number)}
        return cls(windows, past, plans, measured, np.log(windows.imbalances(windows.loads)))

    @property
    def tested(self) -> range:
        """The tested windows."""
        return range(self.past, len(self.windows))

    def chosen(self, others: Mapping[str, Partitioner] | None = None) -> tuple[OutOfSample, Pins]:
        """What was measured, and the plan built from all windows.

        Args:
            others: Further placements to measure, by name.

        Source: ours; evidence as in one-sided tests by Student's t.
        """
        then, now = (_chosen_to_keep(self.measured, self.today, upto) for upto in (self.past, len(self.windows)))
        rebuilt = [self.plans[at][_chosen_for_next(self.measured, self.today, at)] for at in self.tested]
        following = np.array([self.measured[upto][now, 0] for upto in range(_FIRST_PLAN, len(self.windows))])
        return self._outcome(self.plans[self.past][then], rebuilt, following, others), self.plans[len(self.windows)][
            now
        ]

    def followed(self, plan_of: Callable[[int], Pins], others: Mapping[str, Partitioner] | None = None) -> OutOfSample:
        """What a rule showed: windows before to plan."""
        plans = {upto: plan_of(upto) for upto in range(_FIRST_PLAN, len(self.windows))}
        following = np.array([_measured(self.windows, [plan], upto)[0, 0] for upto, plan in plans.items()])
        return self._outcome(plans[self.past], [plans[at] for at in self.tested], following, others)

    def median(self, plan_of: Callable[[int], Pins]) -> float:
        """Median imbalance of the tested windows under such a rule."""
        return float(np.median([np.exp(_measured(self.windows, [plan_of(at)], at)[0, 0]) for at in self.tested]))

    def _outcome(
        self, kept: Pins, rebuilt: Sequence[Pins], following: Floats, others: Mapping[str, Partitioner] | None
    ) -> OutOfSample:
        """Placements in the tested windows.

        Args:
            rebuilt: The plan for each of them.
            following: Log imbalance of the plan for the next window in the window after each that it is built from.
        """
        windows, past = self.windows, self.past
        state = _moved(windows, windows.home, kept.over(windows.home), past)
        tracks = {
            TODAY: Track(tuple(np.exp(self.today[past:]).tolist()), 0.0),
            **{name: _hashed(windows, partitioner, past) for name, partitioner in (others or {}).items()},
            KEPT: Track(tuple(np.exp(_measured(windows, [kept], past)[0]).tolist()), state, len(kept)),
            REBUILT: self._rebuilt(rebuilt),
        }
        floors = tuple(windows.floors[past:].tolist())
        return OutOfSample(
            past, windows.starts_us[past:], windows.rows[past:], floors, tracks, _next_window(following, self.today)
        )

    def _rebuilt(self, plans: Sequence[Pins]) -> Track:
        imbalances, moved, placed = [], [], self.windows.home
        for at, pins in zip(self.tested, plans, strict=True):
            plan = pins.over(self.windows.home)
            imbalances.append(float(np.exp(_measured(self.windows, [pins], at)[0, 0])))
            moved.append(_moved(self.windows, placed, plan, at))
            placed = plan
        return Track(tuple(imbalances), float(np.mean(moved)), len(plans[-1]))


def walk_forward(windows: Windows, others: Mapping[str, Partitioner] | None = None) -> tuple[OutOfSample, Pins] | None:
    """`Walk.chosen` over windows; None with fewer than `FEWEST_PAST` + 1."""
    walk = Walk.over(windows)
    return None if walk is None else walk.chosen(others)


def _plans(windows: Windows, upto: int, limits: Budget) -> list[Pins]:
    """The plans from the windows before one: without pins, then by rising number."""
    none = Pins(np.zeros(0, np.int64), np.zeros(0, np.int32))
    past = windows.shares[:, :upto].sum(axis=1)
    hottest = _hottest(past)
    sizes = sorted({int(min(size, limits.pins)) for size in PINS})
    if len(windows.capacities) == 1 or not len(hottest) or not sizes[0]:
        return [none] * (len(sizes) + 1)
    shares, loads = np.ascontiguousarray(windows.shares[:, :upto]), np.ascontiguousarray(windows.loads[:, :upto])
    placed = moved_hottest(hottest, shares, windows.home, loads, windows.capacities, np.array(sizes))
    plans, most = [none], past.sum() * (np.inf if limits.max_moved_state is None else limits.max_moved_state)
    for channels in placed:
        rows = np.flatnonzero(channels != windows.home[hottest])
        is_kept = past[hottest[rows]].sum() <= most
        plans.append(Pins(hottest[rows], channels[rows]) if is_kept else plans[-1])
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
