"""Tables of a repartitioning replay: periods, channels, cases, summary."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from adapt.core.arrays import Floats
from adapt.core.metrics import column_named, columns_named
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


NOTHING = Column("imbalance_today", Kind.RATIO, about="imbalance of doing nothing: today's placement")

PERIOD_COLUMNS = (
    Column("period", Kind.COUNT, about="number from 0; periods without rows are missing"),
    Column("start", Kind.TIME, about="start of the period"),
    Column("end", Kind.TIME, about="end of the period, or its last row if the length is in rows"),
    *columns_named("rows keys channels"),
    *METRIC_COLUMNS,
    column_named("build_s"),
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
    *columns_named("periods empty_periods rows rebuilds rescales mean_imbalance imbalance_max"),
    Column("worst_period", Kind.COUNT, about="the first period with that imbalance"),
    *columns_named("mean_best_possible mean_b mean_m all_keys_moved all_state_moved periods_with_empty_channels"),
    column_named("mean_imbalance_today"),
)

NOTE = (
    "A period is a step of the trigger. Each plan is built from the window before it; the first period uses hashing"
    " alone. Migration is shown in the period that starts with it, and counts the state of that window."
    " best_possible and r_best are the best possible values without splitting keys."
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
        _mean([each.best_possible for each in metrics]),
        _mean([each.b for each in metrics]),
        _mean([each.m for each in metrics]),
        sum(each.keys_moved or 0 for each in metrics),
        sum(each.state_moved or 0.0 for each in metrics),
        sum(each.empty_channels > 0 for each in metrics),
        _mean([outcome.nothing for outcome in outcomes]),
    )
    return Table.from_rows("Summary", SUMMARY_COLUMNS, [row])


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
