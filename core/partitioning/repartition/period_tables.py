"""What a replay by periods measured, as tables: its periods, their channels, and the whole in one row."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

from adapt.core.arrays import Floats
from adapt.core.partitioning.measures.metrics import METRIC_COLUMNS, Metrics
from adapt.core.table import Cell, Column, Kind, Table


@dataclass(frozen=True, slots=True)
class PeriodOutcome:
    """One period under the plan in force.

    Attributes:
        index: Its place among all periods, empty ones included.
        start_us: When it begins, in microseconds since 1970.
        metrics: Of the plan on its keys; migration is the bill of putting the plan in force, None in the first period.
        loads: State, computation and network of each channel, shape (3, channels).
        build_s: How long building the plan took, without measuring; None without a clock, and in the first period.
    """

    index: int
    start_us: int
    end_us: int
    rows: int
    keys: int
    metrics: Metrics
    loads: Floats
    build_s: float | None

    @property
    def channels(self) -> int:
        """N."""
        return len(self.loads[0])


_OF_A_PERIOD = {
    "m": "state moved at the start of the period over that of an average channel",
    "b(1+m)": "balance of the period, and migration at its start, together; lower is better",
    "migrated_keys": "keys of the period before whose channel changed at the start of this one",
}

PERIOD_COLUMNS = (
    Column("period", Kind.COUNT, about="number of the period from 0; one that is missing had no rows"),
    Column("start", Kind.TIME, about="when it begins"),
    Column("end", Kind.TIME, about="when it ends; a period of so many rows, at its last row"),
    Column("rows", Kind.COUNT),
    Column("keys", Kind.COUNT, about="distinct keys"),
    Column("channels", Kind.COUNT),
    *(replace(column, about=_OF_A_PERIOD.get(column.name, column.about)) for column in METRIC_COLUMNS),
    Column("build_s", Kind.SECONDS, "s", about="time to build the plan of the period"),
)

CHANNEL_COLUMNS = (
    Column("period", Kind.COUNT),
    Column("channel", Kind.COUNT, about="from 0"),
    Column("state", Kind.NUMBER, about="load, in units of the state function of a count"),
    Column("computation", Kind.NUMBER, about="load, in units of the computation function of a count"),
    Column("network", Kind.NUMBER, about="load, in units of the network function of a count"),
)

SUMMARY_COLUMNS = (
    Column("periods", Kind.COUNT, about="periods with rows"),
    Column("empty_periods", Kind.COUNT, about="periods without rows in between"),
    Column("rows", Kind.COUNT),
    Column("channel_changes", Kind.COUNT, about="periods with another number of channels than the one before"),
    Column("mean_imbalance", Kind.RATIO, about="mean over the periods"),
    Column("worst_imbalance", Kind.RATIO, about="of the worst period"),
    Column("worst_period", Kind.COUNT, about="the first period with that imbalance"),
    Column(
        "mean_imbalance_floor", Kind.RATIO, about="mean over the periods of the least that any placement could reach"
    ),
    Column("mean_b", Kind.RATIO, about="mean over the periods in which no channel is empty"),
    Column("mean_m", Kind.RATIO, about="mean over the changes of plan"),
    Column("migrated_keys", Kind.COUNT, about="keys whose channel changed, over all changes of plan"),
    Column("migrated_state", Kind.NUMBER, about="their state, in units of the state function of a count"),
    Column("periods_with_empty_channels", Kind.COUNT, about="periods in which a channel had no load"),
)

NOTE = (
    "Each plan was built from the period before it; the first period runs on hashing alone. Migration stands in the"
    " period at whose start it took effect, and is charged with the state of the period before. No placement of whole"
    " keys has less imbalance than imbalance_floor or a lower r_n than r_floor."
)


def periods_table(outcomes: Sequence[PeriodOutcome]) -> Table:
    """One row a period, each ratio beside its floors."""
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
            **outcome.metrics.as_data(),
        }
        rows.append([cells[column.name] for column in PERIOD_COLUMNS])
    return Table.from_rows("Periods", PERIOD_COLUMNS, rows, note=NOTE)


def channels_table(outcomes: Sequence[PeriodOutcome]) -> Table:
    """One row a period and channel: its loads."""
    rows = (
        (outcome.index, channel, *loads)
        for outcome in outcomes
        for channel, loads in enumerate(outcome.loads.T.tolist())
    )
    return Table.from_rows("Channels by period", CHANNEL_COLUMNS, rows)


def summary_table(outcomes: Sequence[PeriodOutcome]) -> Table:
    """All periods in one row; means leave out the periods in which a number is not defined."""
    metrics = [outcome.metrics for outcome in outcomes]
    imbalances = [(outcome.metrics.imbalance, outcome.index) for outcome in outcomes]
    worst = max(((value, -index) for value, index in imbalances if value is not None), default=None)
    row = (
        len(outcomes),
        outcomes[-1].index + 1 - len(outcomes) if outcomes else 0,
        sum(outcome.rows for outcome in outcomes),
        sum(before.channels != after.channels for before, after in pairwise(outcomes)),
        _mean([each.imbalance for each in metrics]),
        None if worst is None else worst[0],
        None if worst is None else -worst[1],
        _mean([each.imbalance_floor for each in metrics]),
        _mean([each.b for each in metrics]),
        _mean([each.m for each in metrics]),
        sum(each.migrated_keys or 0 for each in metrics),
        sum(each.migrated_state or 0.0 for each in metrics),
        sum(each.empty_channels > 0 for each in metrics),
    )
    return Table.from_rows("The run", SUMMARY_COLUMNS, [row])


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
