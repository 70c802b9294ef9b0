"""The answer from loads of units alone: cause, workers, assignment, lag."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np

from adapt.core.engines.names import Engine, Target
from adapt.core.errors import UsageError
from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.partitioner import Channels
from adapt.core.phrases import counted, listed, percent, rounded
from adapt.core.table import Column, Displayed, Kind, Table
from adapt.core.unit_loads.assigning import Assigned, compared_assignments, floor_of
from adapt.core.unit_loads.cause import (
    PLACEMENTS,
    Cause,
    Judged,
    cause_of,
    equal_keys_as_uneven,
    most_equal_keys,
)
from adapt.core.unit_loads.clients import Client
from adapt.core.unit_loads.lag import LagOfUnits
from adapt.core.unit_loads.loads import HotUnit, UnitLoads, fair_shares, few_windows, hot_table, hot_units, takes_turns
from adapt.core.values import duration, visible

_KAFKA = (Client.RANGE, Client.ROUND_ROBIN, Client.STICKY, Client.COOPERATIVE_STICKY)
_CLIENTS = {Target.KAFKA: _KAFKA, Target.FLINK: (Client.FLINK,)}

_MOST_NAMED = 3
"""A sentence names at most this many units."""

_MOST_SURE = 0.99
_LEAST_SHARE = 1e-4
"""Share of a key below which the workers that it allows are not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What is known apart from the loads; everything is optional."""

    engine: Engine | None = None  # what places the keys on units
    keys: int | None = None  # number of keys, within a factor of three
    max_parallelism: int | None = None  # Flink's number of key groups, where units are subtasks
    workers: int | None = None  # workers that the units are assigned to; None: no assignment
    today: Channels | None = None  # worker of each unit now, shape (units,)
    topics: Sequence[str] | None = None  # topic of each unit, shape (units,); None: one topic
    lag: LagOfUnits | None = None  # lag of the units, in their order
    max_imbalance: float = 1.2  # tolerated load of a unit or worker over the mean
    drain_within_s: float = 3600.0  # time in which lag is to drain

    @property
    def clients(self) -> tuple[Client, ...]:
        """Clients to compare: those of the engine, or all but Flink's."""
        if self.engine is None:
            return (*_KAFKA, Client.KCL)
        if self.engine.family == Engine.KINESIS:
            return (Client.KCL,)
        flink = self.engine is Engine.FLINK_SQL
        return _CLIENTS.get(Target.FLINK if flink else self.engine.target, ())


