"""Every metric that a limit may name: its unit, its meaning, what has it, and which side is better."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from adapt.core.errors import UsageError, near_miss
from adapt.core.table import Column, Kind, Table


class Of(StrEnum):
    """What may be checked."""

    TRACE = "trace"
    COUNTS = "counted keys"
    PLAN = "plan"
    COMPARISON = "comparison"
    EVALUATION = "evaluation"
    REPARTITION = "repartition run"
    FLUX = "flux run"
    ELASTIC = "elastic run"
    FIT = "fit run"
    ORDERED = "ordered run"
    MECHANISMS = "compare run"


class Better(StrEnum):
    """On which side a metric is better."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


SUMMARY = "summary"
"""The table of a run that tells of the whole of it, in one row."""

ROWS = "rows"
"""The table of an artefact with a row for each thing that it measured: a plan, a case, a planner, a period."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that artefacts have, in the unit of its kind: seconds, bytes, shares of 1.

    Attributes:
        name: As it is written in limits; where it is a length of time, its end names the unit of a bare number.
        kind: How it is shown.
        better: On which side it is better.
        about: What it is.
        places: In which artefacts it is: the table and the column.
        unit: Of a bare number.
    """

    name: str
    kind: Kind
    better: Better
    about: str
    places: Mapping[Of, tuple[str, str]] = field(default_factory=dict)
    unit: str = ""

    def shown_as(self) -> Column:
        """The column that shows it."""
        return Column(self.name, self.kind, self.unit, self.about)


def metric_named(name: str) -> Metric:
    """The metric of that name.

    Raises:
        UsageError: there is none.
    """
    if name in METRICS:
        return METRICS[name]
    called = [each.name for each in METRICS.values() if any(column == name for _, column in each.places.values())]
    if called:
        raise UsageError(f"the metric of column {name!r} is called {' or '.join(called)}")
    raise UsageError(f"there is no metric {name!r}{near_miss(name, METRICS)} (`adapt check --metrics` lists all)")


def metrics_tables() -> list[Table]:
    """The registry, for whoever writes limits: a table for each set of artefacts that have the same metrics."""
    groups: dict[str, list[Metric]] = {}
    for each in METRICS.values():
        groups.setdefault(", ".join(kind.value for kind in Of if kind in each.places), []).append(each)
    columns = (
        Column("metric"),
        Column("better"),
        Column("bare number", about="what a number without a unit is"),
        Column("meaning"),
    )
    return [
        Table.of(f"Of {of}", columns, [(each.name, each.better.value, _bare(each), each.about) for each in metrics])
        for of, metrics in groups.items()
    ]


def _bare(metric: Metric) -> str:
    return metric.unit or {Kind.SHARE: "share of 1", Kind.RATIO: "ratio", Kind.COUNT: "count"}.get(metric.kind, "")


def _metric(
    name: str,
    kind: Kind,
    better: Better,
    about: str,
    *of: Of,
    unit: str = "",
    table: str = ROWS,
    **columns: str,
) -> Metric:
    """A metric of column `name` of `table` in the artefacts `of`; elsewhere, `TABLE.COLUMN` by the name of its kind."""
    places = dict.fromkeys(of, (table, name))
    for kind_name, place in columns.items():
        in_table, dot, column = place.rpartition(".")
        places[Of[kind_name.upper()]] = (in_table if dot else table, column)
    return Metric(name, kind, better, about, places, unit)


_LOWER, _HIGHER, _NEITHER = Better.LOWER, Better.HIGHER, Better.NEITHER
_COUNTED = (Of.TRACE, Of.COUNTS)
_PLACED = (*_COUNTED, Of.PLAN, Of.COMPARISON, Of.EVALUATION, Of.REPARTITION)
_STEPS = (Of.PLAN, Of.COMPARISON, Of.EVALUATION, Of.REPARTITION)


def _in_seconds(name: str, better: Better, about: str, **columns: str) -> Metric:
    unit = name.rpartition("_")[2]
    return _metric(name, Kind.SECONDS, better, about, unit=unit, **columns)


