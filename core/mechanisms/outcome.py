"""Outcome of a scenario: its run and its row in the comparison."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adapt.core.elastic.replay.outcome import FEW, ElasticOutcome, Span, elastic_outcome_of
from adapt.core.elastic.replay.tables import elastic_series
from adapt.core.mechanisms.scenario import Staged
from adapt.core.mechanisms.scenarios import Scenario
from adapt.core.metrics import columns_named
from adapt.core.run import Run
from adapt.core.stage.engine.series import Interval
from adapt.core.stage.input.offered_load import Bounds
from adapt.core.stage.outcome import QUEUEING, outcome_of
from adapt.core.stage.simulate import Simulated
from adapt.core.table import Column, Kind, Table


@dataclass(frozen=True, slots=True)
class ScenarioRun(Run):
    """The result of a scenario."""

    mechanism: ClassVar[str] = "scenario"

    outcome: ElasticOutcome  # rows, latencies, workers
    bounds: Bounds  # upper bounds of its throughput
    staged: Staged  # its stage
    sustained: Table | None  # sustained rates, one row per number of channels; None if not measured
    parameters: Mapping[str, Any]  # everything that decides the result except the stream; JSON data

    def conclusion(self) -> str:
        """Which scenario it is."""
        return f"Scenario {self.outcome.case} of a comparison."

    def facts(self) -> Table:
        """One row with all outcomes."""
        return Table.from_rows("The scenario", OUTCOME_COLUMNS, [outcome_row(self.outcome, self.bounds, self.staged)])

    def summary(self) -> Table:
        """The same, as rows of a comparison."""
        return self.facts()

    def tables(self) -> dict[str, Table]:
        """The series of the stage, `rescales`, and `sustained` where measured."""
        sustained = {} if self.sustained is None else {"sustained": self.sustained}
        return {**elastic_series([self.outcome], self.bounds), **sustained}


_PARTS = 20
OUTCOME_COLUMNS = (
    Column("scenario"),
    *columns_named("throughput latency_p50 latency_p95 latency_p99"),
    QUEUEING,
    *columns_named("drop_rate worker_time idle_workers imbalance_max state_moved_bytes paused downtime rescales"),
    *columns_named("imbalance workers_mean workers_max catch_up lag_max drain finished processed unprocessed moves"),
    *columns_named("spilled_max merge_tuples messages message_bytes"),
    Column("load", Kind.NUMBER, "", "load of the busiest channel of the initial placement over its capacity"),
)
"""The outcomes of a scenario."""


def outcome_row(one: ElasticOutcome, bounds: Bounds, stage: Staged) -> list[str | int | float | None]:
    """The cells of `OUTCOME_COLUMNS`; latencies include those of merge messages."""
    outcome = one.outcome
    merges = stage.demand.all_rows - stage.rows_read
    processed = max(0, outcome.processed - merges)
    shed_rows = outcome.shed + stage.dropped
    in_all = processed + shed_rows + outcome.left
    rounds = sum(bool(each.moves) for each in outcome.simulated.rounds)
    throughput = processed / outcome.finished_s if outcome.finished_s else 0.0
    latencies = (outcome.total.share_below_s(share) for share in (0.5, 0.95, 0.99))
    shed = shed_rows / in_all if in_all else 0.0
    cost = one.worker_s, one.idle_s / one.ended_s, _worst_imbalance(one, stage.demand.last_s)
    moved = outcome.moved_bytes, one.paused_s, one.downtime_s, one.restarts + rounds
    workers = one.imbalance, one.mean_workers, one.most_workers, one.catch_up_s
    rows = outcome.lag, outcome.late_s, outcome.finished_s, processed, outcome.left
    spilled = max(each.spilled for each in outcome.simulated.intervals)
    counts = len(outcome.simulated.moves), spilled, merges, stage.sent.messages, stage.sent.size
    quality = one.case, throughput, *latencies, outcome.queueing, shed
    return [*quality, *cost, *moved, *workers, *rows, *counts, bounds.static_load]


def _worst_imbalance(one: ElasticOutcome, last_s: float) -> float | None:
    """Imbalance in the worst twentieth of the input; None if all have too few rows."""
    parts: dict[int, list[tuple[Interval, Span]]] = {}
    for pair in zip(one.outcome.simulated.intervals, one.spans, strict=True):
        if pair[0].start_s < last_s:
            parts.setdefault(int(_PARTS * pair[0].start_s / last_s), []).append(pair)
    worst = []
    for pairs in parts.values():
        by_worker = np.sum([interval.by_worker for interval, _ in pairs], axis=0)
        workers = max(span.most for _, span in pairs)
        if by_worker.sum() >= FEW * workers:
            worst.append(float(by_worker.max()) * workers / float(by_worker.sum()))
    return max(worst, default=None)


def outcome_of_scenario(scenario: Scenario, stage: Staged, done: Simulated) -> ElasticOutcome:
    """The outcome of a simulated scenario."""
    return elastic_outcome_of(outcome_of(scenario.name, done, stage.bounds))
