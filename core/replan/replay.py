"""Live replay: the splitter's loop in a stage, by trigger."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from adapt.core.flux.policies.load_policy import LoadBalancing
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import controller_of
from adapt.core.flux.policies.round_controller import MIN_COLLECTION_S
from adapt.core.partitioning.loop.triggers import EveryPeriod, OnViolation, Trigger, WhenWorth
from adapt.core.replan.decisions import Batches, Loop, Planned, ever_pinned
from adapt.core.replan.names import FLUX, TriggerName
from adapt.core.replan.outcome import ReplanOutcome, replan_outcome_of
from adapt.core.replan.placement import DecidedPlans
from adapt.core.replan.tables import cases_table, decisions_table, summary_table
from adapt.core.replan.units import Units
from adapt.core.run import run_as_data, verdict_under
from adapt.core.stage.assembly import Actors
from adapt.core.stage.case_tables import series_tables
from adapt.core.stage.conditions.settings import StageSettings, even_groups
from adapt.core.stage.control.workers import Scaling
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.offered_load import Bounds, Demand, bounds_of
from adapt.core.stage.outcome import outcome_of
from adapt.core.stage.replay_parameters import INTERVALS, Told, stage_parameters, telling
from adapt.core.stage.simulate import simulate
from adapt.core.table import Displayed, Table

MOST_ROUNDS = 10_000
"""Rounds of Flux in a replay at most: a stream of days has no use for statistics every 0.15 s."""


@dataclass(frozen=True, slots=True)
class Replan:
    """What a live replay runs, and when it adopts plans.

    Attributes:
        loop: The splitter's loop.
        triggers: Each is a case.
        period_us: Period of trigger period, and of the rebuild that worth compares with, in microseconds.
        hold_us: How long an imbalance must last beyond tolerance, in microseconds.
        move_cost: Rows that a worker processes in the time of moving one row of state. Default: from the stage's costs.
        compares: Whether to run what triggers are compared with.
    """

    loop: Loop
    triggers: tuple[TriggerName, ...]
    period_us: int
    hold_us: int = 0
    move_cost: float | None = None
    compares: bool = True

    @property
    def pool(self) -> int:
        """The most channels at any time."""
        return max(channels for _, channels in self.loop.schedule.steps)

    def trigger(self, name: TriggerName, settings: StageSettings) -> Trigger:
        """A trigger at its start."""
        if name is TriggerName.PERIOD:
            return EveryPeriod(self.period_us)
        if name is TriggerName.VIOLATION:
            return OnViolation(self.hold_us)
        return WhenWorth(self.period_us, self.cost_of_moving(settings))

    def cost_of_moving(self, settings: StageSettings) -> float:
        """Rows that a worker processes while a row of state is moved.

        It is serialized, then deserialized.
        """
        return 2 * settings.costs.marshal_s / settings.costs.service_s if self.move_cost is None else self.move_cost

    def parameters(self, settings: StageSettings) -> dict[str, Any]:
        """All parameters, as JSON data."""
        return {
            **self.loop.recipe.as_data(),
            "schedule": str(self.loop.schedule),
            "step_s": self.loop.step_us / 1e6,
            "window": str(self.loop.window.length),
            "weight": self.loop.weight.value,
            "triggers": [name.value for name in self.triggers],
            "period_s": self.period_us / 1e6,
            "hold_s": self.hold_us / 1e6,
            "move_cost": self.cost_of_moving(settings),
            "compares": self.compares,
        }


@dataclass(frozen=True, slots=True, repr=False)
class ReplanRun(Displayed):
    """Result of a live replay.

    Attributes:
        outcomes: One per case, doing nothing first.
        parameters: Everything but the stream that determines the result; JSON data.
    """

    mechanism: ClassVar[str] = "replan"

    outcomes: tuple[ReplanOutcome, ...]
    bounds: Bounds
    speedup: float
    parameters: Mapping[str, Any]

    def summary(self) -> Table:
        """The run in one row, with its verdict."""
        return summary_table(self.outcomes, self.bounds, self.speedup)

    def tables(self) -> dict[str, Table]:
        """`cases`, `decisions`, and the stage's series of all cases."""
        return {
            "cases": cases_table(self.outcomes),
            "decisions": decisions_table(self.outcomes),
            **series_tables([each.outcome for each in self.outcomes], self.bounds),
        }

    def shown(self) -> tuple[Table, Table]:
        """The cases with the verdict, and the rest of the summary."""
        return verdict_under(cases_table(self.outcomes), self.summary())

    def as_data(self) -> dict[str, Any]:
        """The run as JSON data."""
        return run_as_data(self.mechanism, self.parameters, self.summary(), self.tables())

    def displayed(self) -> list[Table]:
        """Summary and cases."""
        return [self.summary(), cases_table(self.outcomes)]


