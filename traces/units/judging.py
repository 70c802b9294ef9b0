"""What numbers by unit say of skew: the verdict on metrics."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adapt.core.engines.names import Engine
from adapt.core.errors import BadInput
from adapt.core.keys.partitioner import Channels
from adapt.core.phrases import counted, percent
from adapt.core.spark_stages.answer import StagesAnswer
from adapt.core.table import Displayed, Table
from adapt.core.unit_loads.answer import Setup, UnitAnswer, answer_from, sure
from adapt.core.unit_loads.cause import Cause
from adapt.core.unit_loads.lag import LagOfUnits
from adapt.core.unit_loads.loads import HotUnit, hot_table, hot_units
from adapt.core.values import duration, visible
from adapt.core.verdict.first_screen import Status
from adapt.traces.units.samples import Amount, Samples, Series, loads_of

SCHEMA = "adapt.units/1"

_SINCE_LAG = 12
"""Windows over which lag is a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of numbers by unit."""

    engine: Engine | None = None
    keys: int | None = None  # number of keys, if known
    max_parallelism: int | None = None
    workers: int | None = None
    max_imbalance: float = 1.2


@dataclass(frozen=True, slots=True, repr=False)
class UnitsVerdict(Displayed):
    """The verdict on numbers by unit."""

    name: str
    series: Series
    answer: UnitAnswer | None  # None if only lag is known, which is no load
    hot: tuple[HotUnit, ...]
    next: str  # the command that finds what cannot be known from units

    @property
    def stages(self) -> StagesAnswer | None:
        """The stages of Spark; None of other sources."""
        return self.series.samples.stages

    @property
    def headline(self) -> str:
        """The action, and why."""
        if self.stages is not None:
            return self.stages.headline
        if self.answer is not None:
            return self.answer.headline
        behind = int((self.series.loads.loads[:, -1] > 0).sum())
        return (
            f"{behind:,} of {counted(len(self.series.loads.units), 'unit')} have lag: at most {behind:,} consumers"
            " help. Lag is not load: give end offsets too, to know whether a key is hot"
        )

    @property
    def sentences(self) -> list[str]:
        """Evidence in words, with what was found in the samples."""
        if self.stages is not None:
            return [*self.stages.sentences, *(self._keys if self.stages.is_skewed else [])]
        said = _of_lag(self.series) if self.answer is None else self.answer.sentences
        if self.answer is not None and self.answer.setup.lag is None and self.series.lags is not None:
            said = [*said, *_lag_now(self.series)]
        return [*said, *(f"Less certain: {each.evidence}." for each in self.series.findings)]

    @property
    def _keys(self) -> list[str]:
        """Whether one key is hot, in words."""
        return [] if self.answer is None or self.answer.judged is None else [sure(self.answer.judged)]

    @property
    def code(self) -> str:
        """Code to paste; empty without any."""
        return "" if self.stages is None else self.stages.code

    @property
    def status(self) -> Status:
        """What is asked for, in a word."""
        if self.stages is not None:
            return self.stages.status
        if self.answer is not None and self.answer.is_balanced and not self.answer.in_turns:
            return Status.FINE
        judged = None if self.answer is None else self.answer.judged
        return Status.UNCERTAIN if judged is None or judged.cause is Cause.UNKNOWN else Status.ACT

    @property
    def said(self) -> list[str]:
        """The verdict in words."""
        return [self.headline, *self.sentences]

    def displayed(self, *, every: bool = False) -> list[Table]:
        """Stages, or hot units, assignments and lag.

        Args:
            every: Whether all stages are listed.
        """
        if self.stages is not None:
            return [self.stages.table(every=every)]
        tables = [hot_table(self.hot)] if self.answer is None else self.answer.displayed()
        return [replace(tables[0], note=f"Next: {self.next}"), *tables[1:]] if self.next else tables

    def as_data(self) -> dict[str, Any]:
        """One JSON document."""
        loads = self.series.loads
        return {
            "schema": SCHEMA,
            "status": self.status.value,
            "metric": self.series.samples.metric,
            "values": self.series.samples.amount.value,
            "units": list(loads.units),
            "windows": len(loads.starts_us),
            "shares": loads.shares.tolist(),
            "notes": list(self.series.notes),
            "findings": [each.evidence for each in self.series.findings],
            "headline": self.headline,
            "sentences": self.sentences,
            "answer": None if self.answer is None else self.answer.as_data(),
            "next": self.next,
            "stages": None if self.stages is None else self.stages.as_data(),
        }


def judge_units(name: str, samples: Samples, asked: Asked) -> UnitsVerdict:
    """The verdict on samples of units.

    Args:
        name: Of the source, for errors.

    Raises:
        BadInput: If the samples have no load.
    """
    try:
        series = loads_of(samples)
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from error
    hot = _hot(series, asked.max_imbalance)
    if samples.amount is Amount.LEVEL:
        return UnitsVerdict(name, series, None, hot, "")
    units = series.units
    today, workers = _today(units, asked.workers)
    topics = [unit.topic for unit in units]
    setup = Setup(
        engine=asked.engine,
        keys=asked.keys,
        max_parallelism=asked.max_parallelism,
        workers=workers,
        today=today,
        topics=topics if all(topics) else None,
        lag=_lag(series),
        max_imbalance=asked.max_imbalance,
    )
    answer = replace(answer_from(series.loads, setup), hot=hot)
    return UnitsVerdict(name, series, answer, hot, _next(answer, units))


def _hot(series: Series, limit: float) -> tuple[HotUnit, ...]:
    """Units above the limit; since when, if times are known."""
    found = hot_units(series.loads, limit)
    return tuple(found if series.samples.is_timed else [replace(each, since_us=None) for each in found])


def _today(units: Sequence[Any], workers: int | None) -> tuple[Channels | None, int | None]:
    """Worker of each unit now, if all are known, and the number of workers."""
    names = list(dict.fromkeys(unit.worker for unit in units))
    if not all(names) or len(names) < 2 or len(names) > (workers or len(names)):
        return None, workers
    return np.array([names.index(unit.worker) for unit in units], np.int32), workers or len(names)


def _lag(series: Series) -> LagOfUnits | None:
    """Lag now, with the rates of the last windows; None without times."""
    if series.lags is None or not np.isfinite(series.lags).all() or not series.seconds.all() or len(series.seconds) < 2:
        return None
    last = slice(-_SINCE_LAG, None)
    seconds = series.seconds[last]
    arrivals = series.loads.loads[:, last].sum(axis=1) / seconds.sum()
    return LagOfUnits.from_series(np.cumsum(seconds).tolist(), series.lags[:, last], arrivals)


def _lag_now(series: Series) -> list[str]:
    """Lag as it is, where rates are not known."""
    now = np.nan_to_num(series.lags[:, -1]) if series.lags is not None else np.zeros(0)
    behind, units = int((now > 0).sum()), series.loads.units
    if not behind:
        return ["No unit has lag."]
    most = int(now.argmax())
    return [
        f"Lag is {now.sum():,.0f} rows, {percent(float(now[most] / now.sum()))} of it in unit {visible(units[most])};"
        f" {behind:,} of {counted(len(units), 'unit')} have lag: at most {behind:,} consumers help."
    ]


def _of_lag(series: Series) -> list[str]:
    """Which units lag, and how that changes."""
    loads = series.loads
    busiest, shares = loads.busiest, loads.shares
    said = [f"Unit {visible(loads.units[busiest])} has {percent(float(shares[busiest]))} of all lag."]
    if len(loads.starts_us) > 2 and series.seconds.all():
        last = loads.loads[:, -_SINCE_LAG:].sum(axis=0)
        slope = float((last[-1] - last[0]) / series.seconds[-_SINCE_LAG:][1:].sum())
        if slope < 0:
            said.append(f"All lag, {last[-1]:,.0f} rows, drains in {duration(last[-1] / -slope)} at this rate.")
        else:
            said.append(f"All lag, {last[-1]:,.0f} rows, does not fall ({slope:+,.1f} rows/s).")
    return said


def _next(answer: UnitAnswer, units: Sequence[Any]) -> str:
    """The command that counts the keys of the busiest unit."""
    topics = {unit.topic for unit in units if unit.topic}
    if answer.is_balanced:
        return ""
    topic = next(iter(topics)) if len(topics) == 1 else "TOPIC"
    engine = answer.setup.engine
    if engine is not None and str(engine).startswith(("spark", "kinesis")):
        return f"adapt verdict SOURCE --key KEY --engine {engine} --channels {len(units)}"
    return f"adapt ingest kafka://HOST:PORT/{topic} --key key --sample 10% -o {topic}.trace"
