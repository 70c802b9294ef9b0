"""Samples of units over time, and the loads that follow from them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput
from adapt.core.lint.finding import Finding, Severity
from adapt.core.phrases import counted, listed
from adapt.core.spark_stages.answer import StagesAnswer
from adapt.core.unit_loads.loads import UnitLoads, numbered
from adapt.core.values import visible

MOST_WINDOWS = 1000
"""At most this many windows, however often units were sampled."""

_GAP = 3.5
"""A longer interval, in usual ones, is a gap."""

_LATEST_US = 4_102_444_800_000_000
"""The year 2100."""

_MOST_MISSING = 0.5
"""Windows in gaps are dropped, unless they are more than this share."""


class Amount(StrEnum):
    """What the values of samples are."""

    COUNTER = "counter"
    """The total so far, which may start again."""
    RATE = "rate"
    """Load per time."""
    LEVEL = "level"
    """What waits, such as lag."""
    SUM = "sum"
    """Load of the interval that begins then."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A partition, subtask, task or shard."""

    name: str
    topic: str = ""  # empty if not known
    worker: str = ""  # the worker that has it, or its host; empty if not known


@dataclass(frozen=True, slots=True)
class Samples:
    """Values of one metric by unit and time."""

    metric: str
    amount: Amount
    units: tuple[Unit, ...]  # distinct names
    of: NDArray[np.int64]  # index of the unit of each sample; shape (samples,)
    times_us: NDArray[np.int64]  # microseconds since 1970, or numbers of snapshots; shape (samples,)
    values: Floats  # shape (samples,)
    is_timed: bool = True  # whether times are known
    lag: "Samples | None" = None  # lag of the same units, where it is known
    notes: tuple[str, ...] = ()  # guesses and findings, in words
    stages: StagesAnswer | None = None  # of Spark's application, if they are of its tasks

    @classmethod
    def of_series(
        cls,
        metric: str,
        amount: Amount,
        series: Sequence[tuple[Unit, NDArray[np.int64], Floats]],
        *,
        is_timed: bool = True,
        notes: Sequence[str] = (),
    ) -> "Samples":
        """Samples of some series; those of the same unit are put together."""
        if not series:
            raise BadInput(f"{metric} has values of 0 units; at least 2 are needed")
        for unit, times, values in series:
            if len(times) != len(values):
                raise BadInput(f"{unit.name} has {len(times):,} times, but {len(values):,} values; get it again")
        names: dict[str, int] = {}
        units: list[Unit] = []
        for unit, *_ in series:
            if unit.name not in names:
                names[unit.name] = len(units)
                units.append(unit)
        of = np.repeat([names[unit.name] for unit, *_ in series], [len(times) for _, times, _ in series])
        return cls(
            metric,
            amount,
            tuple(units),
            of.astype(np.int64),
            np.concatenate([times for _, times, _ in series]),
            np.concatenate([values for *_, values in series]),
            is_timed,
            notes=tuple(notes),
        )

    def with_lag(self, lag: "Samples") -> "Samples":
        """With the lag of the same units."""
        return replace(self, lag=lag)


@dataclass(frozen=True, slots=True)
class Series:
    """Load of each unit in windows, and findings."""

    samples: Samples
    loads: UnitLoads
    seconds: Floats  # length of each window; 0 if times are not known. Shape (windows,)
    lags: Floats | None  # lag of each unit at the end of each window; shape (units, windows)
    notes: tuple[str, ...]
    findings: tuple[Finding, ...]  # what makes the loads less certain

    def table(self) -> pa.Table:
        """Counts by unit and window, which every command on counts takes."""
        units, windows = self.loads.loads.shape
        columns = {
            "unit": np.repeat(self.loads.units, windows),
            "count": np.rint(self.loads.loads.ravel()).astype(np.int64),
        }
        if self.samples.is_timed:
            columns["time"] = np.tile(np.array(self.loads.starts_us, "datetime64[us]"), units)
        return pa.table(columns)

    @property
    def units(self) -> list[Unit]:
        """The units, in the order of the loads."""
        by_name = {each.name: each for each in self.samples.units}
        return [by_name[name] for name in self.loads.units]


