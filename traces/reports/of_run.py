"""Report of a run: results over time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from adapt.core.charts.chart import Chart
from adapt.core.charts.over_time import imbalance_per_period, migration_per_period
from adapt.core.errors import BadInput
from adapt.core.fit.replay.charts import shedding_charts, statistics_charts
from adapt.core.fit.replay.tables import planners_shown, shedders_table
from adapt.core.mechanisms.charts import comparison_charts
from adapt.core.mechanisms.comparison import DID, marked, shown_tables
from adapt.core.mechanisms.recommendation import SHED
from adapt.core.ordered.replay.charts import ordered_charts
from adapt.core.phrases import counted, percent
from adapt.core.run import verdict_under
from adapt.core.stage.charts import dag_charts, elastic_charts, stage_charts
from adapt.core.stage.outcome import queues_in
from adapt.core.table import Kind, Table
from adapt.traces.reports.reported import Reported, reported_of, shown
from adapt.traces.store.manifest import Manifest
from adapt.traces.store.runs import StoredRun, read_run

Told: TypeAlias = tuple[Sequence[str], Sequence[Table], Sequence[Chart]]
"""Sentences, tables and charts of a run."""


def reported(path: Path, manifest: Manifest) -> Reported:
    """Results over time."""
    run = read_run(path)
    if run.mechanism not in _MECHANISMS:
        raise BadInput(f"{path} is a run of {run.mechanism}, which has no report")
    sentences, tables, charts = _MECHANISMS[run.mechanism](run)
    return reported_of(path, manifest, sentences, tables, charts)


def _repartition(run: StoredRun) -> Told:
    periods, tables = run.periods.records(), run.tables
    sentences = _of_periods(periods) if periods else ["No period has rows."]
    charts: Sequence[Chart] = (imbalance_per_period(run.periods), migration_per_period(run.periods))
    if "cases" not in tables:
        return sentences, [run.summary, run.periods], charts
    cases, summary = verdict_under(tables["cases"], run.summary)
    verdict = str(run.summary.records()[0]["verdict"])
    staged = stage_charts(tables["intervals"], tables["workers"], tables["moves"], queues_in(tables["cases"]))
    return [verdict, *sentences], [replace(cases, note=""), summary, run.periods], (*charts, *staged)


def _of_periods(periods: Sequence[Mapping[str, Any]]) -> list[str]:
    """The worst period, and the best possible imbalance there."""
    worst = max(periods, key=lambda row: float(row["imbalance"] or 0))
    is_first = worst is periods[0]
    sentences = [
        f"{counted(len(periods), 'period')}. The worst imbalance is {shown(worst['imbalance'], Kind.RATIO)}, in the"
        f" {'first period' if is_first else 'period'} from {shown(worst['start'], Kind.TIME)}; the best possible"
        f" there is {shown(worst['best_possible'], Kind.RATIO)}."
    ]
    if is_first and len(periods) > 1:
        after = max(periods[1:], key=lambda row: float(row["imbalance"] or 0))
        sentences.append(
            "The first period is placed by hashing alone, since there is no earlier period to build a plan from; the"
            f" worst later period has {shown(after['imbalance'], Kind.RATIO)}."
        )
    return sentences


def _flux(run: StoredRun) -> Told:
    tables = run.tables
    cases, summary = verdict_under(tables["cases"], run.summary)
    sentences = [str(run.summary.records()[0]["verdict"])]
    further = [tables[name] for name in ("crashes", "moves", "rounds") if tables[name].rows]
    charts = stage_charts(tables["intervals"], tables["workers"], tables["moves"], queues_in(tables["cases"]))
    return sentences, [replace(cases, note=""), summary, tables["intervals"], tables["workers"], *further], charts


def _flux_dag(run: StoredRun) -> Told:
    tables = run.tables
    cases, summary = verdict_under(tables["cases"], run.summary)
    sentences = [str(run.summary.records()[0]["verdict"])]
    further = [tables[name] for name in ("stages", "queries", "intervals", "workers", "moves", "crashes")]
    charts = dag_charts(tables["intervals"], tables["workers"])
    return sentences, [replace(cases, note=""), summary, *(each for each in further if each.rows)], charts


def _elastic_charts(tables: Mapping[str, Table], queues: str) -> tuple[Chart, ...]:
    return elastic_charts(
        tables["intervals"], tables["workers"], tables["moves"], tables.get("rescales"), queues=queues
    )


def _elastic(run: StoredRun) -> Told:
    tables = run.tables
    cases, summary = verdict_under(tables["cases"], run.summary)
    sentences = [str(run.summary.records()[0]["verdict"])]
    series = [tables[name] for name in ("rescales", "intervals", "workers", "moves") if tables[name].rows]
    told = [replace(cases, note=""), summary, *series]
    return sentences, told, _elastic_charts(tables, queues_in(tables["cases"]))


def _scenario(run: StoredRun) -> Told:
    tables = run.tables
    name = str(run.summary.records()[0]["scenario"])
    series = [tables[at] for at in ("sustained", "rescales", "intervals", "workers", "moves") if at in tables]
    charts = _elastic_charts(tables, queues_in(run.summary))
    return [f"Scenario {name} of a comparison."], [run.summary, *(each for each in series if each.rows)], charts


def _compare(run: StoredRun) -> Told:
    tables = run.tables
    first, *rest = shown_tables(tables, run.summary)
    told = run.summary.records()[0]
    columns = [column for column in run.summary.columns if column.name not in ("verdict", "holds")]
    summary = Table.from_rows(run.summary.title, columns, [[told[column.name] for column in columns]])
    sentences = [str(told["verdict"]), *([str(told["holds"])] if told.get("holds") else []), first.note]
    note = f"* marks the best value of each column, of scenarios that drop at most {percent(SHED)} of the rows."
    swept = [table.title for table in rest].index(DID)
    scenarios = replace(marked(tables["scenarios"]), note=note)
    shown_first = [*rest[:swept], scenarios, summary, *rest[swept + 1 :]]
    return sentences, shown_first, comparison_charts(tables)


def _fit(run: StoredRun) -> Told:
    tables = run.tables
    planners, summary = verdict_under(tables["planners"], run.summary)
    sentences = [str(run.summary.records()[0]["verdict"])]
    charts = shedding_charts(tables["planners"], tables["ticks"], tables["nodes"])
    if "errors" in tables:
        charts = (*charts, *statistics_charts(tables["errors"]))
    told = [
        replace(planners_shown(planners), note=""),
        summary,
        *shedders_table(tables["drops"]),
        *(tables[name] for name in _FURTHER if name in tables and tables[name].rows),
    ]
    return sentences, told, charts


def _ordered(run: StoredRun) -> Told:
    tables = run.tables
    workers, summary = verdict_under(tables["workers"], run.summary)
    sentences = [str(run.summary.records()[0]["verdict"])]
    further = [tables[name] for name in ("loads", "costs", "constants", "occupancy", "partitions") if name in tables]
    charts = ordered_charts(tables["workers"], tables["operators"], tables["occupancy"], tables.get("loads"))
    return sentences, [replace(workers, note=""), tables["operators"], summary, *further], charts


_FURTHER = ("traffic", "statistics", "estimates", "changes", "rules", "capacities")
"""Tables of a replay with load shedding, where it has them."""

_MECHANISMS: Mapping[str, Callable[[StoredRun], Told]] = {
    "repartition": _repartition,
    "flux": _flux,
    "flux-dag": _flux_dag,
    "elastic": _elastic,
    "fit": _fit,
    "ordered": _ordered,
    "scenario": _scenario,
    "compare": _compare,
}
