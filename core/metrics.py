"""Metrics, declared once: columns of tables, limits, and docs read them here."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from adapt.core.table import Column, Kind


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
    """A number measured in artefacts, and the column that shows it."""

    column: Column
    better: Better  # better side
    places: Mapping[Of, str]  # its table, by kind of artefact

    @property
    def name(self) -> str:
        """The name in limits, tables and JSON."""
        return self.column.name

    @property
    def bare(self) -> str:
        """Unit of a bare number, or empty."""
        if self.column.kind is Kind.SECONDS:
            return "s" if self.name.endswith("_s") else ""
        return self.column.unit or {Kind.SHARE: "share of 1", Kind.COUNT: "count"}.get(self.column.kind, "ratio")


_TABLE = """
# placement
imbalance | ratio lower | placed | load of the busiest worker over the mean load
best_possible | ratio lower | placed | best possible imbalance without splitting keys
times_best_possible | ratio lower | placed | imbalance over best_possible; 1 is the best there is
top_share | share lower | placed | share of the load of the hottest key
useful_workers | number higher | placed | 1 / top_share: more workers than that cannot all be busy
r_s | ratio lower | placed | state of the fullest worker over that of the emptiest
r_c | ratio lower | placed | computation of the busiest worker over that of the least busy
r_n | ratio lower | placed | network load of the busiest worker over that of the least busy
r_best | ratio lower | placed | best possible r_n without splitting keys
r_best_pinned | ratio lower | placed | best possible r_n with these pinned keys and the rest hashed
b | ratio lower | placed | geometric mean of r_s, r_c and r_n over their tolerances; at most 1 is tolerated
b_best | ratio lower | placed | best possible b, with these pinned keys if any
m | ratio lower | steps | migration factor: state moved over the state of an average worker
b(1+m) | ratio lower | steps | imbalance and migration combined
keys_moved | count lower | steps | keys that change their worker; unlisted ones are estimated
state_moved | number lower | steps | state that changes its channel: in rows, unless weighed or measured
empty_channels | count lower | placed | workers without load
pinned_keys | count lower | placed | pinned keys
channels | count neither | placed | number of workers
channels_per_key | ratio lower | comparison | mean number of workers with state of a key
merge_tuples | count lower | comparison | merge messages: partial results of split keys
build_s | seconds lower s | comparison,repartition | time to build the plan
# streams
rows | count neither | counted,repartition runs=summary | rows of the stream, or of the period
keys | count neither | counted,repartition | distinct keys; may be an estimate for a trace
rejected | count lower | trace | rows of the source rejected at ingest
null_keys | count lower | trace | rows with a null key
empty_keys | count lower | trace | rows with an empty key
# periods
imbalance_max | ratio lower | repartition=summary elastic,compare | imbalance in the worst period or interval
mean_imbalance | ratio lower | repartition=summary | imbalance, averaged over periods
imbalance_today | ratio lower | repartition | imbalance of today's placement
mean_imbalance_today | ratio lower | repartition=summary | imbalance of today's placement, averaged over periods
mean_best_possible | ratio lower | repartition=summary | best_possible, averaged over periods
mean_b | ratio lower | repartition=summary | b, averaged over periods without empty workers
mean_m | ratio lower | repartition=summary | migration factor, averaged over changes of the plan
all_keys_moved | count lower | repartition=summary | sum of keys_moved over all periods
all_state_moved | number lower | repartition=summary | sum of state_moved over all periods
rescales | count lower | repartition=summary elastic,compare | changes of the workers or of the placement
rebuilds | count lower | repartition=summary | plans that the trigger put in force
periods_with_empty_channels | count lower | repartition=summary | periods with a worker without load
periods | count neither | repartition=summary | periods with rows
empty_periods | count lower | repartition=summary | periods without rows, between others
# time
latency_mean | seconds lower s | - | mean latency, from arrival until processed
latency_p50 | seconds lower s | repartition=cases flux,elastic,fit,compare |
    median latency, from arrival until processed
