"""Registry of metrics for limits: unit, meaning, artefacts, better side."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from adapt.core.errors import UsageError, near_miss
from adapt.core.table import Column, Kind, Table


class Of(StrEnum):
    """Kinds of artefacts that can be checked."""

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
    """Better side of a metric."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


SUMMARY = "summary"
"""The table of a run with one row for the whole run."""

ROWS = "rows"
"""The table of an artefact with one row per measured plan, case, planner or period."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A number measured in artefacts, in the unit of its kind."""

    name: str  # name in limits; that of a duration ends in the unit of a bare number
    kind: Kind  # how it is displayed
    better: Better  # better side
    about: str
    places: Mapping[Of, tuple[str, str]] = field(default_factory=dict)  # table and column, by kind of artefact
    unit: str = ""  # unit of a bare number

    def shown_as(self) -> Column:
        """Column that displays the metric."""
        return Column(self.name, self.kind, self.unit, self.about)


def metric_named(name: str) -> Metric:
    """The metric with that name."""
    if name in METRICS:
        return METRICS[name]
    called = [each.name for each in METRICS.values() if any(column == name for _, column in each.places.values())]
    if called:
        raise UsageError(f"metric {name!r} does not exist; the metric of that column is {' or '.join(called)}")
    raise UsageError(f"metric {name!r} does not exist{near_miss(name, METRICS)} (`adapt check --metrics` lists all)")


def metrics_tables() -> list[Table]:
    """The registry as tables, one per set of artefacts."""
    groups: dict[str, list[Metric]] = {}
    for each in METRICS.values():
        groups.setdefault(", ".join(kind.value for kind in Of if kind in each.places), []).append(each)
    columns = (
        Column("metric"),
        Column("better"),
        Column("bare number", about="unit of a number written without one"),
        Column("meaning"),
    )
    return [
        Table.from_rows(
            f"Metrics of {of}", columns, [(each.name, each.better.value, _bare(each), each.about) for each in metrics]
        )
        for of, metrics in groups.items()
    ]


def _bare(metric: Metric) -> str:
    return metric.unit or {Kind.SHARE: "share of 1", Kind.RATIO: "ratio", Kind.COUNT: "count"}.get(metric.kind, "")