def loads_of(samples: Samples) -> Series:
    """Loads of units in windows of the usual interval between samples.

    Totals so far become differences; where one falls, it started again from 0. Values that are not numbers are
    dropped. Windows in which some unit was not sampled, though it was before and after, are dropped.

    Raises:
        BadInput: If fewer than two units have values, or times lie after 2100.
    """
    found: list[Finding] = []
    samples = _in_seconds(samples, found)
    per_unit = _by_unit(samples, found)
    kept = [index for index, (times, _) in enumerate(per_unit) if len(times)]
    if len(kept) < 2:
        raise BadInput(f"{samples.metric} has values of {counted(len(kept), 'unit')}; at least 2 are needed")
    kept.sort(key=lambda index: numbered(samples.units[index].name))
    per_unit, units = [per_unit[index] for index in kept], [samples.units[index] for index in kept]
    names = tuple(unit.name for unit in units)
    if samples.amount is Amount.COUNTER:
        per_unit = _differences(per_unit, units, found)
    edges, is_series = _edges(samples, per_unit, found)
    loads = np.array([_within(samples.amount, *each, edges) for each in per_unit])
    seconds = np.diff(edges) / 1e6 if samples.is_timed and is_series else np.zeros(len(edges) - 1)
    keep = np.ones(len(edges) - 1, np.bool_)
    if samples.amount in (Amount.COUNTER, Amount.RATE) and is_series:
        keep = _outside_gaps(per_unit, units, edges, found)
    lags = None
    if samples.lag is not None:
        lags = _lags(samples.lag, names, edges)[:, keep]
    made = UnitLoads(names, tuple(int(edge) for edge in edges[:-1][keep]), loads[:, keep])
    return Series(samples, made, seconds[keep], lags, samples.notes, tuple(found))


FINDINGS = {
    "dropped-values": ("The loads of some units are too low.", "Ask for a metric without gaps."),
    "counter-reset": ("What came between the last sample and the start is lost.", ""),
    "no-history": ("Units that were counted for longer look hotter; change is not seen.", "Give several samples."),
    "intervals": ("Short bursts are seen in some units only.", "Ask for one step for all units."),
    "gaps": ("The windows that are left may not be typical.", "Ask for a time without gaps."),
    "come-and-go": ("A unit that moved looks like one that is idle.", "Judge a time in which units stay."),
    "clock-unit": ("Times are taken as milliseconds.", "Export seconds, as Prometheus writes them."),
}
"""Effect and fix of each finding."""


def _finding(name: str, evidence: str) -> Finding:
    return Finding(name, Severity.WARNING, evidence, *FINDINGS[name])