_OF_PLACEMENT = (
    _metric("imbalance", Kind.RATIO, _LOWER, "network load of the fullest channel over the average", *_PLACED),
    _metric("imbalance_floor", Kind.RATIO, _LOWER, "the least that any placement of whole keys can reach", *_PLACED),
    _metric("gap", Kind.RATIO, _LOWER, "imbalance over imbalance_floor; 1 if no placement is better", *_PLACED),
    _metric("top_share", Kind.SHARE, _LOWER, "what the heaviest key carries of the load", *_PLACED),
    _metric(
        "useful_workers", Kind.NUMBER, _HIGHER, "1 / top_share: more channels than that cannot all be busy", *_PLACED
    ),
    _metric("r_s", Kind.RATIO, _LOWER, "state, fullest channel over emptiest", *_PLACED),
    _metric("r_c", Kind.RATIO, _LOWER, "computation, fullest channel over emptiest", *_PLACED),
    _metric("r_n", Kind.RATIO, _LOWER, "network, fullest channel over emptiest", *_PLACED),
    _metric("r_floor", Kind.RATIO, _LOWER, "the least r_n that any placement of whole keys can reach", *_PLACED),
    _metric("r_floor_pair", Kind.RATIO, _LOWER, "the least r_n with these keys tracked and the rest hashed", *_PLACED),
    _metric("b", Kind.RATIO, _LOWER, "geometric mean of r_s, r_c, r_n over their tolerances; 1 is tolerated", *_PLACED),
    _metric(
        "b_floor",
        Kind.RATIO,
        _LOWER,
        "the least b with these keys tracked and the rest hashed, or else at all",
        *_PLACED,
    ),
    _metric("m", Kind.RATIO, _LOWER, "migrated state over that of an average channel", *_STEPS),
    _metric("b(1+m)", Kind.RATIO, _LOWER, "balance and migration together", *_STEPS),
    _metric("migrated_keys", Kind.COUNT, _LOWER, "keys whose channel changed", *_STEPS),
    _metric("migrated_state", Kind.NUMBER, _LOWER, "their state: that function of a count, or as measured", *_STEPS),
    _metric("empty_channels", Kind.COUNT, _LOWER, "channels without any load", *_PLACED),
    _metric("explicit_keys", Kind.COUNT, _LOWER, "keys mapped one by one", *_PLACED),
    _metric("channels", Kind.COUNT, _NEITHER, "parallel channels", *_PLACED),
    _metric(
        "channels_per_key", Kind.RATIO, _LOWER, "channels with state of a key, where keys are split", Of.COMPARISON
    ),
    _metric("merge_tuples", Kind.COUNT, _LOWER, "partial results to merge, where keys are split", Of.COMPARISON),
    _in_seconds("build_s", _LOWER, "time to build", comparison="build_s", repartition="build_s"),
)

_OF_STREAMS = (
    _metric(
        "rows",
        Kind.COUNT,
        _NEITHER,
        "of the stream, or of a period of it",
        *_COUNTED,
        Of.REPARTITION,
        flux="summary.rows",
        elastic="summary.rows",
        fit="summary.rows",
        ordered="summary.rows",
        mechanisms="summary.rows",
    ),
    _metric("keys", Kind.COUNT, _NEITHER, "distinct keys; in a trace perhaps an estimate", *_COUNTED, Of.REPARTITION),
    _metric(
        "refused",
        Kind.COUNT,
        _LOWER,
        "rows of the source that did not fit (trace), tuples that long queues refused (fit run)",
        Of.TRACE,
        Of.FIT,
    ),
    _metric("null_keys", Kind.COUNT, _LOWER, "rows without a key", Of.TRACE),
    _metric("empty_keys", Kind.COUNT, _LOWER, "rows whose key is an empty text", Of.TRACE),
)

_OF_PERIODS = (
    _metric(
        "worst_imbalance",
        Kind.RATIO,
        _LOWER,
        "of the worst period (repartition run) or interval (elastic run)",
        repartition="summary.worst_imbalance",
        elastic="imbalance_max",
    ),
    _metric("mean_imbalance", Kind.RATIO, _LOWER, "mean over the periods", Of.REPARTITION, table=SUMMARY),
    _metric("mean_imbalance_floor", Kind.RATIO, _LOWER, "mean over the periods", Of.REPARTITION, table=SUMMARY),
    _metric("mean_b", Kind.RATIO, _LOWER, "mean over periods without empty channels", Of.REPARTITION, table=SUMMARY),
    _metric("mean_m", Kind.RATIO, _LOWER, "mean over the changes of plan", Of.REPARTITION, table=SUMMARY),
    _metric(
        "all_migrated_keys",
        Kind.COUNT,
        _LOWER,
        "migrated_keys of all periods together",
        repartition="summary.migrated_keys",
    ),
    _metric(
        "all_migrated_state",
        Kind.NUMBER,
        _LOWER,
        "migrated_state of all periods together",
        repartition="summary.migrated_state",
    ),
    _metric("channel_changes", Kind.COUNT, _LOWER, "periods with another N than before", Of.REPARTITION, table=SUMMARY),
    _metric(
        "periods_with_empty_channels",
        Kind.COUNT,
        _LOWER,
        "periods in which a channel had no load",
        Of.REPARTITION,
        table=SUMMARY,
    ),
    _metric("periods", Kind.COUNT, _NEITHER, "periods with rows", Of.REPARTITION, table=SUMMARY),
    _metric("empty_periods", Kind.COUNT, _LOWER, "periods without rows in between", Of.REPARTITION, table=SUMMARY),
)

