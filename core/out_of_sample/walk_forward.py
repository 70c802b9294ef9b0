"""Walk-forward: plans from past windows, measured on the windows that follow.

A plan keeps today's placement for every key that it neither pins nor splits. A rule says how many keys it pins, how
many it splits, and into how large parts; it is recommended only if its plans have lowered the imbalance of windows that
they had not seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.out_of_sample.outcome import LEVEL, TODAY, OutOfSample, Track
from adapt.core.out_of_sample.placing import moved_hottest
from adapt.core.out_of_sample.windows import Windows, loads_of
from adapt.core.partitioning.frontier.today import NO_LIMITS, Budget
from adapt.core.statistics.intervals import student_quantile

PINS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 300)
"""Numbers of pinned keys that are tried where no key is split."""

SPLITS = (1, 2, 3, 5, 8)
"""Numbers of split keys that are tried."""

PARTS = (0.5, 0.25)
"""Largest loads of a split key on a channel that are tried, over the mean load."""

BESIDE = (0, 1, 2, 3, 5, 8, 13, 21)
"""Numbers of pinned keys that are tried where keys are split."""

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
"""Plans whose mean logarithms differ by less are as good; the least state moved wins, then the fewest keys."""

MUCH = 0.95
"""Rebuilding pays if it brings the median imbalance below this part of that of a plan that is kept."""

_FIRST_PLAN = 2
"""Fewest windows that a plan is built from."""


class Way(StrEnum):
    """What a plan does with hot keys."""

    KEPT = "plan kept"
    """Pins them once."""
    REBUILT = "plan rebuilt"
    """Pins them, chosen again before each window."""
    SPLIT = "plan that splits"
    """Splits a few, and pins a few."""


@dataclass(frozen=True, slots=True)
class Moves:
    """Pinned and split keys of a plan over today's placement."""

    rows: NDArray[np.int64]  # pinned keys, by their row in the windows; hottest first
    channels: Channels  # their channels, none of which is today's
    # split keys by row, each with its channels, today's first; their load is in equal parts
    splits: Mapping[int, tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.rows) + len(self.splits)

    def loads(self, windows: Windows, first: int) -> Floats:
        """Channel loads with it.

        Share of each channel in each window from one on; shape (channels, windows).
        """
        loads = windows.loads[:, first:].copy()
        moved = windows.shares[self.rows, first:]
        np.subtract.at(loads, windows.home[self.rows], moved)
        np.add.at(loads, self.channels, moved)
        for row, channels in self.splits.items():
            own = windows.shares[row, first:]
            loads[windows.home[row]] -= own
            loads[list(channels)] += own / len(channels)
        return loads

    def placed(self) -> dict[int, tuple[int, ...]]:
        """The channels of each of its keys."""
        return {**{int(row): (int(to),) for row, to in zip(self.rows, self.channels, strict=True)}, **self.splits}

    def moved(self, before: "Moves", windows: Windows, state: Floats) -> float:
        """State that leaves its channel when this plan follows another.

        A split key has an equal part of its state on each channel; a key that is split begins its parts without any.

        Args:
            state: Share of each key in all state; shape (keys,).
        """
        own, former = self.placed(), before.placed()
        total = 0.0
        for row in own.keys() | former.keys():
            home = (int(windows.home[row]),)
            places = former.get(row, home)
            total += float(state[row]) * len(set(places) - set(own.get(row, home))) / len(places)
        return total


NOTHING = Moves(np.zeros(0, np.int64), np.zeros(0, np.int32), {})
"""Today's placement."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A rule, judged on later windows, and its plan from all windows."""

    way: Way
    moves: Moves
    track: Track
    next_window: tuple[float, float]  # interval of its imbalance in the window that follows, at confidence `LEVEL`
    gain: float  # mean log ratio of its imbalance to today's
    is_certain: bool  # whether its plans have lowered the imbalance of later windows for certain

    @property
    def cost(self) -> tuple[float, int]:
        """State moved in all later windows, then keys; the least wins."""
        times = len(self.track.imbalances) if self.way is Way.REBUILT else 1
        return round(self.track.state_to_move * times, 9), len(self.moves)


