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
        Table.from_rows(
            f"Of {of}", columns, [(each.name, each.better.value, _bare(each), each.about) for each in metrics]
        )
        for of, metrics in groups.items()
    ]


def _bare(metric: Metric) -> str:
    return metric.unit or {Kind.SHARE: "share of 1", Kind.RATIO: "ratio", Kind.COUNT: "count"}.get(metric.kind, "")


_TABLE = """
# placement
imbalance | ratio lower | placed | network load of the fullest channel over the average
imbalance_floor | ratio lower | placed | the least that any placement of whole keys can reach
gap | ratio lower | placed | imbalance over imbalance_floor; 1 if no placement is better
top_share | share lower | placed | what the heaviest key carries of the load
useful_workers | number higher | placed | 1 / top_share: more channels than that cannot all be busy
r_s | ratio lower | placed | state, fullest channel over emptiest
r_c | ratio lower | placed | computation, fullest channel over emptiest
r_n | ratio lower | placed | network, fullest channel over emptiest
r_floor | ratio lower | placed | the least r_n that any placement of whole keys can reach
r_floor_pair | ratio lower | placed | the least r_n with these keys tracked and the rest hashed
b | ratio lower | placed | geometric mean of r_s, r_c, r_n over their tolerances; 1 is tolerated
b_floor | ratio lower | placed | the least b with these keys tracked and the rest hashed, or else at all
m | ratio lower | steps | migrated state over that of an average channel
b(1+m) | ratio lower | steps | balance and migration together
migrated_keys | count lower | steps | keys whose channel changed
migrated_state | number lower | steps | their state: that function of a count, or as measured
empty_channels | count lower | placed | channels without any load
explicit_keys | count lower | placed | keys mapped one by one
channels | count neither | placed | parallel channels
channels_per_key | ratio lower | comparison | channels with state of a key, where keys are split
merge_tuples | count lower | comparison | partial results to merge, where keys are split
build_s | seconds lower | comparison,repartition | time to build
# streams
rows | count neither | counted,repartition runs=summary. | of the stream, or of a period of it
keys | count neither | counted,repartition | distinct keys; in a trace perhaps an estimate
refused | count lower | trace | rows of the source that did not fit
null_keys | count lower | trace | rows without a key
empty_keys | count lower | trace | rows whose key is an empty text
# periods
worst_imbalance | ratio lower | repartition=summary. elastic=imbalance_max |
    of the worst period (repartition run) or interval (elastic run)
mean_imbalance | ratio lower | repartition=summary. | mean over the periods
mean_imbalance_floor | ratio lower | repartition=summary. | mean over the periods
mean_b | ratio lower | repartition=summary. | mean over periods without empty channels
mean_m | ratio lower | repartition=summary. | mean over the changes of plan
all_migrated_keys | count lower | repartition=summary.migrated_keys | migrated_keys of all periods together
all_migrated_state | number lower | repartition=summary.migrated_state | migrated_state of all periods together
channel_changes | count lower | repartition=summary. | periods with another N than before
periods_with_empty_channels | count lower | repartition=summary. | periods in which a channel had no load
periods | count neither | repartition=summary. | periods with rows
empty_periods | count lower | repartition=summary. | periods without rows in between
# time
p50_ms | seconds lower | flux,elastic,fit,ordered=latency_p50 compare=p50 |
    latency that half of the rows do not exceed
p95_ms | seconds lower | elastic,fit,ordered=latency_p95 compare=p95 | latency that 95 % of the rows do not exceed
p99_ms | seconds lower | flux,elastic,fit,ordered=latency_p99 compare=p99 |
    latency that 99 % of the rows do not exceed
processing_p50_ms | seconds lower | ordered=processing_p50 | half of the rows, from the first operator on
processing_p99_ms | seconds lower | ordered=processing_p99 | 99 % of the rows, from the first operator on
lag_s | seconds lower | flux,elastic,compare=lag_max fit=wait_max |
    the longest that a row waited to be taken, or that a node or link needed for its queue (fit run)
operator_p50_ms | seconds lower | flux=operator_p50 | half of the rows, from when a consumer takes them
operator_p99_ms | seconds lower | flux=operator_p99 | 99 % of the rows, from when a consumer takes them
finished_s | seconds lower | flux,compare=finished | when the last row was processed, or the run cut off
late_s | seconds lower | flux,elastic,compare=late | from when the last row was due until all were processed
behind_s | seconds lower | flux=behind | time at less than 85 % of what the workers could do, with input
recovered_s | seconds lower | flux=recovered | from when it fell behind until it no longer was
takeover_s | seconds lower | flux=takeover | the longest from a crash until its partitions had owners
full_rate_s | seconds lower | flux=full_rate | the longest from a crash to the full rate
prepared_s | seconds lower | fit | to make the planner, with its table
planned_s | seconds lower | fit | to make all plans
# stages
throughput | number higher rows/s | flux,elastic,ordered,compare | until it was through with the rows
of_capacity | share higher | flux | of what all workers could have done with the same rows
moves | count lower | flux,elastic,compare | of partitions
moved_bytes | bytes lower bytes | flux,elastic,compare=moved | state that went to another worker
processed | count higher | flux,elastic,compare | rows
left | count lower | flux,elastic,compare | rows due and not processed at the end
lost | count lower | flux | rows that died with a worker
shed | count lower | flux,elastic | rows that workers dropped as they filled up
on_disk_max | count lower | flux | partitions on disk at the same time
spilled_max | count lower | flux,compare | rows on disk at the same time
lost_state_bytes | bytes lower bytes | flux=lost_state | of partitions that began anew after a crash
lost_groups | count lower | flux | groups that lost tuples or state in a crash
mirrored | count lower | flux | tuples processed twice, for standby
standby_bytes | bytes lower bytes | flux=standby | sent for standby
workers | count neither | flux=summary. | of the stage
partitions | count neither | flux=summary. | of the stage
capacity | number higher rows/s | flux=summary. | of all workers undisturbed
busiest_worker | share lower | flux=summary. | of all work, at the start
hottest_partition | share lower | flux=summary. | of all work, in the hottest partition
static_full_at | number higher | flux=summary. | speed-up that fills the busiest worker
best_full_at | number higher | flux=summary. | the same, of the best placement of whole partitions
# scaling
worker_seconds | number lower s | elastic | that workers were there
idle_seconds | number lower s | elastic=idle | of these without work
pause_seconds | number lower s | elastic=pauses | the pauses of all partitions
shed_falsely | count lower | elastic | rows shed while the pool had room for all
shed_unevenly | count lower | elastic | rows shed while the workers there were had room
answers | count higher | elastic | matches that a join found
recall | share higher | elastic | answers of a join over those of a serial run
# shedding
of_optimum | share higher | fit | of the best that each tick allowed
of_optimum_full | share higher | fit | the same in ticks in which not all could be done
score | number higher tuples/s | fit | weighted output rate
error_p50 | share lower | fit | lost of the best score of a tick, in half of the ticks
error_p95 | share lower | fit | the same, in 95 % of the ticks
error_p99 | share lower | fit | the same, in 99 % of the ticks
overloaded | share lower | fit | of the ticks, in which more was kept than can be done
dropped | share lower | fit | of what the inputs gave
queue_drops | count lower | fit | tuples dropped at full queues
waiting | count lower | fit | tuples in queues at the end
plans | count neither | fit | different ones that were used
changes | count lower | fit | ticks in which a share changed
messages | count lower | fit | between nodes, to make plans
message_rows | count lower | fit | rows in them
message_bytes | bytes lower bytes | fit | bytes in them
unbound | count lower | fit=summary. | rows that no input is bound to
ticks | count neither | fit=summary. | all of them
full | count lower | fit=summary. | ticks in which not all that came could be done
optimum | number higher tuples/s | fit=summary. | the best score
# ordered workers
speed_up | ratio higher | ordered | throughput over that of one worker
partition_imbalance | ratio lower | ordered=imbalance | of the operator where it is worst
delegated | count neither | ordered | tuples left to the worker in their partition
blocked | count lower | ordered | sends that a full work queue ended
retries | count lower | ordered | outputs offered to a ring without room
ring_max | count lower | ordered | tuples of a ring in use, at most
order_violations | count lower | ordered=summary. | runs whose output differs from the serial run
speed_up_bound | ratio higher | ordered=summary. | by what one worker at a time has to do
# mechanisms
drop_rate | share lower | compare | share of the rows shed
worker_time_s | seconds lower | compare=worker_time | that workers were there, all together
paused_s | seconds lower | elastic,compare=paused | time in which some partition was paused
catch_up_s | seconds lower | elastic,compare=catch_up | longest time from a rescale until its backlog is gone
restarts | count lower | elastic,compare | changes of placement or workers, for which engines restart
sustainable | number higher rows/s | compare | the largest rate at which lag stays bounded, if it was asked for
idle_workers | number lower | compare | without work, on average
imbalance_max | ratio lower | compare | of rows, in the worst twentieth of the time
workers_mean | number lower | elastic,compare | over the time of the run
workers_max | count lower | elastic,compare | at any time
offered | number neither | compare=summary. | work of the busiest channel over what it can do
"""
"""A metric a line: its name; its kind, the better side, and a unit where it has one; where it is; what it is.

Where it is: kinds of artefacts, or groups of them, each followed by `=COLUMN` where the column has another name, and by
`=summary.COLUMN` or `=summary.` where it is in the summary. What does not fit the line goes on in the next.
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
    """The metric of a line of the table; a length of time has the unit that its name ends in."""
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
"""By name."""

ASKING_FOR_KEYS = frozenset(each.name for each in METRICS.values() if {Of.TRACE, Of.PLAN} <= each.places.keys())
"""Metrics of a trace for which its keys must be counted and placed."""