_TABLE = """
# placement
imbalance | ratio lower | placed | load of the busiest worker over the mean load
imbalance_floor | ratio lower | placed | best possible imbalance without splitting keys
gap | ratio lower | placed | imbalance over imbalance_floor; 1 is the best possible
top_share | share lower | placed | share of the load of the hottest key
useful_workers | number higher | placed | 1 / top_share: more workers than that cannot all be busy
r_s | ratio lower | placed | state of the fullest channel over that of the emptiest
r_c | ratio lower | placed | computation of the busiest channel over that of the least busy
r_n | ratio lower | placed | network load of the busiest channel over that of the least busy
r_floor | ratio lower | placed | best possible r_n without splitting keys
r_floor_pair | ratio lower | placed | best possible r_n with these pinned keys and the rest hashed
b | ratio lower | placed | geometric mean of r_s, r_c and r_n over their tolerances; at most 1 is tolerated
b_floor | ratio lower | placed | best possible b with these pinned keys and the rest hashed, or overall
m | ratio lower | steps | migration factor: state moved over the state of an average channel
b(1+m) | ratio lower | steps | utility: balance and migration combined
migrated_keys | count lower | steps | keys that change their channel
migrated_state | number lower | steps | state moved: in rows, or in the unit of the measured column
empty_channels | count lower | placed | channels without load
explicit_keys | count lower | placed | pinned keys
channels | count neither | placed | number of channels
channels_per_key | ratio lower | comparison | workers per key, on average over split keys
merge_tuples | count lower | comparison | merge messages: partial results of split keys
build_s | seconds lower | comparison,repartition | time to build the plan
# streams
rows | count neither | counted,repartition runs=summary. | rows of the stream, or of the period
keys | count neither | counted,repartition | distinct keys; may be an estimate for a trace
rejected | count lower | trace | rows of the source rejected at ingest
null_keys | count lower | trace | rows with a null key
empty_keys | count lower | trace | rows with an empty key
# periods
worst_imbalance | ratio lower | repartition=summary. elastic=imbalance_max |
    imbalance of the worst period (repartition run) or interval (elastic run)
mean_imbalance | ratio lower | repartition=summary. | imbalance, averaged over periods
imbalance_do_nothing | ratio lower | repartition | imbalance of today's placement, without any plan
mean_imbalance_do_nothing | ratio lower | repartition=summary. | the same, averaged over periods
mean_imbalance_floor | ratio lower | repartition=summary. | best possible imbalance, averaged over periods
mean_b | ratio lower | repartition=summary. | b, averaged over periods without empty channels
mean_m | ratio lower | repartition=summary. | migration factor, averaged over changes of the plan
all_migrated_keys | count lower | repartition=summary.migrated_keys | sum of migrated_keys over all periods
all_migrated_state | number lower | repartition=summary.migrated_state | sum of migrated_state over all periods
channel_changes | count lower | repartition=summary. | changes of the number of channels
periods_with_empty_channels | count lower | repartition=summary. | periods with a channel without load
periods | count neither | repartition=summary. | periods with rows
empty_periods | count lower | repartition=summary. | periods without rows, between others
# time
p50_ms | seconds lower | repartition=cases.latency_p50 flux,elastic,fit=latency_p50 ordered=processing_p50 compare=p50 |
    median latency
p95_ms | seconds lower | elastic,fit=latency_p95 ordered=processing_p95 compare=p95 | 95th percentile of the latency
p99_ms | seconds lower | repartition=cases.latency_p99 flux,elastic,fit=latency_p99 ordered=processing_p99 compare=p99 |
    99th percentile of the latency (tail latency)
end_to_end_p50_ms | seconds lower | ordered=end_to_end_p50 | median latency with the wait in the first queue
end_to_end_p99_ms | seconds lower | ordered=end_to_end_p99 | its 99th percentile
lag | count lower | repartition=cases.lag_max flux,elastic,compare=lag_max |
    most rows that had arrived and were not processed at a time: consumer lag (Kafka), pending records (Flink)
wait_s | seconds lower | fit=wait_max | longest time to drain a queue
operator_p50_ms | seconds lower | flux=operator_p50 | median latency from when a worker takes a row
operator_p99_ms | seconds lower | flux=operator_p99 | 99th percentile of the latency from when a worker takes a row
finished_s | seconds lower | flux,compare=finished | time when the last row was processed or the run was cut off
drain_s | seconds lower | repartition=cases.drain flux,elastic,ordered,compare=drain |
    time from the last arrival until all rows were processed
degraded_s | seconds lower | flux=degraded | time below 85 % of the capacity while rows waited
recovery_s | seconds lower | flux=recovery | time from the start of degradation to its end
takeover_s | seconds lower | flux=takeover | longest time from a crash until its partitions had owners
full_rate_s | seconds lower | flux=full_rate | longest time from a crash to the full rate
prepared_s | seconds lower | fit | time to build the planner and its table
planned_s | seconds lower | fit | time to make all drop plans
# stages
throughput | number higher rows/s | flux,elastic,ordered,compare | rows per second until the last was processed
capacity_share | share higher | flux | share of the possible: earliest end over the end, or rows over those possible
moves | count lower | repartition=cases. flux,elastic,compare | partitions moved
moved_bytes | bytes lower bytes | repartition=cases.moved flux,elastic,compare=moved |
    state moved to another worker
processed | count higher | repartition=cases. flux,elastic,compare | rows processed
unprocessed | count lower | repartition=cases. flux,elastic,compare |
    rows that arrived and were not processed
lost | count lower | flux | rows lost in crashes
shed | count lower | flux,elastic | rows dropped by full workers
on_disk_max | count lower | flux | most partitions on disk at once
spilled_max | count lower | flux,compare | most rows on disk at once
lost_state_bytes | bytes lower bytes | flux=lost_state | state of partitions that restarted empty after a crash
lost_groups | count lower | flux | groups that lost tuples or state in a crash
mirrored | count lower | flux | tuples processed twice, for standby
standby_bytes | bytes lower bytes | flux=standby | bytes sent for standby
workers | count neither | flux=summary. | number of workers
partitions | count neither | flux=summary. | number of partitions
capacity | number higher rows/s | flux=summary. | what all undisturbed workers can process
busiest_worker | share lower | flux=summary. | initial share of all work of the busiest worker
hottest_partition | share lower | flux=summary. | share of all work of the hottest partition
static_full_at | number higher | repartition,flux=summary. | speed-up of the trace that saturates the busiest worker
best_full_at | number higher | flux=summary. | the same for the best placement of whole partitions
busiest_s | seconds lower | repartition=cases.busiest |
    busy time of the busiest worker of each period, migration included
migrations | count lower | repartition=cases. | times at which partitions moved
adopted | count lower | repartition=summary. | plans that the trigger adopted
# scaling
worker_seconds | number lower s | elastic | worker-seconds used
idle_seconds | number lower s | elastic=idle | idle worker-seconds
pause_seconds | number lower s | elastic=pauses | sum of the pauses of all partitions
shed_falsely | count lower | elastic | rows shed while the pool had room for all
shed_unevenly | count lower | elastic | rows shed while the present workers together had room
answers | count higher | elastic | matches that a join found
recall | share higher | elastic | matches of a join over those of a serial run
# shedding
optimum_share | share higher | fit | score over the best possible of each tick
optimum_share_full | share higher | fit | the same over overloaded ticks
score | number higher tuples/s | fit | mean weighted output rate
error_p50 | share lower | fit | median over ticks of the loss against the best score
error_p95 | share lower | fit | 95th percentile of that loss
error_p99 | share lower | fit | 99th percentile of that loss
overloaded | share lower | fit | ticks in which more was kept than can be processed
dropped | share lower | fit | drop rate: dropped share of the offered tuples
queue_drops | count lower | fit | tuples dropped at full queues
withdrawn | number lower | fit | results of windows that then lost tuples to full queues
waiting | count lower | fit | tuples in queues at the end
plans | count neither | fit | different drop plans used
changes | count lower | fit | ticks with a changed drop rate
messages | count lower | fit,compare | messages between nodes to make plans
message_rows | count lower | fit | table rows in these messages
message_bytes | bytes lower bytes | fit,compare | bytes of these messages
unbound | count lower | fit=summary. | rows that no input reads
ticks | count neither | fit=summary. | number of ticks
full | count lower | fit=summary. | overloaded ticks: more arrived than can be processed
optimum | number higher tuples/s | fit=summary. | mean of the best possible score
# ordered workers
speed_up | ratio higher | ordered | throughput over that of one worker
partition_imbalance | ratio lower | ordered=imbalance | imbalance of the partitions of the worst operator
delegated | count neither | ordered | tuples delegated to the worker inside their partition
blocked | count lower | ordered | sends stopped by a full work queue (backpressure)
retries | count lower | ordered | outputs offered to a full ring buffer
blocked_time | share lower | ordered | share of the time of all workers in which they wait for the reorder buffer
ring_max | count lower | ordered | most tuples in a ring buffer
order_violations | count lower | ordered=summary. | runs whose output differs from that of the serial run
speed_up_bound | ratio higher | ordered=summary. | upper bound of the speed-up, from serial work
break_even | count higher | ordered=summary. | workers beyond which more add less than 5 % of throughput
# mechanisms
drop_rate | share lower | compare | share of the rows shed
worker_time_s | seconds lower | compare=worker_time | worker time used, over all workers
paused_s | seconds lower | elastic,compare=paused | time during which at least one partition was paused
catch_up_s | seconds lower | elastic,compare=catch_up | longest time from a rescale until its backlog was gone
restarts | count lower | elastic,compare | rescales and rebuilds, for which other engines restart
sustainable | number higher rows/s | compare | highest rate with bounded lag, if it was asked for
idle_workers | number lower | compare | mean number of idle workers
imbalance_max | ratio lower | compare | imbalance of rows in the worst 5 % of the time
workers_mean | number lower | elastic,compare | mean number of workers
workers_max | count lower | elastic,compare | maximum number of workers
offered | number neither | compare,flux,elastic=summary. | offered load over capacity, of the busiest worker or the pool
"""
"""One metric per line: name; kind, better side and unit, if any; places; explanation.

Places are kinds of artefacts or groups of them, each followed by `=COLUMN` if the column has another name, and by
`=TABLE.COLUMN` or `=TABLE.` if it is in the summary, or in the cases of a live repartition run. An indented line
continues the line before.
"""