_OF_TIME = (
    _in_seconds(
        "p50_ms",
        _LOWER,
        "latency that half of the rows do not exceed",
        flux="latency_p50",
        elastic="latency_p50",
        fit="latency_p50",
        ordered="latency_p50",
        mechanisms="p50",
    ),
    _in_seconds(
        "p95_ms",
        _LOWER,
        "latency that 95 % of the rows do not exceed",
        elastic="latency_p95",
        fit="latency_p95",
        ordered="latency_p95",
        mechanisms="p95",
    ),
    _in_seconds(
        "p99_ms",
        _LOWER,
        "latency that 99 % of the rows do not exceed",
        flux="latency_p99",
        elastic="latency_p99",
        fit="latency_p99",
        ordered="latency_p99",
        mechanisms="p99",
    ),
    _in_seconds("processing_p50_ms", _LOWER, "half of the rows, from the first operator on", ordered="processing_p50"),
    _in_seconds("processing_p99_ms", _LOWER, "99 % of the rows, from the first operator on", ordered="processing_p99"),
    _in_seconds(
        "lag_s",
        _LOWER,
        "the longest that a row waited to be taken, or that a node or link needed for its queue (fit run)",
        flux="lag_max",
        elastic="lag_max",
        mechanisms="lag_max",
        fit="wait_max",
    ),
    _in_seconds("operator_p50_ms", _LOWER, "half of the rows, from when a consumer takes them", flux="operator_p50"),
    _in_seconds("operator_p99_ms", _LOWER, "99 % of the rows, from when a consumer takes them", flux="operator_p99"),
    _in_seconds(
        "finished_s",
        _LOWER,
        "when the last row was processed, or the run cut off",
        flux="finished",
        mechanisms="finished",
    ),
    _in_seconds(
        "late_s",
        _LOWER,
        "from when the last row was due until all were processed",
        flux="late",
        elastic="late",
        mechanisms="late",
    ),
    _in_seconds("behind_s", _LOWER, "time at less than 85 % of what the sites could do, with input", flux="behind"),
    _in_seconds("recovered_s", _LOWER, "from when it fell behind until it no longer was", flux="recovered"),
    _in_seconds("takeover_s", _LOWER, "the longest from a crash until its partitions had owners", flux="takeover"),
    _in_seconds("full_rate_s", _LOWER, "the longest from a crash to the full rate", flux="full_rate"),
    _in_seconds("prepared_s", _LOWER, "to make the planner, with its table", fit="prepared_s"),
    _in_seconds("planned_s", _LOWER, "to make all plans", fit="planned_s"),
)