def replay_replan(
    batches: Batches,
    settings: StageSettings,
    reading: Reading,
    replan: Replan,
    *,
    told: Told | None = None,
) -> ReplanRun:
    """Run a stream through a stage whose splitter re-plans, once per trigger.

    What a trigger decides depends on earlier rows alone, and not on queues. So decisions are made in a pass of their
    own; then the stage moves the keys at the times of the decisions, with their state, while rows arrive.

    Args:
        batches: Reads the stream; twice per trigger, and once or twice for each other case.
        settings: The stage; its partitions are replaced.
        reading: How rows become tuples, at their times. Its partitions are those under Flux.
        told: Progress of each case.

    Raises:
        UsageError: an option does not fit the stage or another option.
        BadInput: the rows are not in time order, or a row has no time.
    """
    loop, speedup = replan.loop, reading.speedup or 1.0
    static = loop.static()
    decided = [loop.decided(name.value, replan.trigger(name, settings), batches) for name in replan.triggers]
    cases = [static, *decided, *([loop.in_sample(batches)] if replan.compares else [])]
    plans = [plan for case in cases for _, plan in case.plans]
    units = Units.from_plans(plans, ever_pinned(plans), replan.pool)
    owners = units.owners(static.plans[0][1])
    stage = _Stage.of(batches, settings, replace(reading, partitions=units.partitions), owners, replan)
    outcomes = []
    for case in cases:
        timed = [(since_us / 1e6 / speedup, plan) for since_us, plan in case.plans]
        placed = DecidedPlans(timed, units, replan.pool, loop.window.length, 1e6 * speedup)
        actors = Actors(scaling=Scaling(placed, placed, stage.step_s))
        outcomes.append(stage.outcome(case, actors, told))
    if replan.compares and len(loop.schedule.steps) == 1:
        by_flux = _Stage.of(batches, settings, reading, reading.partitions.owners, replan)
        collection_s = max(MIN_COLLECTION_S, stage.bounds.last_s / MOST_ROUNDS)
        controller = controller_of(FluxPolicy.LOAD, collection_s, LoadBalancing())
        outcomes.insert(-1, by_flux.outcome(Planned(FLUX, []), Actors(controller), told))
    parameters = stage_parameters(settings, reading, None) | replan.parameters(settings)
    return ReplanRun(tuple(outcomes), stage.bounds, speedup, parameters)


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """A stage with its partitions, and how it is sampled."""

    batches: Batches
    settings: StageSettings
    reading: Reading
    demand: Demand
    bounds: Bounds
    replan: Replan

    @classmethod
    def of(
        cls, batches: Batches, settings: StageSettings, reading: Reading, owners: NDArray[np.int32], replan: Replan
    ) -> "_Stage":
        """A stage whose partitions hold the rows of a window as state."""
        partitions = len(owners)
        placed = replace(settings, owners=owners, partition_of=even_groups(partitions, partitions), state_tuples=0)
        rows = reading.rows(lambda: batches(reading.columns))
        demand = Demand.from_chunks(rows.chunks(), placed)
        window = replan.loop.window.length
        share = window.size / (demand.all_rows if window.in_rows else demand.last_s * 1e6 * (reading.speedup or 1.0))
        state = np.asarray(demand.rows * min(1.0, share), np.int64)
        return cls(batches, replace(placed, state_tuples=state), reading, demand, bounds_of(demand, placed), replan)

    @property
    def step_s(self) -> float:
        """Simulated time between decisions."""
        return self.replan.loop.step_us / 1e6 / (self.reading.speedup or 1.0)

    def outcome(self, planned: Planned, actors: Actors, told: Told | None) -> ReplanOutcome:
        """Run a case."""
        steps = max(1, round(self.replan.period_us / self.replan.loop.step_us))
        per_step = max(1, math.ceil(INTERVALS * self.step_s / self.bounds.static_s))
        rows = self.reading.rows(lambda: self.batches(self.reading.columns))
        done = simulate(
            self.settings,
            rows,
            None,
            actors,
            interval_s=self.step_s / per_step,
            on_interval=telling(planned.case, told),
        )
        outcome = outcome_of(planned.case, done, self.bounds)
        return replan_outcome_of(
            outcome, planned.steps, self.replan.loop.schedule, steps * per_step, steps * self.replan.loop.step_us
        )
