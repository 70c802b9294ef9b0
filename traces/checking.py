"""Read the metrics of artefacts for a check, without Java where possible."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError, loads
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapt.core.check.facts import Fact, Facts, Interval, fact_of, facts_of_table, of_top_share, with_derived
from adapt.core.check.limit import Limit, read_limits
from adapt.core.engines.names import SCHEMES_BY_NAME, AnyScheme, Engine
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.metrics import ASKING_FOR_KEYS, ROWS, SUMMARY, Of
from adapt.core.units.seals import hash_of
from adapt.traces.locations.location import location
from adapt.traces.locations.run_folders import in_run, is_artefact, is_table
from adapt.traces.read_errors import parsed, readable
from adapt.traces.scheme_names import scheme_named
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.session import Spark
from adapt.traces.store.manifest import Manifest, note_readings, read_manifest, verify

if TYPE_CHECKING:
    from adapt.core.partitioning.measures.metrics import Metrics
    from adapt.core.partitioning.measures.population import Population
    from adapt.core.partitioning.plans.plan import Plan

DEFAULT_ENGINE = Engine.SPARK.value
"""Default engine that places the keys of a trace."""

DEFAULT_CHANNELS = 8
"""Default number of channels for the keys of a trace."""

_CHAIN = ("scheme", "construction", "channels")
_EVALUATION, _COMPARISON, _PLAN = "adapt.evaluation", "adapt.comparison", "adapt.plan"


@dataclass(frozen=True, slots=True)
class Placing:
    """How to place counted keys for a check."""

    engine: str = DEFAULT_ENGINE  # name of a scheme, or file of a plan
    channels: int | None = None  # number of channels. None: that of the plan, or else `DEFAULT_CHANNELS`
    exact: bool = False  # whether to count a trace exactly


def limits_of_file(path: Path) -> list[Limit]:
    """Read a limits file."""
    return parsed(path, read_limits)


def facts_of(
    path: Path,
    limits: Sequence[Limit],
    placing: Placing | None = None,
    *,
    check_all: bool = False,
    spark_options: Spark = None,
    progress: Progress = silent,
) -> Facts:
    """Metrics of one artefact.

    Args:
        path: A plan, a comparison, a run, a trace, counted keys, a CSV of key,count, or the JSON of an evaluation or a
            comparison.
        limits: Limits to check; the keys of a trace are counted only if needed.
        placing: How to place counted keys.
        check_all: Verify every byte of a folder against its manifest first.
        spark_options: Where Spark runs, if a trace is counted.
    """
    how = placing or Placing()
    with readable(path):
        path = in_run(path)
        if is_table(path):
            return _of_counts(path, how)
        if path.is_file():
            return _of_json(path)
        if not path.exists():
            raise BadInput(
                f"{path} does not exist; give an artefact written by `adapt ingest`, `partition` or `replay`"
            )
        manifest = read_manifest(path)
        note_readings(path, manifest.readings(path.name))
        if check_all:
            verify(path, manifest)
    match manifest.kind:
        case "trace":
            return _of_trace(path, manifest, limits, how, spark_options, progress)
        case "frequencies":
            return _of_counts(path, how)
        case "comparison":
            return _of_comparison(path, manifest)
        case "run":
            return _of_run(path)
    raise BadInput(f"{path} is a {manifest.kind}, which has no metrics")


def places_keys(path: Path, limits: Sequence[Limit] | None = None) -> bool:
    """Whether an artefact has keys that `Placing` places.

    Args:
        limits: Limits that a trace's keys are counted for; None for any.
    """
    with readable(path):
        if not is_artefact(path):
            return is_table(path)
        kind = read_manifest(path).kind if path.exists() else ""
    return kind == "frequencies" or (kind == "trace" and (limits is None or _ask_for_keys(limits)))


def has_partitions(path: Path) -> bool:
    """Whether a trace has the partition of each row."""
    from adapt.traces.store.trace import PARTITION

    return path.is_dir() and PARTITION in read_manifest(path).summary.get("columns", ())


def _ask_for_keys(limits: Sequence[Limit]) -> bool:
    return any(limit.metric.name in ASKING_FOR_KEYS for limit in limits)


def _of_json(path: Path) -> Facts:
    """Metrics of a plan, or of a document printed by `--format json`."""
    with readable(path):
        raw = path.read_bytes()
    try:
        data = loads(raw)
    except (JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{path} is not a plan or another artefact that can be checked: not JSON ({error})") from error
    family, _, version = str(data.get("schema", "") if isinstance(data, dict) else "").partition("/")
    if family == _PLAN:
        return _of_plan(path, data)
    if family not in (_EVALUATION, _COMPARISON):
        raise BadInput(f"{path} is not a plan, evaluation or comparison: no such schema in field 'schema'")
    if version not in ("1", "2"):
        raise BadInput(f"{path}: schema must be {family}/2 (got {family}/{version})")
    labels: tuple[str, ...] = _CHAIN
    try:
        if family == _EVALUATION:
            kind, labels = Of.EVALUATION, ("plan", *_CHAIN)
            rows = [{**each["measured"], **{name: each[name] for name in labels}} for each in data["plans"]]
        else:
            kind, rows = Of.COMPARISON, data["rows"]
        facts = [with_derived(fact_of(_checked(row), labels), alike=False) for row in rows]
        return Facts(str(path), kind, hash_of(data), {ROWS: facts})
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadInput(f"{path} is damaged: {error}; make it again with --format json") from error


def _of_plan(path: Path, data: Mapping[str, Any]) -> Facts:
    from adapt.traces.store.plan_json import check_plan_seal, readings_of_plan

    if not check_plan_seal(path, data) or data.get("explicit_file") is not None:
        from adapt.traces.store.plans import read_plan

        plan = read_plan(path)
        named: dict[str, Any] = {
            "scheme": plan.scheme.value,
            "construction": plan.construction and plan.construction.value,
            "channels": plan.channels,
        }
        content, metrics, parameters = plan.content_hash(), plan.metrics, plan.parameters
    else:
        readings_of_plan(path, data)
        named = {name: data[name] for name in _CHAIN}
        content, metrics, parameters = data["content_hash"], data.get("metrics", {}), data["parameters"]
    try:
        fact = fact_of(_checked({**metrics, **named}), _CHAIN)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{path}: plan field 'metrics': {error}") from error
    alike = "capacities" not in parameters
    return Facts(str(path), Of.PLAN, content, {ROWS: [with_derived(fact, alike=alike) if metrics else fact]})


def _checked(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row after checking that every cell except the labels is a number or null."""
    for name, cell in row.items():
        if name not in ("plan", *_CHAIN) and cell is not None and type(cell) not in (int, float):
            raise ValueError(f"{name} must be a number (got {cell!r})")
    return row


