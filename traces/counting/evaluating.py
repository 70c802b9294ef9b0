"""Evaluating plans on every key, merged per channel."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import MEASURED, Frequencies
from adapt.core.engines.names import Engine
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.measures.tally import ExactSums, Tally, tallies
from adapt.core.partitioning.plans.evaluation import EvaluatedPlan, Evaluation, predicted_metrics, resources_of
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.problem.constraints import recorded_capacities, unequal_capacities
from adapt.core.stream import KeyType, Weight
from adapt.traces.counting.count import Counting
from adapt.traces.counting.count_cache import CountsFiles, counted, counts_files, summed_ascending
from adapt.traces.counting.exact import check_measurable, chosen_weight, key_sums, no_keys, rows_of_sums, too_heavy
from adapt.traces.counting.lossy import amount_column, key_column
from adapt.traces.locations.location import is_stored
from adapt.traces.locations.run_folders import MANIFEST
from adapt.traces.read_errors import readable
from adapt.traces.spark.executors import parallelism
from adapt.traces.spark.lazy import Column, DataFrame, F
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.progress import Progress, silent, watched
from adapt.traces.spark.runner import log_ran, runner_for, runs_on_spark
from adapt.traces.spark.session import (
    Batches,
    Spark,
    SparkOptions,
    carrying,
    literal_path,
    spark_failures,
    spark_session,
)
from adapt.traces.store.frequencies import counts_in_batches
from adapt.traces.store.manifest import read_manifest
from adapt.traces.store.trace import Trace, open_trace

NamedPlans = Sequence[tuple[str, Plan]]

KEYS_AT_ONCE = 1 << 18
"""Keys per batch when all are in this process."""

_PARQUET = b"PAR1"
_DOING = "routing all keys"
_KEY, _COUNT, _WRONG = "key", "counted", "wrong"


def evaluate_plans(
    plans: NamedPlans,
    source: Path,
    resources: Resources | None = None,
    *,
    weight: Weight | None = None,
    key_type: KeyType | None = None,
    spark_options: Spark = None,
    progress: Progress = silent,
) -> Evaluation:
    """Evaluate plans, and the migration between them, on every key.

    Long traces and Parquet counts are summed and routed inside Spark, so no machine holds all keys. Sums are exact, so
    the result is the same on any cluster and in this process.

    Args:
        plans: Named plans, at least one.
        source: A trace, exact counted keys, a CSV of key,count, or a Parquet file or folder with these two columns.
        resources: Loads and tolerances (default: those of the first plan).
        weight: What a row of a trace weighs (default: its cost if it has one, else 1).
        key_type: The type of the keys in a CSV (default: that of the first plan).
    """
    by = resources or resources_of([plan for _, plan in plans])
    with readable(source):
        if not source.exists():
            raise BadInput(f"{source} does not exist; give a trace, counted keys, or a CSV or Parquet of key,count")
        in_parquet = _is_parquet(source)
    if not in_parquet and source.is_dir() and read_manifest(source).kind == "trace":
        if key_type is not None:
            raise UsageError(f"--key-type needs a CSV of counts; {source} records the type of its keys")
        return _of_trace(plans, open_trace(source), by, weight, spark_options, progress)
    if in_parquet:
        for option, given in (("weight", weight), ("key-type", key_type)):
            if given is not None:
                raise UsageError(f"--{option} does not apply to counts in Parquet ({source})")
        return _of_parquet(plans, source, by, spark_options, progress)
    if source.is_file():
        key_type = key_type or plans[0][1].key_type
    found = counted(source, Counting(weight=weight), key_type=key_type, measure=by.sources, spark_options=spark_options)
    whole = None
    facts = read_manifest(source).summary if source.is_dir() else {}
    if facts and facts["keys"] > len(found.frequencies.keys) and not facts["complete_above"]:
        whole = counts_in_batches(source)
    return evaluate_counts(plans, found.frequencies, by, source, whole)


def evaluate_counts(
    plans: NamedPlans,
    frequencies: Frequencies,
    resources: Resources | None = None,
    name: object = "the input",
    all_keys: Iterable[pa.RecordBatch] | None = None,
) -> Evaluation:
    """As `evaluate_plans`, for counted keys in memory.

    Args:
        all_keys: The counts of all keys, where `frequencies` are only the heaviest.
    """
    whole = frequencies.weight is Weight.COUNT and frequencies.complete_above == 0
    lacks = frequencies.complete_above > 0 and all_keys is None
    if lacks or not (frequencies.exact or whole):  # only exact counters list keys of weight 0
        raise BadInput(f"{name} lacks some keys; give the trace, or count with --method exact")
    asked = _Asked.from_plans(plans, frequencies.key_type, resources, name)
    measured = {column.source: f"{MEASURED}{column.source}" for column in frequencies.measured}
    for source in asked.resources.sources:
        frequencies.column(source)  # refused if it was not measured
    parts = [
        tallies(
            asked.partitioners,
            batch.column("key"),
            batch.column("count_low").to_numpy(),
            asked.resources,
            {
                source: batch.column(measured.get(source, "count_low")).cast(pa.float64()).to_numpy()
                for source in asked.resources.sources
            },
        )
        for batch in all_keys or frequencies.to_arrow().to_batches(max_chunksize=KEYS_AT_ONCE)
        if len(batch)
    ]
    if not parts:
        raise no_keys(name)
    return asked.evaluation([reduce(Tally.plus, of_one) for of_one in zip(*parts, strict=True)], frequencies.weight)


def evaluate_frame(
    plans: NamedPlans,
    frame: DataFrame,
    resources: Resources | None = None,
    *,
    name: object = "the frame",
    partitions: int | None = None,
    progress: Progress = silent,
) -> Evaluation:
    """As `evaluate_plans`, for a Spark DataFrame of keys and counts.

    Args:
        partitions: Spark partitions of the sums (default: as the session shuffles).
    """
    keys, key_type = key_column(frame, "key")
    asked = _Asked.from_plans(plans, key_type, resources, name)
    amounts = {_COUNT: amount_column(frame, "count")}
    amounts |= {_measured(source): amount_column(frame, source) for source in asked.resources.sources}
    with spark_failures(_DOING), watched(frame.sparkSession, _DOING, progress):
        rows = frame.select(keys.alias(_KEY), *(column.alias(amount) for amount, (column, _) in amounts.items()))
        wrong = reduce(or_, (F.col(amount).isNull() | (F.col(amount) < 0) for amount in amounts))
        sums = [_summed(amount, whole).alias(amount) for amount, (_, whole) in amounts.items()]
        parted = rows.repartition(_KEY) if partitions is None else rows.repartition(partitions, _KEY)
        summed = parted.groupBy(_KEY).agg(*sums, F.max(wrong).alias(_WRONG))
        tally = _tallying(asked, Weight.COUNT, name)
        return _evaluation(asked, summed.mapInArrow(carrying(tally), _SCHEMA).toArrow(), Weight.COUNT, name)


def _of_trace(
    plans: NamedPlans,
    trace: Trace,
    resources: Resources,
    weight: Weight | None,
    spark_options: Spark,
    progress: Progress,
) -> Evaluation:
    chosen = chosen_weight(trace, weight)
    sources = dict(zip(resources.sources, check_measurable(trace, resources.sources), strict=True))
    asked = _Asked.from_plans(plans, trace.key_type, resources, trace.path)
    weights = list(dict.fromkeys([chosen, *sources.values()]))
    sums = key_sums(trace, weights, _DOING)
    tally = _tallying(asked, chosen, trace.path)

    def named(batches: Batches) -> Batches:
        for batch in batches:
            columns = {_KEY: batch.column(_KEY), _COUNT: batch.column(chosen)}
            columns |= {_measured(name): batch.column(of) for name, of in sources.items()}
            yield pa.RecordBatch.from_pydict(columns)

    runner = runner_for(rows_of_sums(trace, len(weights)), spark_options, progress)
    told = runner.from_sums(sums, lambda rows: tally(named(rows)), _SCHEMA)
    return _evaluation(asked, told, chosen, trace.path)


def _of_parquet(
    plans: NamedPlans, path: Path, resources: Resources, spark_options: Spark, progress: Progress
) -> Evaluation:
    columns = ("key", "count", *resources.sources)
    files = counts_files(path)
    stored = is_stored(path)
    if files.only_spark and (stored or (spark_options or SparkOptions()).runner is RunnerName.IN_PROCESS):
        remedy = "copy the files to a disk" if stored else "omit --master in-process"
        raise UsageError(f"{path}: folders by column, decimals and unsigned integers need Spark; {remedy}")
    if stored or not (runs_on_spark(files.rows, spark_options) or files.only_spark):
        _check_exist(columns, files.schema.names, path)
        log_ran(RunnerName.IN_PROCESS)
        progress(_DOING, 0, 0)
        return _of_rows(plans, files, resources)
    spark = spark_session(spark_options)
    log_ran(RunnerName.SPARK)
    with spark_failures(f"reading {path}"):
        frame = spark.read.parquet(literal_path(path.absolute()))
    _check_exist(columns, frame.columns, path)
    partitions = max(parallelism(spark), files.rows // KEYS_AT_ONCE)
    return evaluate_frame(plans, frame, resources, name=path, partitions=partitions, progress=progress)


def _check_exist(columns: Sequence[str], existing: Sequence[str], path: Path) -> None:
    for name in columns:
        if name not in existing:
            raise BadInput(f"{path}: column {name!r} does not exist{did_you_mean(name, existing)}")


def _of_rows(plans: NamedPlans, files: CountsFiles, resources: Resources) -> Evaluation:
    """As `evaluate_frame`, in this process."""
    asked = _Asked.from_plans(plans, files.key_type, resources, files.path)
    amounts = {_COUNT: "count"} | {_measured(source): source for source in resources.sources}
    rows = files.table(_KEY, amounts, _WRONG)
    for batch in rows.to_batches():
        _refuse_wrong(batch, str(files.path), Weight.COUNT)
    sums = summed_ascending(rows, _KEY, list(amounts))
    tally = _tallying(asked, Weight.COUNT, files.path)
    return _evaluation(
        asked,
        pa.Table.from_batches(tally(iter(sums.to_batches(max_chunksize=KEYS_AT_ONCE))), _ROW),
        Weight.COUNT,
        files.path,
    )


def _is_parquet(path: Path) -> bool:
    """Whether a file, or a folder that is not an artefact, holds Parquet."""
    if path.is_dir():
        return not (path / MANIFEST).exists() and any(path.rglob("*.parquet"))
    with path.open("rb") as file:
        return file.read(len(_PARQUET)) == _PARQUET


def _summed(column: str, whole: bool) -> Column:
    """The sum of a column in a group: null where whole numbers overflow; floats are added in ascending order."""
    if whole:
        return F.try_sum(column)
    return F.aggregate(F.array_sort(F.collect_list(column)), F.lit(0.0), lambda so_far, part: so_far + part)


def _measured(source: str) -> str:
    """The name of the sums of a measured column."""
    return f"measured {source}"


@dataclass(frozen=True, slots=True)
class _Asked:
    """The plans to evaluate, with their partitioners."""

    plans: NamedPlans
    partitioners: tuple[Partitioner, ...]
    resources: Resources

    @classmethod
    def from_plans(cls, plans: NamedPlans, key_type: KeyType, resources: Resources | None, source: object) -> "_Asked":
        # an engine alone places keys by their type in the source
        plans = [
            (name, replace(plan, key_type=key_type) if _is_engine(plan, key_type) else plan) for name, plan in plans
        ]
        for name, plan in sorted(plans, key=lambda named: not named[1].metrics):  # doing nothing last
            plan.check_keys(key_type, source, name)
        by = resources or resources_of([plan for _, plan in plans])
        return cls(plans, tuple(plan.dealer() for _, plan in plans), by)

    def evaluation(self, whole: Sequence[Tally], weight: Weight) -> Evaluation:
        """The evaluation from the tallies of all keys."""
        before = [None, *(plan for _, plan in self.plans[:-1])]
        found = zip(self.plans, before, self.partitioners, whole, strict=True)
        evaluated = tuple(
            EvaluatedPlan(
                name,
                plan,
                tally.metrics(partitioner, self.resources, _capacities(plan)),
                tally.channel_loads(self.resources),
                predicted_metrics(plan, previous, self.resources),
            )
            for (name, plan), previous, partitioner, tally in found
        )
        return Evaluation(evaluated, whole[0].keys, weight, self.resources)


def _is_engine(plan: Plan, key_type: KeyType) -> bool:
    return isinstance(plan.scheme, Engine) and plan.key_type.storage is key_type.storage


def _capacities(plan: Plan) -> Floats | None:
    """The channel capacities of a plan."""
    return unequal_capacities(recorded_capacities(plan.parameters, plan.channels))


def _tallying(asked: _Asked, weight: Weight, name: object) -> Callable[[Batches], Batches]:
    """What tallies keys, wherever they are; a row has a key, its sums, and optionally whether one is invalid."""
    partitioners, resources, where = asked.partitioners, asked.resources, str(name)

    def run(batches: Batches) -> Batches:
        so_far: list[Tally] = []
        for batch in batches:
            if batch.num_rows:
                _refuse_wrong(batch, where, weight)
                columns = {source: batch.column(_measured(source)).to_numpy() for source in resources.sources}
                counts = batch.column(_COUNT).to_numpy()
                found = tallies(partitioners, batch.column(_KEY), counts, resources, columns)
                so_far = [old.plus(new) for old, new in zip(so_far, found, strict=True)] if so_far else found
        yield from (_told(number, tally) for number, tally in enumerate(so_far))

    return run


def _evaluation(asked: _Asked, told: pa.Table, weight: Weight, name: object) -> Evaluation:
    """The evaluation from the tallies of all keys."""
    parts: dict[int, list[Tally]] = {}
    for row in told.to_pylist():
        channels = asked.partitioners[row["plan"]].channels
        parts.setdefault(row["plan"], []).append(_read(row, channels, asked.resources))
    if not parts:
        raise no_keys(name)
    return asked.evaluation([reduce(Tally.plus, parts[number]) for number in sorted(parts)], weight)


def _refuse_wrong(batch: pa.RecordBatch, where: str, weight: Weight) -> None:
    """Refuse keys with invalid counts."""
    if _WRONG in batch.schema.names and pc.any(batch.column(_WRONG)).as_py():
        key = batch.column(_KEY)[int(np.argmax(batch.column(_WRONG)))].as_py()
        raise BadInput(f"{where}: the counts of key {key!r} must be at least 0 and not null")
    for name in batch.schema.names:
        if name != _KEY and batch.column(name).null_count:
            raise too_heavy(where, weight if name == _COUNT else name)


_SCHEMA = (
    "plan int, keys bigint, moved_keys bigint, heaviest binary, tracked binary, tracked_loads binary,"
    " sums array<struct<of string, lowest int, limbs binary>>"
)
_MOVED = "moved"


def _told(number: int, tally: Tally) -> pa.RecordBatch:
    """The tally of one plan as a row, arrays as bytes."""
    sums = {load.value: each for load, each in tally.loads.items()}
    sums |= {} if tally.moved is None else {_MOVED: tally.moved}
    row = {
        "plan": number,
        "keys": tally.keys,
        "moved_keys": tally.moved_keys,
        "heaviest": tally.heaviest.astype("<f8").tobytes(),
        "tracked": tally.tracked.astype("<i4").tobytes(),
        "tracked_loads": tally.tracked_loads.astype("<f8").tobytes(),
        "sums": [
            {"of": of, "lowest": each.lowest, "limbs": each.limbs.astype("<u4").tobytes()} for of, each in sums.items()
        ],
    }
    return pa.RecordBatch.from_pylist([row], _ROW)


_ROW = pa.schema(
    [
        ("plan", pa.int32()),
        ("keys", pa.int64()),
        ("moved_keys", pa.int64()),
        *((name, pa.binary()) for name in ("heaviest", "tracked", "tracked_loads")),
        ("sums", pa.list_(pa.struct([("of", pa.string()), ("lowest", pa.int32()), ("limbs", pa.binary())]))),
    ]
)


def _read(row: dict[str, Any], channels: int, resources: Resources) -> Tally:
    """The tally of a row that `_told` wrote."""
    sums = {each["of"]: each for each in row["sums"]}

    def sums_of(name: str, groups: int) -> ExactSums:
        limbs = np.frombuffer(sums[name]["limbs"], "<u4").astype(np.int64)
        return ExactSums(limbs.reshape(groups, -1), sums[name]["lowest"])

    return Tally(
        keys=row["keys"],
        loads={load: sums_of(load.value, channels) for load in dict.fromkeys(resources.loads)},
        heaviest=np.frombuffer(row["heaviest"], "<f8"),
        tracked=np.frombuffer(row["tracked"], "<i4"),
        tracked_loads=np.frombuffer(row["tracked_loads"], "<f8"),
        moved_keys=row["moved_keys"],
        moved=sums_of(_MOVED, 1) if _MOVED in sums else None,
    )