_OF_STAGES = (
    _metric(
        "throughput",
        Kind.NUMBER,
        _HIGHER,
        "until it was through with the rows",
        Of.FLUX,
        Of.ELASTIC,
        Of.ORDERED,
        Of.MECHANISMS,
        unit="rows/s",
    ),
    _metric("of_capacity", Kind.SHARE, _HIGHER, "of what all sites could have done with the same rows", Of.FLUX),
    _metric("moves", Kind.COUNT, _LOWER, "of partitions", Of.FLUX, Of.ELASTIC, Of.MECHANISMS),
    _metric(
        "moved_bytes",
        Kind.BYTES,
        _LOWER,
        "state that went to another site",
        flux="moved",
        elastic="moved",
        mechanisms="moved",
        unit="bytes",
    ),
    _metric("processed", Kind.COUNT, _HIGHER, "rows", Of.FLUX, Of.ELASTIC, Of.MECHANISMS),
    _metric("left", Kind.COUNT, _LOWER, "rows due and not processed at the end", Of.FLUX, Of.ELASTIC, Of.MECHANISMS),
    _metric("lost", Kind.COUNT, _LOWER, "rows that died with a site", Of.FLUX),
    _metric("shed", Kind.COUNT, _LOWER, "rows that sites dropped as they filled up", Of.FLUX, Of.ELASTIC),
    _metric("on_disk_max", Kind.COUNT, _LOWER, "partitions on disk at the same time", Of.FLUX),
    _metric("spilled_max", Kind.COUNT, _LOWER, "rows on disk at the same time", Of.FLUX, Of.MECHANISMS),
    _metric(
        "lost_state_bytes",
        Kind.BYTES,
        _LOWER,
        "of partitions that began anew after a crash",
        flux="lost_state",
        unit="bytes",
    ),
    _metric("lost_groups", Kind.COUNT, _LOWER, "groups that lost tuples or state in a crash", Of.FLUX),
    _metric("mirrored", Kind.COUNT, _LOWER, "tuples processed twice, for standby", Of.FLUX),
    _metric("standby_bytes", Kind.BYTES, _LOWER, "sent for standby", flux="standby", unit="bytes"),
    _metric("sites", Kind.COUNT, _NEITHER, "of the stage", Of.FLUX, table=SUMMARY),
    _metric("partitions", Kind.COUNT, _NEITHER, "of the stage", Of.FLUX, table=SUMMARY),
    _metric("capacity", Kind.NUMBER, _HIGHER, "of all sites undisturbed", Of.FLUX, unit="rows/s", table=SUMMARY),
    _metric("busiest_site", Kind.SHARE, _LOWER, "of all work, at the start", Of.FLUX, table=SUMMARY),
    _metric("heaviest_partition", Kind.SHARE, _LOWER, "of all work", Of.FLUX, table=SUMMARY),
    _metric("static_full_at", Kind.NUMBER, _HIGHER, "speed-up that fills the busiest site", Of.FLUX, table=SUMMARY),
    _metric(
        "best_full_at",
        Kind.NUMBER,
        _HIGHER,
        "the same, of the best placement of whole partitions",
        Of.FLUX,
        table=SUMMARY,
    ),
)

_OF_SCALING = (
    _metric("worker_seconds", Kind.NUMBER, _LOWER, "that workers were there", Of.ELASTIC, unit="s"),
    _metric("idle_seconds", Kind.NUMBER, _LOWER, "of these without work", elastic="idle", unit="s"),
    _metric("pause_seconds", Kind.NUMBER, _LOWER, "the pauses of all partitions", elastic="pauses", unit="s"),
    _metric("shed_falsely", Kind.COUNT, _LOWER, "rows shed while the pool had room for all", Of.ELASTIC),
    _metric("shed_unevenly", Kind.COUNT, _LOWER, "rows shed while the workers there were had room", Of.ELASTIC),
    _metric("answers", Kind.COUNT, _HIGHER, "matches that a join found", Of.ELASTIC),
    _metric("recall", Kind.SHARE, _HIGHER, "answers of a join over those of a serial run", Of.ELASTIC),
)

_OF_SHEDDING = (
    _metric("of_optimum", Kind.SHARE, _HIGHER, "of the best that each tick allowed", Of.FIT),
    _metric("of_optimum_full", Kind.SHARE, _HIGHER, "the same in ticks in which not all could be done", Of.FIT),
    _metric("score", Kind.NUMBER, _HIGHER, "weighted output rate", Of.FIT, unit="tuples/s"),
    _metric("error_p50", Kind.SHARE, _LOWER, "lost of the best score of a tick, in half of the ticks", Of.FIT),
    _metric("error_p95", Kind.SHARE, _LOWER, "the same, in 95 % of the ticks", Of.FIT),
    _metric("error_p99", Kind.SHARE, _LOWER, "the same, in 99 % of the ticks", Of.FIT),
    _metric("overloaded", Kind.SHARE, _LOWER, "of the ticks, in which more was kept than can be done", Of.FIT),
    _metric("dropped", Kind.SHARE, _LOWER, "of what the inputs gave", Of.FIT),
    _metric("waiting", Kind.COUNT, _LOWER, "tuples in queues at the end", Of.FIT),
    _metric("plans", Kind.COUNT, _NEITHER, "different ones that were used", Of.FIT),
    _metric("changes", Kind.COUNT, _LOWER, "ticks in which a share changed", Of.FIT),
    _metric("messages", Kind.COUNT, _LOWER, "between nodes, to make plans", Of.FIT),
    _metric("message_rows", Kind.COUNT, _LOWER, "rows in them", Of.FIT),
    _metric("message_bytes", Kind.BYTES, _LOWER, "bytes in them", Of.FIT, unit="bytes"),
    _metric("unbound", Kind.COUNT, _LOWER, "rows that no input is bound to", Of.FIT, table=SUMMARY),
    _metric("ticks", Kind.COUNT, _NEITHER, "all of them", Of.FIT, table=SUMMARY),
    _metric("full", Kind.COUNT, _LOWER, "ticks in which not all that came could be done", Of.FIT, table=SUMMARY),
    _metric("optimum", Kind.NUMBER, _HIGHER, "the best score", Of.FIT, unit="tuples/s", table=SUMMARY),
)