_KINDS_NAMED = {"counts": Of.COUNTS, "compare": Of.MECHANISMS} | {kind.name.lower(): kind for kind in Of}
_COUNTED = (Of.TRACE, Of.COUNTS)
_STEPS = (Of.PLAN, Of.COMPARISON, Of.EVALUATION, Of.REPARTITION)
_GROUPS = {
    "counted": _COUNTED,
    "steps": _STEPS,
    "placed": (*_COUNTED, *_STEPS),
    "runs": (Of.FLUX, Of.ELASTIC, Of.FIT, Of.ORDERED, Of.MECHANISMS),
}


def _metric(line: str) -> Metric:
    """Parse a line of the table; the unit of a duration is the end of its name."""
    name, shown, where, about = (part.strip() for part in line.split("|"))
    kind_name, better, *unit = shown.split()
    kind = Kind(kind_name)
    places: dict[Of, tuple[str, str]] = {}
    for each in where.split():
        names, _, place = each.partition("=")
        table, dot, column = place.rpartition(".")
        for kinds in (_GROUPS.get(one) or (_KINDS_NAMED[one],) for one in names.split(",")):
            places |= dict.fromkeys(kinds, (table if dot else ROWS, column or name))
    return Metric(
        name, kind, Better(better), about, places, name.rpartition("_")[2] if kind is Kind.SECONDS else "".join(unit)
    )


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        _metric(line) for line in _TABLE.replace("\n    ", " ").split("\n") if line and not line.startswith("#")
    )
}
"""Metrics by name."""

ASKING_FOR_KEYS = frozenset(each.name for each in METRICS.values() if {Of.TRACE, Of.PLAN} <= each.places.keys())
"""Metrics of a trace that require counting and placing its keys."""