def _of_comparison(path: Path, manifest: Manifest) -> Facts:
    from adapt.traces.store.tables import read_rows

    verify(path, manifest)
    alike = "capacities" not in manifest.made.parameters
    rows = [with_derived(fact, alike=alike) for fact in facts_of_table(read_rows(path, manifest), _CHAIN)]
    return Facts(str(path), Of.COMPARISON, manifest.content_hash, {ROWS: rows})


CASES = "cases"
"""The table of a live repartition run with one row per case."""

_RUNS: Mapping[str, tuple[Of, str, tuple[str, ...]]] = {
    "repartition": (Of.REPARTITION, "periods", ("period", "channels")),
    "flux": (Of.FLUX, "cases", ("case",)),
    "elastic": (Of.ELASTIC, "cases", ("case",)),
    "fit": (Of.FIT, "planners", ("planner",)),
    "ordered": (Of.ORDERED, "workers", ("workers",)),
    "compare": (Of.MECHANISMS, "scenarios", ("scenario",)),
}
"""By mechanism: kind of run, table of measured rows, and label columns."""


def _of_run(path: Path) -> Facts:
    from adapt.traces.store.runs import read_run

    run = read_run(path)
    if run.mechanism not in _RUNS:
        raise BadInput(f"{path} is a run of {run.mechanism}, which has no metrics")
    kind, table, labels = _RUNS[run.mechanism]
    rows = facts_of_table(run.tables[table], labels)
    if kind is Of.REPARTITION:
        rows = [with_derived(row) for row in rows]
    found = {ROWS: rows, SUMMARY: facts_of_table(run.summary, ())}
    if kind is Of.REPARTITION and CASES in run.tables:
        found[CASES] = facts_of_table(run.tables[CASES], ("case",))
    return Facts(str(path), kind, run.manifest.content_hash, found)


