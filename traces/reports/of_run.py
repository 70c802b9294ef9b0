"""Report of a run: results over time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from adapt.core.charts.chart import Chart
from adapt.core.charts.over_time import imbalance_per_period, migration_per_period
from adapt.core.errors import BadInput
from adapt.core.fit.replay.charts import shedding_charts, statistics_charts
from adapt.core.fit.replay.tables import planners_shown, shedders_table
from adapt.core.mechanisms.charts import comparison_charts
from adapt.core.mechanisms.comparison import DID, marked, shown_tables
from adapt.core.ordered.replay.charts import ordered_charts
from adapt.core.run import parted
from adapt.core.stage.charts import dag_charts, elastic_charts, stage_charts
from adapt.core.stage.outcome import queues_in
from adapt.core.table import Table
from adapt.traces.reports.reported import Reported, reported_of
from adapt.traces.store.manifest import Manifest
from adapt.traces.store.runs import read_run

Tables: TypeAlias = Mapping[str, Table]

Told: TypeAlias = tuple[Sequence[Table], Sequence[Chart]]
"""Tables and charts of a run."""


def reported(path: Path, manifest: Manifest) -> Reported:
    """Results over time."""
    run = read_run(path)
    if run.mechanism not in _MECHANISMS:
        raise BadInput(f"{path} is a run of {run.mechanism}, which has no report")
    said, facts = parted(run.summary)
    said = said or [f"A run of {run.mechanism}."]
    return reported_of(path, manifest, said, *_MECHANISMS[run.mechanism](run.tables, facts))


def _repartition(tables: Tables, facts: Table) -> Told:
    charts: Sequence[Chart] = (imbalance_per_period(tables["periods"]), migration_per_period(tables["periods"]))
    if "cases" not in tables:
        return [facts, tables["periods"]], charts
    staged = stage_charts(tables["intervals"], tables["workers"], tables["moves"], queues_in(tables["cases"]))
    return [tables["cases"], facts, tables["periods"]], (*charts, *staged)


def _flux(tables: Tables, facts: Table) -> Told:
    further = [tables[name] for name in ("crashes", "moves", "rounds") if tables[name].rows]
    charts = stage_charts(tables["intervals"], tables["workers"], tables["moves"], queues_in(tables["cases"]))
    return [tables["cases"], facts, tables["intervals"], tables["workers"], *further], charts


def _flux_dag(tables: Tables, facts: Table) -> Told:
    further = [tables[name] for name in ("stages", "queries", "intervals", "workers", "moves", "crashes")]
    charts = dag_charts(tables["intervals"], tables["workers"])
    return [tables["cases"], facts, *(each for each in further if each.rows)], charts


def _elastic_charts(tables: Mapping[str, Table], queues: str) -> tuple[Chart, ...]:
    return elastic_charts(
        tables["intervals"], tables["workers"], tables["moves"], tables.get("rescales"), queues=queues
    )


def _elastic(tables: Tables, facts: Table) -> Told:
    series = [tables[name] for name in ("rescales", "intervals", "workers", "moves") if tables[name].rows]
    return [tables["cases"], facts, *series], _elastic_charts(tables, queues_in(tables["cases"]))


def _scenario(tables: Tables, facts: Table) -> Told:
    series = [tables[at] for at in ("sustained", "rescales", "intervals", "workers", "moves") if at in tables]
    charts = _elastic_charts(tables, queues_in(facts))
    return [facts, *(each for each in series if each.rows)], charts


def _compare(tables: Tables, facts: Table) -> Told:
    first, *rest = shown_tables(tables)
    swept = [table.title for table in rest].index(DID)
    scenarios = replace(marked(tables["scenarios"]), note=first.note)
    return [*rest[:swept], scenarios, facts, *rest[swept + 1 :]], comparison_charts(tables)


def _fit(tables: Tables, facts: Table) -> Told:
    charts = shedding_charts(tables["planners"], tables["ticks"], tables["nodes"])
    if "errors" in tables:
        charts = (*charts, *statistics_charts(tables["errors"]))
    told = [
        planners_shown(tables["planners"]),
        facts,
        *shedders_table(tables["drops"]),
        *(tables[name] for name in _FURTHER if name in tables and tables[name].rows),
    ]
    return told, charts


def _ordered(tables: Tables, facts: Table) -> Told:
    further = [tables[name] for name in ("loads", "costs", "constants", "occupancy", "partitions") if name in tables]
    charts = ordered_charts(tables["workers"], tables["operators"], tables["occupancy"], tables.get("loads"))
    return [replace(tables["workers"], note=""), tables["operators"], facts, *further], charts


_FURTHER = ("traffic", "statistics", "estimates", "changes", "rules", "capacities")
"""Tables of a replay with load shedding, where it has them."""

_MECHANISMS: Mapping[str, Callable[[Tables, Table], Told]] = {
    "repartition": _repartition,
    "flux": _flux,
    "flux-dag": _flux_dag,
    "elastic": _elastic,
    "fit": _fit,
    "ordered": _ordered,
    "scenario": _scenario,
    "compare": _compare,
}