def _in_seconds(samples: Samples, found: list[Finding]) -> Samples:
    """Samples whose times are of this age; milliseconds for seconds are put right."""
    if not samples.is_timed or not len(samples.times_us) or samples.times_us.max() < _LATEST_US:
        return samples
    found.append(_finding("clock-unit", "times lie after the year 2100, as milliseconds that are read as seconds do"))
    if samples.times_us.max() // 1000 >= _LATEST_US:
        raise BadInput(f"{samples.metric} has times after the year 2100; give seconds since 1970")
    lag = None if samples.lag is None else replace(samples.lag, times_us=samples.lag.times_us // 1000)
    return replace(samples, times_us=samples.times_us // 1000, lag=lag)


def _by_unit(samples: Samples, found: list[Finding]) -> list[tuple[NDArray[np.int64], Floats]]:
    """Times and values of each unit by time; of equal times, the last counts."""
    is_good = np.isfinite(samples.values) & ((samples.values >= 0) | (samples.amount is Amount.LEVEL))
    if not is_good.all():
        bad = counted(int((~is_good).sum()), "value")
        found.append(_finding("dropped-values", f"{bad} of {samples.metric} dropped: not a number from 0"))
    order = np.lexsort((samples.times_us, samples.of))
    order = order[is_good[order]]
    of, times, values = samples.of[order], samples.times_us[order], np.maximum(samples.values[order], 0.0)
    if samples.amount is not Amount.SUM:
        is_last = np.append((np.diff(of) > 0) | (np.diff(times) > 0), True)[: len(of)]
        of, times, values = of[is_last], times[is_last], values[is_last]
    ends = np.searchsorted(of, np.arange(len(samples.units) + 1))
    return [(times[first:end], values[first:end]) for first, end in pairwise(ends)]


def _differences(
    per_unit: list[tuple[NDArray[np.int64], Floats]], units: Sequence[Unit], found: list[Finding]
) -> list[tuple[NDArray[np.int64], Floats]]:
    """Totals that never fall, from those that start again."""
    if max(len(times) for times, _ in per_unit) < 2:
        return per_unit
    out, resets = [], []
    for (times, values), unit in zip(per_unit, units, strict=True):
        steps = np.diff(values)
        if (steps < 0).any():
            resets.append(f"{visible(unit.name)} ({counted(int((steps < 0).sum()), 'time')})")
        rises = np.where(steps < 0, values[1:], steps)
        out.append((times, np.concatenate([[0.0], np.cumsum(rises)])[: len(values)]))
    if resets:
        found.append(
            _finding("counter-reset", f"totals started again, and count from 0 then: unit {listed(resets[:3])}")
        )
    return out


def _edges(
    samples: Samples, per_unit: Sequence[tuple[NDArray[np.int64], Floats]], found: list[Finding]
) -> tuple[NDArray[np.int64], bool]:
    """Ends of the windows, and whether units have several samples; else there is one window."""
    first = min(int(times[0]) for times, _ in per_unit)
    last = max(int(times[-1]) for times, _ in per_unit)
    usual = [float(np.median(np.diff(np.unique(times)))) for times, _ in per_unit if len(np.unique(times)) > 1]
    if not usual:
        if samples.amount is Amount.COUNTER:
            found.append(_finding("no-history", "there is one sample of each unit: loads are totals since they began"))
        return np.array([first, last + 1]), False
    step = float(np.median(usual))
    if samples.amount in (Amount.SUM, Amount.LEVEL):
        starts = np.unique(np.concatenate([times for times, _ in per_unit]))
        starts = starts[:: -(-len(starts) // MOST_WINDOWS)]
        return np.append(starts, last + round(step)), True
    if max(usual) > 1.5 * min(usual):
        span = f"{min(usual) / 1e6:g} to {max(usual) / 1e6:g} s"
        found.append(_finding("intervals", f"units are sampled at different intervals, of {span}"))
        step = max(usual)
    count = max(1, min(MOST_WINDOWS, round((last - first) / step)))
    return np.round(np.linspace(first, last, count + 1)).astype(np.int64), True


def _within(amount: Amount, times: NDArray[np.int64], values: Floats, edges: NDArray[np.int64]) -> Floats:
    """Load of a unit in each window."""
    if len(edges) == 2 and len(np.unique(times)) == 1:
        return np.array([values.sum() if amount is Amount.SUM else values[-1]])
    if amount is Amount.COUNTER:
        return np.diff(np.interp(edges, times, values))
    if amount is Amount.RATE:
        total = np.concatenate([[0.0], np.cumsum(values[1:] * np.diff(times) / 1e6)])
        return np.diff(np.interp(edges, times, total))
    window = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, len(edges) - 2)
    sums = np.bincount(window, weights=values, minlength=len(edges) - 1)
    if amount is Amount.SUM:
        return np.asarray(sums)
    counts = np.bincount(window, minlength=len(edges) - 1)
    return np.asarray(sums / np.maximum(counts, 1))


def _outside_gaps(
    per_unit: Sequence[tuple[NDArray[np.int64], Floats]],
    units: Sequence[Unit],
    edges: NDArray[np.int64],
    found: list[Finding],
) -> NDArray[np.bool_]:
    """Windows in which no unit was missed; units that came or went are said."""
    step = float(edges[1] - edges[0])
    missing, late = np.zeros(len(edges) - 1, np.bool_), []
    for (times, _), unit in zip(per_unit, units, strict=True):
        for at in np.flatnonzero(np.diff(times) > _GAP * step):
            missing |= (edges[:-1] < times[at + 1]) & (edges[1:] > times[at])
        if times[0] > edges[0] + _GAP * step or times[-1] < edges[-1] - (_GAP + 1) * step:
            late.append(visible(unit.name))
    if late:
        said = f"{counted(len(late), 'unit')} came or went ({listed(late[:3])}): without samples, their load is 0"
        found.append(_finding("come-and-go", said))
    if not missing.any():
        return ~missing
    if missing.mean() > _MOST_MISSING:
        said = f"samples are missing in {missing.mean():.0%} of the windows: loads there are spread evenly"
        found.append(_finding("gaps", said))
        return np.ones(len(missing), np.bool_)
    said = f"{counted(int(missing.sum()), 'window')} of {len(missing):,} without samples of some unit are dropped"
    found.append(_finding("gaps", said))
    return ~missing


def _lags(lag: Samples, names: Sequence[str], edges: NDArray[np.int64]) -> Floats:
    """Lag of each unit at the end of each window; 0 where it is not known."""
    series = {unit.name: each for unit, each in zip(lag.units, _by_unit(lag, []), strict=True) if len(each[0])}
    out = np.zeros((len(names), len(edges) - 1))
    for row, name in enumerate(names):
        if name in series:
            out[row] = np.interp(edges[1:], *series[name])
    return out