_OF_WORKERS = (
    _metric("speed_up", Kind.RATIO, _HIGHER, "throughput over that of one worker", Of.ORDERED),
    _metric("partition_imbalance", Kind.RATIO, _LOWER, "of the operator where it is worst", ordered="imbalance"),
    _metric("delegated", Kind.COUNT, _NEITHER, "tuples left to the worker in their partition", Of.ORDERED),
    _metric("blocked", Kind.COUNT, _LOWER, "sends that a full worklist ended", Of.ORDERED),
    _metric("retries", Kind.COUNT, _LOWER, "outputs offered to a ring without room", Of.ORDERED),
    _metric("ring_max", Kind.COUNT, _LOWER, "tuples of a ring in use, at most", Of.ORDERED),
    _metric(
        "disordered", Kind.COUNT, _LOWER, "runs with another egress than the serial one", Of.ORDERED, table=SUMMARY
    ),
    _metric("speed_up_bound", Kind.RATIO, _HIGHER, "by what one worker at a time has to do", Of.ORDERED, table=SUMMARY),
)

_OF_MECHANISMS = (
    _metric("shed_share", Kind.SHARE, _LOWER, "of the rows, dropped as channels filled up", mechanisms="shed"),
    _in_seconds("worker_time_s", _LOWER, "that workers were there, all together", mechanisms="worker_time"),
    _in_seconds("paused_s", _LOWER, "time in which some partition was paused", elastic="paused", mechanisms="paused"),
    _in_seconds(
        "catch_up_s",
        _LOWER,
        "the longest from a scale step until rows no longer waited",
        elastic="catch_up",
        mechanisms="catch_up",
    ),
    _metric(
        "restarts",
        Kind.COUNT,
        _LOWER,
        "changes of placement or workers, for which engines restart",
        Of.ELASTIC,
        Of.MECHANISMS,
    ),
    _metric(
        "sustainable",
        Kind.NUMBER,
        _HIGHER,
        "the largest rate at which lag stays bounded, if it was asked for",
        Of.MECHANISMS,
        unit="rows/s",
    ),
    _metric("idle_workers", Kind.NUMBER, _LOWER, "without work, on average", Of.MECHANISMS),
    _metric("imbalance_max", Kind.RATIO, _LOWER, "of rows, in the worst twentieth of the time", Of.MECHANISMS),
    _metric("workers_mean", Kind.NUMBER, _LOWER, "over the time of the run", Of.ELASTIC, Of.MECHANISMS),
    _metric("workers_max", Kind.COUNT, _LOWER, "at any time", Of.ELASTIC, Of.MECHANISMS),
    _metric(
        "offered",
        Kind.NUMBER,
        _NEITHER,
        "work of the busiest channel over what it can do",
        Of.MECHANISMS,
        table=SUMMARY,
    ),
)

METRICS: Mapping[str, Metric] = {
    each.name: each
    for each in (
        *_OF_PLACEMENT,
        *_OF_STREAMS,
        *_OF_PERIODS,
        *_OF_TIME,
        *_OF_STAGES,
        *_OF_SCALING,
        *_OF_SHEDDING,
        *_OF_WORKERS,
        *_OF_MECHANISMS,
    )
}
"""By name."""

ASKING_FOR_KEYS = frozenset(each.name for each in _OF_PLACEMENT if Of.TRACE in each.places)
"""Metrics of a trace for which its keys must be counted and placed."""