@dataclass(frozen=True, slots=True)
class Walk:
    """Plans from the windows before each, measured on later windows."""

    windows: Windows
    state: Floats  # share of each key in all state; shape (keys,)
    past: int  # number of windows before the first tested one
    # by the number of windows that they were built from: without moves, then pins by rising number, then splits
    plans: Mapping[int, Sequence[Moves]]
    measured: Mapping[int, Floats]  # log imbalance of those plans in each window from then on; shape (plans, windows)
    today: Floats  # log imbalance of today's placement; shape (windows,)

    @classmethod
    def over(cls, windows: Windows, limits: Budget = NO_LIMITS, state: Floats | None = None) -> "Walk | None":
        """Walk forward over windows; None with fewer than `FEWEST_PAST` + 1.

        The first half of the windows, and at least `FEWEST_PAST`, are past; plans are tested on the others.

        Args:
            limits: Limits that every plan keeps to.
            state: Share of each key in all state, shape (keys,). Default: as in the load of all windows.
        """
        number = len(windows)
        past = max(FEWEST_PAST, number // 2)
        if number <= past:
            return None
        held = windows.shares.mean(axis=1) if state is None else state
        plans = {upto: plans_of(windows, upto, limits, held) for upto in range(_FIRST_PLAN, number + 1)}
        measured = {upto: _measured(windows, plans[upto], upto) for upto in range(_FIRST_PLAN, number)}
        return cls(windows, held, past, plans, measured, np.log(windows.imbalances(windows.loads)))

    @property
    def tested(self) -> range:
        """The tested windows."""
        return range(self.past, len(self.windows))

    @property
    def track_today(self) -> Track:
        """Today's placement in the tested windows."""
        return Track(tuple(np.exp(self.today[self.past :]).tolist()), 0.0)

    def decided(self, limit: float, ways: Sequence[Way], most_moved: float | None = None) -> Tried | None:
        """`chosen` among the best rule of each way."""
        return self.chosen([one for way in ways if (one := self.best(way, limit)) is not None], limit, most_moved)

    def chosen(self, tried: Sequence[Tried], limit: float, most_moved: float | None = None) -> Tried | None:
        """The rule to follow; None for today's placement.

        That is kept where it is within the limit, or nothing helps for certain. Else, of the rules within the limit in
        the median later window, the one that moves the least state, then the fewest keys; if none is, the one of least
        median, where rebuilding has to be much better than keeping.

        Args:
            limit: Tolerated imbalance, from 1.
            most_moved: Largest share of state that a rebuild may move.
        """
        allowed = limit * (1 + 1e-9)
        if self.track_today.median <= allowed:
            return None
        tried = [
            one
            for one in tried
            if one.is_certain
            and (one.way is not Way.REBUILT or most_moved is None or one.track.state_to_move <= most_moved)
        ]
        within = [one for one in tried if one.track.median <= allowed]
        if within:
            return min(within, key=lambda one: one.cost)
        return min(tried, key=lambda one: one.track.median / (MUCH if one.way is Way.REBUILT else 1.0), default=None)

    def best(self, way: Way, limit: float) -> Tried | None:
        """The best rule of a way; None where no key may move.

        Of rules none of which helps for certain, that of least median.
        """
        tried = self.tried(way)
        certain = [one for one in tried if one.is_certain]
        least = min((one.gain for one in certain), default=0.0)
        within = [one for one in certain if one.track.median <= limit * (1 + 1e-9)]
        tied = within or [one for one in certain if one.gain <= least + TIE]
        if tied:
            return min(tied, key=lambda one: one.cost)
        return min(tried, key=lambda one: one.track.median, default=None)

    def tried(self, way: Way) -> list[Tried]:
        """Every rule of a way that moves some key.

        Source: ours; evidence as in one-sided tests by Student's t.
        """
        now, is_kept = len(self.windows), way is not Way.REBUILT
        gains, is_certain = _gains(self.measured, self.today, now, is_kept=is_kept)
        found, today = [], self.track_today
        for rule, moves in enumerate(self.plans[now]):
            if len(moves) and bool(moves.splits) is (way is Way.SPLIT):
                track = self._track(rule, is_kept=is_kept)
                following = np.array([self.measured[upto][rule, 0] for upto in range(_FIRST_PLAN, now)])
                sure = bool(is_certain[rule]) and 2 * track.helps(today) > 1
                interval = next_window(following, self.today)
                found.append(Tried(way, moves, track, interval, float(gains[rule]), sure))
        return found

    def median(self, moves: Moves) -> float:
        """Median imbalance of the tested windows with a plan from those before."""
        return float(np.median(np.exp(_measured(self.windows, [moves], self.past)[0])))

    def _track(self, rule: int, *, is_kept: bool) -> Track:
        """A rule in the tested windows."""
        now, plans = len(self.windows), [self.plans[at][rule] for at in (*self.tested, len(self.windows))]
        pins, splits = len(plans[-1].rows), len(plans[-1].splits)
        if is_kept:
            state = plans[-1].moved(NOTHING, self.windows, self.state)
            return Track(tuple(np.exp(self.measured[self.past][rule]).tolist()), state, pins, splits)
        found = [float(np.exp(self.measured[at][rule, 0])) for at in self.tested]
        steps = zip([NOTHING, *plans], plans[: now - self.past], strict=False)
        moved = [after.moved(before, self.windows, self.state) for before, after in steps]
        return Track(tuple(found), float(np.mean(moved)), pins, splits)

    def outcome(
        self, tried: Sequence[Tried], chosen: Tried | None, others: Mapping[str, Partitioner] | None = None
    ) -> OutOfSample:
        """What the tested windows show.

        Args:
            chosen: The rule that is followed; None, today's placement.
            others: Further placements to measure, by name.
        """
        windows, past = self.windows, self.past
        tracks = {
            **{name: self._hashed(partitioner) for name, partitioner in (others or {}).items()},
            **{one.way.value: one.track for one in tried},
        }
        interval = next_window(self.today[_FIRST_PLAN:], self.today) if chosen is None else chosen.next_window
        return OutOfSample(
            past,
            windows.starts_us[past:],
            windows.rows[past:],
            tuple(windows.floors[past:].tolist()),
            {TODAY: self.track_today, **tracks},
            interval,
            TODAY if chosen is None else chosen.way.value,
        )

    def _hashed(self, partitioner: Partitioner) -> Track:
        windows = self.windows
        placed = partitioner.channels_of(windows.keys)
        loads = loads_of(placed, windows.shares[:, self.past :], windows.capacities)
        return Track(tuple(windows.imbalances(loads).tolist()), float(self.state[placed != windows.home].sum()))


def plans_of(windows: Windows, upto: int, limits: Budget, state: Floats) -> list[Moves]:
    """The plans from the windows before one.

    Without moves, then by rising number of pins, then those that split keys.
    """
    past = windows.shares[:, :upto].sum(axis=1)
    hottest = _hottest(past)
    if len(windows.capacities) == 1:
        hottest = hottest[:0]
    own, loads = windows.shares[hottest, :upto], windows.loads[:, :upto]
    plans = [NOTHING, *_sized(windows, hottest, own, loads, limits, state, PINS, {})]
    has_name = windows.keys.take(pa.array(hottest)).is_valid().to_numpy(zero_copy_only=False)  # null takes no salt
    for number in SPLITS:
        is_split = has_name & (np.cumsum(has_name) <= number)
        for part in PARTS:
            splits, left = _split(windows, hottest[is_split], own[is_split], loads, part)
            plans += _sized(windows, hottest[~is_split], own[~is_split], left, limits, state, BESIDE, splits)
    return plans


def _sized(
    windows: Windows,
    hottest: NDArray[np.int64],
    shares: Floats,
    loads: Floats,
    limits: Budget,
    state: Floats,
    sizes: Sequence[int],
    splits: Mapping[int, tuple[int, ...]],
) -> list[Moves]:
    """Plans by rising number of pins, with keys split; one beyond the limits is that before it.

    Args:
        shares: Load of each of the hottest keys in each past window.
        loads: Load of each channel in each past window, with the keys split.
    """
    last, plans = NOTHING, []
    allowed = np.inf if limits.max_moved_state is None else limits.max_moved_state * (1 + 1e-9)
    rising = np.array([min(size, max(limits.pins - len(splits), 0)) for size in sizes], np.int64)
    home = windows.home[hottest]
    every = np.arange(len(hottest))
    if not len(every):
        return [Moves(NOTHING.rows, NOTHING.channels, splits) if len(splits) <= limits.pins else NOTHING] * len(sizes)
    for channels in moved_hottest(every, shares, home, loads, windows.capacities, rising):
        is_moved = channels != home
        moves = Moves(hottest[is_moved], channels[is_moved], splits)
        is_kept = len(moves) <= limits.pins and moves.moved(NOTHING, windows, state) <= allowed
        last = moves if is_kept else last
        plans.append(last)
    return plans


def _split(
    windows: Windows, keys: NDArray[np.int64], shares: Floats, loads: Floats, part: float
) -> tuple[dict[int, tuple[int, ...]], Floats]:
    """Keys split over their channel and the least loaded others, hottest first, and the channel loads then.

    Args:
        part: Largest load of a split key on a channel, over the mean load.
    """
    channels, splits, left = len(windows.capacities), {}, loads.copy()
    mean = loads.sum() / channels
    weights = windows.capacities.sum() / (channels * windows.capacities)
    for key, own in zip(keys.tolist(), shares, strict=True):
        home = int(windows.home[key])
        parts = min(channels, max(2, int(np.ceil(own.sum() / (part * mean)))))
        left[home] -= own
        order = np.argsort(left.sum(axis=1) * weights, kind="stable")
        splits[key] = (home, *order[order != home][: parts - 1].tolist())
        left[list(splits[key])] += own / parts
    return splits, left


def _hottest(past: Floats) -> NDArray[np.int64]:
    """Rows of the hottest keys with load, by falling load; at most `MOST_HOT`."""
    most = min(MOST_HOT, len(past))
    if not most:
        return np.zeros(0, np.int64)
    reaching = np.flatnonzero((past >= np.partition(past, -most)[-most]) & (past > 0))
    return np.asarray(reaching[np.argsort(-past[reaching], kind="stable")][:most])


def _measured(windows: Windows, plans: Sequence[Moves], upto: int) -> Floats:
    """Log imbalance of each plan in each window from one on; shape (plans, windows)."""
    return np.log([windows.imbalances(plan.loads(windows, upto)) for plan in plans])


def _gains(
    measured: Mapping[int, Floats], today: Floats, now: int, *, is_kept: bool
) -> tuple[Floats, NDArray[np.bool_]]:
    """Mean log ratio to today's imbalance of each rule, and whether it is below 0 for certain; both of shape (rules,).

    Of several numbers of pins, one may do well by luck; so for a plan that is kept, the next smaller and the next
    larger have to do well too.
    """
    following = np.array([measured[upto][:, 0] - today[upto] for upto in range(_FIRST_PLAN, now)])
    if not is_kept:
        return following.mean(axis=0), _certain(following, EVIDENCE)
    kept = np.array(
        [(measured[upto][:, : now - upto] - today[upto:now]).mean(axis=1) for upto in range(_FIRST_PLAN, now)]
    )
    is_certain = _certain(kept, EVIDENCE) & _certain(following, EVIDENCE_NEXT)
    first, sound = 1, np.zeros_like(is_certain)
    for size in (len(PINS), *[len(BESIDE)] * (len(SPLITS) * len(PARTS))):
        around = np.pad(is_certain[first : first + size], 1, mode="edge")
        sound[first : first + size] = around[:-2] & around[1:-1] & around[2:]
        first += size
    return kept.mean(axis=0), sound


def _certain(gains: Floats, level: float) -> NDArray[np.bool_]:
    """Which rules lower the imbalance enough at a confidence level."""
    errors = gains.std(axis=0, ddof=1) / np.sqrt(len(gains))
    return np.asarray(gains.mean(axis=0) + student_quantile(level, len(gains) - 1) * errors < -LEAST_GAIN)


def next_window(plan: Floats, today: Floats) -> tuple[float, float]:
    """Interval of the next imbalance.

    Around the mean, and around the last one if windows resemble those before them. The spread is the plan's or today's,
    whichever is greater, since a plan that fits the past well varies less on it.
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