latency_p95 | seconds lower s | elastic,fit,compare | 95th percentile of the latency
latency_p99 | seconds lower s | repartition=cases flux,elastic,fit,compare | 99th percentile of the latency
processing_p50 | seconds lower s | ordered | median time from the first operator until the last output has left
processing_p95 | seconds lower s | ordered | 95th percentile of that time
processing_p99 | seconds lower s | ordered | 99th percentile of that time
end_to_end_p50 | seconds lower s | ordered | median time from the arrival until the last output has left
end_to_end_p99 | seconds lower s | ordered | 99th percentile of that time
lag_max | count lower rows | repartition=cases flux,elastic,compare |
    most rows that had arrived and were not processed at a time: consumer lag (Kafka), pending records (Flink)
wait_max | seconds lower s | fit | longest time to drain a queue
operator_mean | seconds lower s | - | mean latency from when a worker takes a row
operator_p50 | seconds lower s | flux | median latency from when a worker takes a row
operator_p99 | seconds lower s | flux | 99th percentile of the latency from when a worker takes a row
finished | seconds lower s | flux,compare | time when the last row was processed or the run was cut off
drain | seconds lower s | repartition=cases flux,elastic,ordered,compare |
    time from the last arrival until all rows were processed
degraded | seconds lower s | flux | time below 85 % of the capacity while rows waited
recovery | seconds lower s | flux | time from falling behind until caught up; missing if it never caught up
takeover | seconds lower s | flux | longest time from a crash until its partitions had owners
full_rate | seconds lower s | flux | longest time from a crash to the full rate; missing if never reached
prepared_s | seconds lower s | fit | time to build the planner and its table
planned_s | seconds lower s | fit | time to make all drop plans
# stages
throughput | number higher rows/s | flux,elastic,ordered,compare | rows per second until the last was processed
capacity_share | share higher | flux | share of the possible: earliest end over the end, or rows over those possible
moves | count lower | repartition=cases flux,elastic,compare | partitions moved
state_moved_bytes | bytes lower bytes | repartition=cases flux,elastic,compare | state moved to another worker
processed | count higher rows | repartition=cases flux,elastic,compare | rows processed
unprocessed | count lower rows | repartition=cases flux,elastic,compare | rows that arrived and were not processed
lost | count lower rows | flux | rows lost in crashes
rows_dropped | count lower rows | flux,elastic | rows dropped by full workers
on_disk_max | count lower partitions | flux | most partitions on disk at once
spilled_max | count lower rows | flux,compare | most rows on disk at once
state_max | bytes lower bytes | - | largest state of a worker in memory
lost_state | bytes lower bytes | flux | state of partitions that restarted empty after a crash
lost_groups | count lower groups | flux | groups that lost rows or state in a crash: wrong answers for a window
mirrored | count lower rows | flux | rows processed twice, for standby
standby | bytes lower bytes | flux | bytes sent for standby
workers | count neither | flux=summary | number of workers
partitions | count neither | flux=summary | number of partitions
capacity | number higher rows/s | flux=summary | what all undisturbed workers can process
busiest_worker | share lower | flux=summary | initial share of all work of the busiest worker
hottest_partition | share lower | flux=summary | share of all work of the hottest partition
static_full_at | number higher | repartition,flux=summary | speed-up of the trace that saturates the busiest worker
best_full_at | number higher | flux=summary | speed-up that saturates the best placement of whole partitions
busiest_time | seconds lower s | repartition=cases |
    busy time of the busiest worker of each period, migration included
migrations | count lower | repartition=cases | times at which partitions moved
# scaling
worker_time | seconds lower s | elastic,compare | time of all workers until all rows were processed
idle_time | seconds lower s | elastic | time of idle workers
pause_time | seconds lower s | elastic | sum of the pauses of all partitions
paused | seconds lower s | elastic,compare | time during which at least one partition was paused
downtime | seconds lower s | - | time during which restarts stopped partitions
stopped | seconds lower s | - | time of workers without work in restarts
catch_up | seconds lower s | elastic,compare |
    longest time from a rescale until its backlog was gone; missing if it stays
