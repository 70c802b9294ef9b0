"""Tables of a repartitioning replay: periods, channels, cases, summary."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

from adapt.core.arrays import Floats
from adapt.core.partitioning.measures.metrics import METRIC_COLUMNS, Metrics
from adapt.core.table import Cell, Column, Kind, Table


@dataclass(frozen=True, slots=True)
class PeriodOutcome:
    """Measurements of one period."""

    index: int  # number of the period, counting empty ones
    start_us: int  # start, in microseconds since 1970
    end_us: int
    rows: int
    keys: int
    # metrics of the plan on the period's keys; migration is that to this plan, None in the first period
    metrics: Metrics
    loads: Floats  # state, computation and network of each channel, shape (3, channels)
    build_s: float | None  # build time of the plan; None without a clock, and if it was built earlier
    adopts: bool  # whether a plan was adopted at the start of the period
    why: str  # reason of the decision
    # imbalance of doing nothing, with the placement of today; None if that is not measured
    nothing: float | None = None

    @property
    def channels(self) -> int:
        """N."""
        return len(self.loads[0])


_OF_A_PERIOD = {
    "m": "migration factor: state moved at the start of the period / an average channel's state",
    "b(1+m)": "imbalance of the period and migration at its start combined; lower is better",
    "migrated_keys": "keys moved at the start of the period",
}

NOTHING = Column("imbalance_do_nothing", Kind.RATIO, about="imbalance of doing nothing: today's placement")

PERIOD_COLUMNS = (
    Column("period", Kind.COUNT, about="number from 0; periods without rows are missing"),
    Column("start", Kind.TIME, about="start of the period"),
    Column("end", Kind.TIME, about="end of the period, or its last row if the length is in rows"),
    Column("rows", Kind.COUNT),
    Column("keys", Kind.COUNT, about="distinct keys"),
    Column("channels", Kind.COUNT),
    *(replace(column, about=_OF_A_PERIOD.get(column.name, column.about)) for column in METRIC_COLUMNS),
    Column("build_s", Kind.SECONDS, "s", about="build time of the plan"),
    NOTHING,
    Column("adopts", about="yes if a new plan was adopted at the start of the period, from earlier rows alone"),
    Column("why", about="reason of the decision"),
)

CHANNEL_COLUMNS = (
    Column("period", Kind.COUNT),
    Column("channel", Kind.COUNT, about="from 0"),
    Column("state", Kind.NUMBER, about="state load, by the state function of counts"),
    Column("computation", Kind.NUMBER, about="computation load, by the computation function of counts"),
    Column("network", Kind.NUMBER, about="network load, by the network function of counts"),
)

SUMMARY_COLUMNS = (
    Column("periods", Kind.COUNT, about="periods with rows"),
    Column("empty_periods", Kind.COUNT, about="periods without rows"),
    Column("rows", Kind.COUNT),
    Column("adopted", Kind.COUNT, about="plans that the trigger adopted"),
    Column("channel_changes", Kind.COUNT, about="number of rescales"),
    Column("mean_imbalance", Kind.RATIO, about="mean over the periods"),
    Column("worst_imbalance", Kind.RATIO, about="imbalance of the worst period"),
    Column("worst_period", Kind.COUNT, about="the first period with that imbalance"),
    Column(
        "mean_imbalance_floor",
        Kind.RATIO,
        about="best possible imbalance without splitting keys, mean over the periods",
    ),
    Column("mean_b", Kind.RATIO, about="mean over the periods without an empty channel"),
    Column("mean_m", Kind.RATIO, about="migration factor, mean over the plan changes"),
    Column("migrated_keys", Kind.COUNT, about="keys moved, over all plan changes"),
    Column("migrated_state", Kind.NUMBER, about="state moved, in rows unless weighed"),
    Column("periods_with_empty_channels", Kind.COUNT, about="periods with a channel without load"),
    Column("mean_imbalance_do_nothing", Kind.RATIO, about="mean over the periods, with today's placement throughout"),
)

NOTE = (
    "A period is a step of the trigger. Each plan is built from the window before it; the first period uses hashing"
    " alone. Migration is shown in the period that starts with it, and counts the state of that window."
    " imbalance_floor and r_floor are the best possible values without splitting keys."
)


def periods_table(outcomes: Sequence[PeriodOutcome]) -> Table:
    """One row per period, each ratio next to its floors."""
    rows = []
    for outcome in outcomes:
        cells: dict[str, Cell] = {
            "period": outcome.index,
            "start": outcome.start_us,
            "end": outcome.end_us,
            "rows": outcome.rows,
            "keys": outcome.keys,
            "channels": outcome.channels,
            "build_s": outcome.build_s,
            NOTHING.name: outcome.nothing,
            "adopts": "yes" if outcome.adopts else "no",
            "why": outcome.why,
            **outcome.metrics.as_data(),
        }
        rows.append([cells[column.name] for column in PERIOD_COLUMNS])
    return Table.from_rows("Periods", PERIOD_COLUMNS, rows, note=NOTE)


def channels_table(outcomes: Sequence[PeriodOutcome]) -> Table:
    """The loads of each period and channel."""
    rows = (
        (outcome.index, channel, *loads)
        for outcome in outcomes
        for channel, loads in enumerate(outcome.loads.T.tolist())
    )
    return Table.from_rows("Channels by period", CHANNEL_COLUMNS, rows)


def summary_table(outcomes: Sequence[PeriodOutcome]) -> Table:
    """All periods in one row; means skip periods with an undefined value."""
    metrics = [outcome.metrics for outcome in outcomes]
    imbalances = [(outcome.metrics.imbalance, outcome.index) for outcome in outcomes]
    worst = max(((value, -index) for value, index in imbalances if value is not None), default=None)
    rescales = sum(before.channels != after.channels for before, after in pairwise(outcomes))
    row = (
        len(outcomes),
        outcomes[-1].index + 1 - len(outcomes) if outcomes else 0,
        sum(outcome.rows for outcome in outcomes),
        sum(outcome.adopts for outcome in outcomes) - rescales,
        rescales,
        _mean([each.imbalance for each in metrics]),
        None if worst is None else worst[0],
        None if worst is None else -worst[1],
        _mean([each.imbalance_floor for each in metrics]),
        _mean([each.b for each in metrics]),
        _mean([each.m for each in metrics]),
        sum(each.migrated_keys or 0 for each in metrics),
        sum(each.migrated_state or 0.0 for each in metrics),
        sum(each.empty_channels > 0 for each in metrics),
        _mean([outcome.nothing for outcome in outcomes]),
    )
    return Table.from_rows("Summary", SUMMARY_COLUMNS, [row])


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