def _of_trace(
    path: Path, manifest: Manifest, limits: Sequence[Limit], placing: Placing, spark_options: Spark, progress: Progress
) -> Facts:
    try:
        summary = manifest.summary
        profile = summary["profile"]
        known = {
            "rows": summary["rows"],
            "keys": profile["distinct_keys"],
            "rejected": summary["rejects"]["rows"],
            "null_keys": profile["facts"]["null_keys"],
            "empty_keys": profile["facts"]["empty_keys"],
        }
    except (KeyError, TypeError) as error:
        raise BadInput(f"{path} is damaged: its manifest has no {error}; ingest the source again") from error
    fact = fact_of(known, ())
    if _ask_for_keys(limits):
        placed, _ = _placed(path, placing, spark_options, progress)
        fact = Fact(placed.where, {**placed.values, **fact.values})
    return Facts(str(path), Of.TRACE, manifest.content_hash, {ROWS: [fact]})


def _of_counts(path: Path, placing: Placing) -> Facts:
    fact, content = _placed(path, placing, None, silent)
    return Facts(str(path), Of.COUNTS, content, {ROWS: [fact]})


def _placed(path: Path, placing: Placing, spark_options: Spark, progress: Progress) -> tuple[Fact, str]:
    """Metrics of the keys of a trace, or of counted keys, under a scheme or a plan; and their content hash."""
    from adapt.core.counting.frequencies import top_share
    from adapt.core.counting.names import CountMethod
    from adapt.core.partitioning.build import Recipe, hashers_of
    from adapt.core.partitioning.measures.cells import base_of
    from adapt.core.partitioning.measures.resources import Resources
    from adapt.core.partitioning.plans.evaluation import resources_of
    from adapt.traces.counting.count import Counting
    from adapt.traces.counting.count_cache import counted
    from adapt.traces.counting.population import population_of

    scheme, plan = placed_by(placing)
    channels = plan.channels if plan else placing.channels or DEFAULT_CHANNELS
    resources = resources_of([plan]) if plan else Resources()
    method = CountMethod.EXACT if placing.exact else CountMethod.LOSSY
    with readable(path):
        csv_type = plan.key_type if plan and is_table(path) else None
    how = Counting(method, channels=channels, resources=resources)
    keys = counted(
        path, how, key_type=csv_type, measure=resources.sources, spark_options=spark_options, progress=progress
    )
    found = keys.frequencies
    hashers = [(base_of(plan.partitioner()),)] if plan else hashers_of(Recipe(scheme), found, [channels])
    population = population_of(keys.trace, found, hashers, [plan], spark_options=spark_options, progress=progress)
    metrics = _by_plan(path, population, plan) if plan else _by_scheme(population, scheme, channels)
    where = {"engine": placing.engine, "channels": str(channels)}
    fact = with_derived(fact_of({**metrics, "channels": channels, "rows": found.rows, "keys": found.distinct}, ()))
    share = top_share(found)
    values = {**fact.values, **of_top_share(None if share is None else Interval(*share))}
    return Fact(where, values), keys.fingerprint


def placed_by(placing: Placing) -> "tuple[AnyScheme, Plan | None]":
    """The scheme, or the plan given instead."""
    known = scheme_named(placing.engine, SCHEMES_BY_NAME.values())
    if known is not None:
        return known, None
    path = location(placing.engine)
    with readable(path):
        path = in_run(path)
        if not path.exists():
            near = did_you_mean(placing.engine, SCHEMES_BY_NAME)
            raise UsageError(f"--engine must be a plan or a scheme (got {placing.engine!r}){near}")
    from adapt.traces.store.plans import read_plan

    plan = read_plan(path)
    if placing.channels not in (None, plan.channels):
        raise UsageError(
            f"--channels {placing.channels}: {path} is a plan for {plan.channels} workers; omit --channels"
        )
    return plan.scheme, plan


def _by_scheme(population: "Population", scheme: AnyScheme, channels: int) -> Mapping[str, Any]:
    from adapt.core.partitioning.build import Recipe, build_plan

    return build_plan(population, Recipe(scheme), channels).metrics


def _by_plan(path: Path, population: "Population", plan: "Plan") -> Mapping[str, Any]:
    from adapt.core.partitioning.measures.metrics import evaluate
    from adapt.core.partitioning.plans.evaluation import resources_of
    from adapt.core.partitioning.problem.at_random import spread_at_random
    from adapt.core.partitioning.problem.constraints import recorded_capacities, unequal_capacities

    plan.check_keys(population.frequencies.key_type, path)
    capacities = unequal_capacities(recorded_capacities(plan.parameters, plan.channels))
    spread = spread_at_random(population, plan.hashing, plan.channels, plan.explicit)
    found: Metrics = evaluate(plan.partitioner(), spread, resources_of([plan]), None, capacities)
    return found.as_data()