dropped_falsely | count lower rows | elastic | rows dropped though the pool, evenly loaded, had room
dropped_unevenly | count lower rows | elastic | rows dropped though the present workers had room
answers | count higher | elastic | matches that a join found
recall | share higher | elastic | matches of a join over those of a serial run
workers_mean | number lower | elastic,compare | mean number of workers
workers_max | count lower | elastic,compare | maximum number of workers
offered | number neither | compare,flux,elastic=summary | offered load over capacity, of the busiest worker or the pool
# shedding
optimum_share | share higher | fit | score over the best possible of each tick, without late results
optimum_share_full | share higher | fit | optimum_share over the overloaded ticks, in which more arrived than fits
score | number higher tuples/s | fit | mean weighted output rate
error_p50 | share lower | fit | median over ticks of the loss against the best score
error_p95 | share lower | fit | 95th percentile of that loss
error_p99 | share lower | fit | 99th percentile of that loss
overloaded | share lower | fit | ticks in which more was kept than can be processed
drop_rate | share lower | fit,compare | share of the rows dropped
queue_drops | count lower tuples | fit | tuples dropped at full queues
results_dropped | number lower results | fit | results of windows that lost tuples to full queues; not in the score
waiting | count lower tuples | fit | tuples in queues at the end
plans | count neither | fit | different drop plans used
changes | count lower ticks | fit | ticks with a changed drop rate
messages | count lower | fit,compare | messages between nodes to make plans
message_rows | count lower rows | fit | table rows in the messages between nodes
message_bytes | bytes lower bytes | fit,compare | bytes of the messages between nodes
unbound | count lower rows | fit=summary | rows that no input reads
ticks | count neither | fit=summary | number of ticks
full | count lower ticks | fit=summary | overloaded ticks: more arrived than can be processed
optimum | number higher tuples/s | fit=summary | mean of the best possible score
# ordered workers
speed_up | ratio higher | ordered | throughput, or capacity if measured, over that of one worker
partition_imbalance | ratio lower | ordered | rows of the largest partition over the mean, in the worst operator
delegated | count neither | ordered | tuples delegated to the worker inside their partition
blocked | count lower | ordered | sends stopped by a full work queue (backpressure)
retries | count lower | ordered | attempts to put outputs into a full ring buffer
blocked_time | share lower | ordered |
    share of the time of all workers: waits for room in a ring buffer (retry) or for its lock (lock)
ring_max | count lower | ordered | most tuples in use in the ring buffer of an operator
order_violations | count lower | ordered=summary | runs whose output differs from that of the serial run
speed_up_bound | ratio higher | ordered=summary | highest possible speed-up with any number of workers
break_even | count higher workers | ordered=summary |
    more of them are not worth having; the last number if all are
# mechanisms
sustainable | number higher rows/s | compare | highest rate with bounded lag, if it was asked for
idle_workers | number lower | compare | mean number of idle workers
"""
"""One column per line: name; kind, better side and unit, if any; artefacts; explanation.