@dataclass(frozen=True, slots=True, repr=False)
class UnitAnswer(Displayed):
    """What loads of units say of a stream's skew."""

    loads: UnitLoads
    setup: Setup
    judged: Judged | None  # why the busiest unit is above the mean; None if all units have the same load
    hot: tuple[HotUnit, ...]  # units above the limit, busiest first
    in_turns: bool  # whether different units are the hot one in turn
    as_uneven: float | None  # share of placements of that many equal keys as uneven; None if their number is not known
    equal_keys: int  # most equal keys that chance places as unevenly in 5 % of placements
    assigned: tuple[Assigned, ...] = ()  # today's assignment, each client's, the best
    floor: float = 1.0  # best possible imbalance of whole units on the workers
    workers_to_drain: int | None = None  # fewest workers that drain the lag in time

    @property
    def busiest(self) -> str:
        """Name of the busiest unit."""
        return visible(self.loads.units[self.loads.busiest])

    @property
    def is_balanced(self) -> bool:
        """Whether no unit is above the limit."""
        return self.loads.imbalance <= self.setup.max_imbalance

    @property
    def useful_workers(self) -> float:
        """Workers that can be busy while units stay whole."""
        return float(1 / self.loads.shares.max())

    @property
    def headline(self) -> str:
        """The action, and why."""
        judged = self.judged
        if judged is None or (self.is_balanced and not self.in_turns):
            return (
                f"Nothing to do ({counted(len(self.loads.units), 'unit')}): the busiest, {self.busiest}, has"
                f" {self.loads.imbalance:.3f} times the mean load, within the limit of {self.setup.max_imbalance:g}"
            )
        if self.in_turns:
            return "Rebalance over time, or count keys by window: different units are hot in turn"
        return {
            Cause.HOT: f"Count the keys of unit {self.busiest}, then split or pin the hot one: one key is hot",
            Cause.LUCK: f"Use more units or another placement: unit {self.busiest} is busy by luck of the hash, no key"
            " is hot",
            Cause.SEVERAL: f"Count the keys of unit {self.busiest}, then pin or split the hot ones: one or several keys"
            " are hot",
            Cause.UNKNOWN: f"Count the keys of unit {self.busiest}: loads alone cannot tell a hot key from luck of the"
            " hash",
        }[judged.cause]

    @property
    def sentences(self) -> list[str]:
        """Evidence, confidence, workers, assignment and lag in words."""
        return [
            self._evidence,
            *([] if self.judged is None else [sure(self.judged)]),
            *self._over_time,
            self._workers,
            *self._assignment,
            *([] if self.setup.lag is None else self._lag(self.setup.lag)),
        ]

    @property
    def _evidence(self) -> str:
        share, mean = float(self.loads.shares.max()), 1 / len(self.loads.units)
        found = f"Unit {self.busiest} carries {percent(share)} against a mean of {percent(mean)}"
        if self.as_uneven is not None:
            often = f"{percent(self.as_uneven)} were" if self.as_uneven else "none was"
            return f"{found}; of {PLACEMENTS:,} placements of {self.setup.keys:,} equal keys, {often} as uneven."
        if self.equal_keys < 2:
            return f"{found}; no number of equal keys is placed as unevenly in 5 % of random placements."
        return (
            f"{found}; in 5 % of random placements equal keys are as uneven if they are no more than"
            f" about {rounded(self.equal_keys, 2)}."
        )

    @property
    def _over_time(self) -> list[str]:
        if len(self.loads.starts_us) < 3 or (self.is_balanced and not self.in_turns):
            return []
        if self.in_turns:
            return ["No unit is the busiest in half of the windows: a fixed assignment balances only some of them."]
        windows = f"{percent(self.hot[0].hot_windows, 2)} of {counted(len(self.loads.starts_us), 'window')}"
        varies = few_windows(self.loads.loads).std(axis=1)
        own, other = varies[self.loads.busiest], np.median(np.delete(varies, self.loads.busiest))
        others = [visible(each.unit) for each in self.hot[1 : 1 + _MOST_NAMED]]
        more = f" Also hot: {listed(others)}." if others else ""
        return [
            f"It is above {self.setup.max_imbalance:g} times the mean in {windows}; its share has a standard deviation"
            f" of {percent(float(own), 2)} of all load, that of the median other unit {percent(float(other), 2)}.{more}"
        ]

    @property
    def _workers(self) -> str:
        whole = f"At most {self.useful_workers:.1f} workers are useful while unit {self.busiest} stays whole"
        if self.judged is None:
            return f"{whole}."
        most = f" to {1 / self.judged.low:,.1f}" if self.judged.low > _LEAST_SHARE else " or more"
        return f"{whole}; with more and smaller units, {1 / self.judged.high:,.1f}{most}."

    @property
    def _assignment(self) -> list[str]:
        if not self.assigned:
            return []
        best, others = self.assigned[-1], self.assigned[:-1]
        by_value: dict[str, list[str]] = {}
        for each in others:
            by_value.setdefault(f"{each.imbalance:.3f}", []).append(each.name)
        each_by = "; ".join(f"{value} by {listed(names)}" for value, names in by_value.items())
        told = f" It is {each_by}." if each_by else ""
        moved = "" if not best.moved else f"; {percent(best.moved, 2)} of the units move"
        workers = self.setup.workers or 1
        idle = max(workers - len(self.loads.units), 0)
        spare = f" {counted(idle, 'worker')} can have no unit." if idle else ""
        return [
            f"Over {counted(workers, 'worker')}, the best assignment of whole units has imbalance"
            f" {best.imbalance:.3f} (best possible {self.floor:.3f}){moved}.{told}{spare}"
        ]

    def _lag(self, lag: LagOfUnits) -> list[str]:
        if not lag.lag.any():
            return ["No unit has lag."]
        drains, within = lag.drains_s, duration(self.setup.drain_within_s)
        last = visible(self.loads.units[int(np.argmax(drains))])
        if isfinite(float(drains.max())):
            said = f"At today's rates all lag is drained in {duration(float(drains.max()))}; unit {last} is the last."
        else:
            never = [visible(self.loads.units[at]) for at in np.flatnonzero(~np.isfinite(drains))]
            rest = len(never) - _MOST_NAMED
            names = [*never[:_MOST_NAMED], *([f"{rest:,} more"] if rest > 0 else [])]
            said = f"At today's rates the lag of {listed(names)} never drains."
        if self.workers_to_drain is not None:
            return [
                said,
                f"To drain in {within}, {counted(self.workers_to_drain, 'worker')} as fast as now are enough.",
            ]
        needed, capacity = float(lag.needed(self.setup.drain_within_s).max()), lag.capacity(self.setup.today) or 0.0
        fastest = "the fastest unit with lag is consumed at" if self.setup.today is None else "a worker consumes"
        return [
            said,
            f"To drain in {within}, one unit alone needs {needed:,.4g} rows/s and {fastest} {capacity:,.4g}: more"
            " workers do not help, faster ones or more units do.",
        ]

    @property
    def said(self) -> list[str]:
        """The answer in words."""
        return [self.headline, *self.sentences]

    def displayed(self) -> list[Table]:
        """Hot units, assignments, lag."""
        lag = [] if self.setup.lag is None else [self.setup.lag.table(self.loads.units, self.setup.drain_within_s)]
        assigned = [_assigned_table(self.assigned)] if self.assigned else []
        return [hot_table(self.hot), *assigned, *lag]

    def as_data(self) -> dict[str, Any]:
        """JSON data."""
        judged = self.judged
        return {
            "headline": self.headline,
            "sentences": self.sentences,
            "cause": None if judged is None else judged.cause.name.lower(),
            "probability": None if judged is None else judged.probability,
            "hottest_key": None if judged is None else {"low": judged.low, "high": judged.high},
            "busiest": {"unit": self.loads.units[self.loads.busiest], "imbalance": self.loads.imbalance},
            "useful_workers": self.useful_workers,
            "hot_units": [asdict(each) for each in self.hot],
            "assignments": [asdict(each) | {"owners": each.owners.tolist()} for each in self.assigned],
            "workers_to_drain": self.workers_to_drain,
        }


