"""Flux replay of a DAG of stages: static and with each policy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from adapt.core.flux.policies.registry import controller_of
from adapt.core.flux.replay.dag_tables import (
    DagInput,
    DagOutcome,
    cases_table,
    dag_series,
    queries_table,
    stages_table,
    summary,
    without_zeros,
)
from adapt.core.flux.replay.replay import Adapting, Conditions, FluxRun, Pace
from adapt.core.run import run_as_data, verdict_under
from adapt.core.stage.conditions.faults import FaultSchedule
from adapt.core.stage.dag.assembly import DagControl
from adapt.core.stage.dag.simulation import simulate_dag
from adapt.core.stage.engine.series import Interval
from adapt.core.stage.replay_parameters import Told, round_interval_s
from adapt.core.table import Displayed, Table


@dataclass(frozen=True, slots=True, repr=False)
class DagRun(Displayed):
    """Result of a Flux replay of a DAG of stages."""

    mechanism: ClassVar[str] = "flux-dag"

    outcomes: tuple[DagOutcome, ...]  # outcome of each case, static first
    parameters: Mapping[str, Any]  # all parameters of the replay, as JSON data

    def summary(self) -> Table:
        """The run as one row, with its verdict."""
        return summary(self.outcomes)

    def tables(self) -> dict[str, Table]:
        """Tables by case, stage, query, interval, worker, move and crash."""
        return {
            "cases": cases_table(self.outcomes),
            "stages": stages_table(self.outcomes),
            "queries": queries_table(self.outcomes),
            **dag_series(self.outcomes),
        }

    def shown(self) -> tuple[Table, ...]:
        """The cases with the verdict, the stages and the queries."""
        tables = self.tables()
        cases, rest = verdict_under(tables["cases"], self.summary())
        return *map(without_zeros, (cases, tables["stages"], tables["queries"])), rest

    def as_data(self) -> dict[str, Any]:
        """The run as JSON data."""
        return run_as_data(self.mechanism, self.parameters, self.summary(), self.tables())

    def displayed(self) -> list[Table]:
        """Summary, cases and stages."""
        tables = self.tables()
        return [self.summary(), tables["cases"], tables["stages"]]


AnyFluxRun: TypeAlias = FluxRun | DagRun
"""A run of one stage, or of several."""


def replay_dag(
    of: DagInput,
    adapting: Adapting,
    conditions: Conditions | None = None,
    pace: Pace | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    told: Told | None = None,
) -> DagRun:
    """Replay a stream through a DAG, static and with each policy.

    Args:
        parameters: Parameters to record with the run.
    """
    under, pace = conditions or Conditions(), pace or Pace()
    faults, settings = under.faults or FaultSchedule(), of.settings
    every_s = pace.interval_s or round_interval_s(pace.duration_s or of.least_s(faults))
    outcomes = []
    for case, chosen in adapting.cases().items():
        controller = controller_of(chosen.policy, adapting.min_collection_s, chosen.parameters)
        control = DagControl(controller, faults=faults, memory=under.memory)
        taken = 0

        def tell(intervals: list[Interval], case: str = case) -> None:
            nonlocal taken
            taken += sum(intervals[entry].generated for entry in settings.entries)
            if told is not None:
                told(case, intervals[0].end_s, taken // len(settings.entries))

        run = simulate_dag(settings, of.inputs, pace.duration_s, control, interval_s=every_s, on_interval=tell)
        outcomes.append(DagOutcome(case, run, of))
    return DagRun(tuple(outcomes), {**(parameters or {}), "interval_s": every_s})