Artefacts are kinds or groups of them, followed by `=summary` if it is in the summary, and by `=cases` if it is in the
cases of a live repartition run; `-`: not a metric for limits. An indented line continues the line before.
"""

_KINDS_NAMED = {"counts": Of.COUNTS, "compare": Of.MECHANISMS} | {kind.name.lower(): kind for kind in Of}
_COUNTED = (Of.TRACE, Of.COUNTS)
_STEPS = (Of.PLAN, Of.COMPARISON, Of.EVALUATION, Of.REPARTITION)
_GROUPS = {
    "-": (),
    "counted": _COUNTED,
    "steps": _STEPS,
    "placed": (*_COUNTED, *_STEPS),
    "runs": (Of.FLUX, Of.ELASTIC, Of.FIT, Of.ORDERED, Of.MECHANISMS),
}


def _declared(line: str) -> Metric:
    name, shown, where, about = (part.strip() for part in line.split("|"))
    kind, better, *unit = shown.split()
    places: dict[Of, str] = {}
    for each in where.split():
        names, _, table = each.partition("=")
        for one in names.split(","):
            places |= dict.fromkeys(_GROUPS[one] if one in _GROUPS else (_KINDS_NAMED[one],), table or ROWS)
    return Metric(Column(name, Kind(kind), "".join(unit), about), Better(better), places)


_DECLARED = {
    each.name: each
    for each in (_declared(line) for line in _TABLE.replace("\n    ", " ").split("\n") if line and line[0] != "#")
}

METRICS: Mapping[str, Metric] = {name: each for name, each in _DECLARED.items() if each.places}
"""Metrics for limits, by name."""

ASKING_FOR_KEYS = frozenset(each.name for each in METRICS.values() if {Of.TRACE, Of.PLAN} <= each.places.keys())
"""Metrics of a trace that require counting and placing its keys."""

RENAMED = {
    "adopted": "rebuilds",
    "all_migrated_keys": "all_keys_moved",
    "all_migrated_state": "all_state_moved",
    "b_floor": "b_best",
    "busiest": "busiest_time",
    "busiest_s": "busiest_time",
    "catch_up_s": "catch_up",
    "channel_changes": "rescales",
    "degraded_s": "degraded",
    "drain_s": "drain",
    "dropped": "drop_rate",
    "end_to_end_p50_ms": "end_to_end_p50",
    "end_to_end_p99_ms": "end_to_end_p99",
    "explicit_keys": "pinned_keys",
    "finished_s": "finished",
    "full_rate_s": "full_rate",
    "gap": "times_best_possible",
    "idle": "idle_time",
    "idle_seconds": "idle_time",
    "imbalance_do_nothing": "imbalance_today",
    "imbalance_floor": "best_possible",
    "lag": "lag_max",
    "lost_state_bytes": "lost_state",
    "mean_imbalance_do_nothing": "mean_imbalance_today",
    "mean_imbalance_floor": "mean_best_possible",
    "migrated_keys": "keys_moved",
    "migrated_state": "state_moved",
    "moved": "state_moved_bytes",
    "moved_bytes": "state_moved_bytes",
    "operator_p50_ms": "operator_p50",
    "operator_p99_ms": "operator_p99",
    "p50": "latency_p50",
    "p50_ms": "latency_p50",
    "p95": "latency_p95",
    "p95_ms": "latency_p95",
    "p99": "latency_p99",
    "p99_ms": "latency_p99",
    "pause_seconds": "pause_time",
    "pauses": "pause_time",
    "paused_s": "paused",
    "r_floor": "r_best",
    "r_floor_pair": "r_best_pinned",
    "recovery_s": "recovery",
    "restarts": "rescales",
    "shed": "rows_dropped",
    "shed_falsely": "dropped_falsely",
    "shed_unevenly": "dropped_unevenly",
    "standby_bytes": "standby",
    "takeover_s": "takeover",
    "wait_s": "wait_max",
    "withdrawn": "results_dropped",
    "worker_seconds": "worker_time",
    "worker_time_s": "worker_time",
    "worst_imbalance": "imbalance_max",
}
"""Metrics by their names in version 1 of the schemas, in limits and as columns."""


def column_named(name: str) -> Column:
    """The declared column of that name."""
    return _DECLARED[name].column


def columns_named(names: str) -> tuple[Column, ...]:
    """The declared columns of these names, separated by spaces."""
    return tuple(map(column_named, names.split()))


def column_now(column: Column) -> Column:
    """Column of an artefact under its name of today."""
    now = _DECLARED.get(RENAMED.get(column.name, ""))
    return now.column if now and column.kind in (now.column.kind, Kind.NUMBER) else column