def answer_from(loads: UnitLoads, setup: Setup | None = None) -> UnitAnswer:
    """What loads of units say of skew, and what to do.

    Args:
        loads: Load of each unit in each window.
        setup: What else is known.

    Raises:
        UsageError: a number or an array of the setup does not fit the units.
    """
    given, units = setup or Setup(), len(loads.units)
    _check(given, units)
    fair = fair_shares(units, given.engine, given.max_parallelism)
    assigned: list[Assigned] = []
    if given.workers is not None:
        topics = given.topics or ["topic"] * units
        clients = [each for each in given.clients if each is not Client.FLINK or given.workers <= units]
        assigned = compared_assignments(loads.loads, given.workers, clients, topics, given.today)
    return UnitAnswer(
        loads,
        given,
        cause_of(loads.loads, fair, given.keys),
        tuple(hot_units(loads, given.max_imbalance)),
        takes_turns(loads, given.max_imbalance),
        None if given.keys is None else equal_keys_as_uneven(float(loads.shares.max()), fair, given.keys),
        most_equal_keys(float(loads.shares.max()), fair),
        tuple(assigned),
        1.0 if given.workers is None else floor_of(loads.loads, given.workers),
        None if given.lag is None else given.lag.workers_needed(given.drain_within_s, given.today),
    )


def _check(setup: Setup, units: int) -> None:
    if setup.keys is not None and setup.keys < 1:
        raise UsageError(f"the number of keys must be at least 1 (got {setup.keys})")
    if not setup.drain_within_s > 0:
        raise UsageError(f"the time to drain must be above 0 seconds (got {setup.drain_within_s:g})")
    if setup.workers is not None:
        check_channels(setup.workers, 1 << 20)
    lag = None if setup.lag is None else setup.lag.lag
    for name, values in (("today", setup.today), ("topics", setup.topics), ("lag", lag)):
        if values is not None and len(values) != units:
            raise UsageError(f"{name} must have one value for each of the {units} units (got {len(values)})")
    if setup.today is not None and not (
        (setup.today >= 0).all() and (setup.workers is None or (setup.today < setup.workers).all())
    ):
        raise UsageError(f"workers of today are numbers from 0, below the {setup.workers} workers")


def sure(judged: Judged) -> str:
    """The probability of the cause and the interval in words."""
    interval = f"The hottest key has {percent(judged.low, 2)} to {percent(judged.high, 2)} of all load."
    if judged.probability is None:
        return (
            "In populations with such loads one key makes at least half of the excess in"
            f" {percent(judged.hot, 2)}, none makes a tenth of it in {percent(judged.luck, 2)}. {interval}"
        )
    said = {
        Cause.HOT: "one key makes at least half of the excess",
        Cause.LUCK: "no key makes half of the excess; none makes a tenth of it in"
        f" {percent(judged.luck, 2)} of populations with such loads",
        Cause.SEVERAL: "its hottest key makes at least a tenth of the excess, and at least half in"
        f" {percent(judged.hot, 2)} of populations with such loads",
    }[judged.cause]
    probable = f"more than {percent(_MOST_SURE)}" if judged.probability > _MOST_SURE else percent(judged.probability, 2)
    return f"With a probability of {probable}, {said}. {interval}"


def _assigned_table(assigned: Sequence[Assigned]) -> Table:
    columns = (
        Column("assignment"),
        Column("imbalance", Kind.RATIO, about="busiest worker over the mean, of all load"),
        Column("median", Kind.RATIO, about="the same of the median window"),
        Column("worst", Kind.RATIO, about="the same of the worst window"),
        Column("moved", Kind.SHARE, about="units that change their worker"),
    )
    rows = [(each.name, each.imbalance, each.median, each.worst, each.moved) for each in assigned]
    return Table.from_rows("Assignments of units to workers", columns, rows)
