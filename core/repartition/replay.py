"""Repartitioning replay: imbalance and migration over time, in a stage if live."""

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.counting.exact import KeyCounts, frequencies_of, merge
from adapt.core.errors import UsageError
from adapt.core.flux.policies.load_policy import MIN_COLLECTION_S, LoadBalancing
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import controller_of
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.keys.partitioner import ByColumn, Channels, Partitioner
from adapt.core.metrics import column_named
from adapt.core.partitioning.build import build_partitioner
from adapt.core.partitioning.measures.cells import Hasher, base_of, cells_of
from adapt.core.partitioning.measures.resources import listed_loads
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.repartition.decisions import Batches, Replan, Step, decided
from adapt.core.repartition.names import FLUX, IN_SAMPLE, STATIC
from adapt.core.repartition.outcome import BRIEF, LiveOutcome, cases_table, live_conclusion, live_outcome_of
from adapt.core.repartition.periods import (
    PeriodOutcome,
    RecentKeys,
    channels_table,
    conclusion_of,
    periods_table,
    placements_table,
    state_column,
    summary_table,
)
from adapt.core.run import Run
from adapt.core.stage.charts import series_tables
from adapt.core.stage.conditions.settings import StageSettings, even_groups
from adapt.core.stage.control.workers import Decision, Placed, Scaling, Seen, Waiting
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.mini_partitions import MOST, MiniPartitions
from adapt.core.stage.input.offered_load import Bounds, Demand, bounds_of, network_s
from adapt.core.stage.input.speed import LEAST_PERIOD_S
from adapt.core.stage.outcome import INTERVALS, Told, outcome_of, stage_parameters, telling
from adapt.core.stage.simulate import Actors, simulate
from adapt.core.stream import KeyType, Weight
from adapt.core.table import Column, Table
from adapt.core.units.settings import SettingError


@dataclass(frozen=True, slots=True, eq=False)
class DecidedPlan:
    """A plan with the time of its decision."""

    at_s: float  # simulated seconds
    workers: int
    owners: NDArray[np.int32]  # the worker of each unit, shape (units,)
    state: Floats  # state of each unit in tuples, as the decision counted it; likewise


class DecidedPlans:
    """Puts each plan in force at the time of its decision.

    While partitions move, later plans wait.
    """

    def __init__(self, plans: Sequence[DecidedPlan], pool: int) -> None:
        """Start with the first plan; times rise."""
        self._plans, self.pool = plans, pool
        self.least = plans[0].workers
        self._at = 0

    def decide(self, seen: Seen, waiting: Waiting) -> tuple[Decision, Waiting]:
        """The last plan that was decided by now."""
        in_force = self._at
        while self._at + 1 < len(self._plans) and self._plans[self._at + 1].at_s <= seen.at_s * (1 + 1e-9):
            self._at += 1
        return Decision(self._plans[self._at].workers, rebuild=self._at > in_force), waiting

    def count(self, partitions: NDArray[np.int32], cost_s: Floats, times_s: Floats) -> None:
        """Nothing: the decisions have counted."""

    def place(self, _workers: int) -> Placed:
        """The plan in force."""
        plan = self._plans[self._at]
        return Placed(plan.owners, plan.state, np.rint(plan.state).astype(np.int64))


@dataclass(frozen=True, slots=True)
class Bases(ByColumn):
    """Numbers keys by their base channels, for several channel counts.

    Keys with one number share their base channel at each count, so they move together: arcs of the ring, or sets of
    partitions of an engine.
    """

    each: tuple[Hasher, ...]

    @property
    def channels(self) -> int:
        """How many numbers there are."""
        return math.prod(base.channels for base in self.each)

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The number of each key; shape (keys,)."""
        return cells_of([base.channels_of(keys) for base in self.each], self.each, len(keys)).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Units:
    """The units of migration of some plans, as partitions of a stage.

    A key that a plan pins is a unit of its own, also while it is hashed. The other keys are a unit if they have the
    same base channels. They come after the pinned keys.
    """

    own: ExplicitMap  # the keys that any plan pins, numbered in key order
    bases: Bases  # the base of each channel count
    partitions: MiniPartitions  # the units as partitions of a pool of workers; some of the last have no keys

    @classmethod
    def from_plans(cls, plans: Sequence[Partitioner], key_type: pa.DataType, pool: int) -> "Units":
        """The units that these plans move among a pool of workers.

        Args:
            key_type: Of the keys.
        """
        own = _ever_pinned(plans, key_type)
        of_count = {plan.channels: base_of(plan) for plan in plans}
        bases = Bases(tuple(of_count[channels] for channels in sorted(of_count)))
        units = len(own) + bases.channels
        if units > MOST:
            raise UsageError(
                f"the schedule has too many numbers of channels: {', '.join(map(str, sorted(of_count)))} divide the"
                f" keys into {units:,} units of migration, at most {MOST:,} are possible; give fewer numbers"
            )
        return cls(own, bases, MiniPartitions(pool, -(-units // pool), partitioner=bases, own=own))

    @property
    def count(self) -> int:
        """Partitions, with or without keys."""
        return self.partitions.count

    def owners(self, plan: Partitioner) -> NDArray[np.int32]:
        """The worker of each unit by a plan.

        Shape (count,); 0 for units without keys.
        """
        owners: NDArray[np.int32] = np.zeros(self.count, np.int32)
        owners[: len(self.own)] = plan.channels_of(self.own.column)
        sizes = [base.channels for base in self.bases.each]
        at = sizes.index(plan.channels)
        numbers = np.arange(self.bases.channels)
        owners[len(self.own) : len(self.own) + len(numbers)] = numbers // math.prod(sizes[at + 1 :]) % sizes[at]
        return owners


def _ever_pinned(plans: Sequence[Partitioner], key_type: pa.DataType) -> ExplicitMap:
    """All keys that some plan pins, numbered in key order."""
    pinned = [plan.explicit.column for plan in plans if isinstance(plan, HybridPartitioner) and len(plan.explicit)]
    keys = pa.chunked_array(pinned, type=None if pinned else key_type).unique()
    return ExplicitMap(ExplicitMap(keys, np.zeros(len(keys))).column, np.arange(len(keys)))


MOST_LIVE_STEPS = 10_000
"""Most steps of a replay in a stage, unless it has more rows."""

MOST_ROUNDS = 10_000
"""Rounds of Flux in a replay at most: a stream of days has no use for statistics every 0.15 s."""


@dataclass(frozen=True, slots=True)
class Live:
    """A stage that runs what was decided."""

    settings: StageSettings  # the stage; its partitions are replaced
    reading: Reading  # how rows become tuples, at their times. Its partitions are those under Flux
    told: Told | None = None  # progress of each case

    @property
    def speedup(self) -> float:
        """Seconds of the trace in a simulated second."""
        return self.reading.speedup or 1.0


@dataclass(frozen=True, slots=True, repr=False)
class RepartitionRun(Run):
    """Result of a repartitioning replay."""

    mechanism: ClassVar[str] = "repartition"
    brief: ClassVar[str] = BRIEF

    outcomes: tuple[PeriodOutcome, ...]  # one per step
    parameters: Mapping[str, Any]  # everything but the stream that determines the result; JSON data
    live: tuple[LiveOutcome, ...] = ()  # outcomes in the stage, doing nothing first, if it was simulated
    bounds: Bounds | None = None  # of its performance

    @property
    def is_timed(self) -> bool:
        """Whether rows arrive in a stage."""
        return bool(self.live)

    def conclusion(self) -> str:
        """Whether to rebuild."""
        trigger = self.parameters["trigger"]
        when = {"period": f"every {self.parameters['period']}", "violation": "on a violation"}.get(
            trigger, "when worth it"
        )
        if self.live:
            return live_conclusion(self.live, trigger, when)
        return conclusion_of(self.outcomes, when, self._state)

    @property
    def _state(self) -> Column:
        is_measured = "measured" in self.parameters
        return state_column(self.parameters["weight"], "" if is_measured else self.parameters["resources"])

    def facts(self) -> Table:
        """The run in one row."""
        periods = summary_table(self.outcomes)
        if self.bounds is None:
            return periods
        full_at, _ = self.bounds.full_at(self.parameters["speedup"] or 1.0)
        columns = (*periods.columns, column_named("static_full_at"))
        return replace(periods, columns=columns, rows=((*periods.rows[0], full_at),))

    def tables(self) -> dict[str, Table]:
        """`periods`, `channels` by period; if live, `cases` and their series."""
        tables = {"periods": periods_table(self.outcomes), "channels": channels_table(self.outcomes)}
        if self.bounds is None:
            return tables
        series = series_tables([each.outcome for each in self.live], self.bounds)
        return tables | {"cases": cases_table(self.live)} | series

    def leading(self) -> Table:
        """The cases if live, else the placements."""
        return Run.leading(self) if self.live else placements_table(self.outcomes, self._state)

    def shown(self) -> list[Table]:
        """Facts and periods, after the cases if live."""
        cases = [cases_table(self.live)] if self.live else []
        return [*cases, self.facts(), periods_table(self.outcomes)]


def replay_repartition(
    batches: Batches, replan: Replan, live: Live | None = None, *, clock: Callable[[], float] | None = None
) -> RepartitionRun:
    """Route, measure and repartition a stream.

    What a trigger decides depends on earlier rows alone, and not on queues. So decisions are made in a pass of their
    own. If live, a stage then moves the keys at the times of the decisions, with the state that these counted, while
    rows arrive.

    Args:
        batches: Reads the stream; if live, several times.
        clock: Returns seconds, for build times.
    """
    if live is None:
        return RepartitionRun(tuple(step.outcome for step in decided(replan, batches, clock)), replan.as_data())
    if replan.period.in_rows:
        raise SettingError(Replan, f"a live replay needs a {{period}} in time, such as 6h (got {replan.period})")
    steps = list(decided(replan, batches, clock))
    parameters = stage_parameters(live.settings, live.reading, None) | replan.as_data() | {"live": True}
    return RepartitionRun(tuple(step.outcome for step in steps), parameters, *_staged(batches, replan, live, steps))


def _staged(
    batches: Batches, replan: Replan, live: Live, steps: Sequence[Step]
) -> tuple[tuple[LiveOutcome, ...], Bounds]:
    """Run each case in the stage."""
    rescales = [
        step
        for at, step in enumerate(steps)
        if at == 0 or step.partitioner.channels != steps[at - 1].partitioner.channels
    ]
    cases: dict[str, Mapping[int, Partitioner]] = {
        STATIC: {step.outcome.index: replan.unpinned(step.partitioner.channels) for step in rescales},
        replan.trigger.value: {
            step.outcome.index: step.partitioner for at, step in enumerate(steps) if not at or step.outcome.adopts
        },
    }
    cases[IN_SAMPLE] = _in_sample(
        batches, replan, [(step.outcome.index, step.partitioner.channels) for step in rescales]
    )
    plans = [plan for case in cases.values() for plan in case.values()]
    units = Units.from_plans(plans, ARROW_TYPES[replan.recipe.key_type or KeyType.STRING], replan.pool)
    states = _states(batches, replan, live, units, {at for case in cases.values() for at in case})
    per_s = 1e6 * live.speedup
    at_s = {step.outcome.index: (step.at_us - steps[0].at_us) / per_s for step in steps}
    owners = units.owners(plans[0])
    stage = _Stage.of(batches, replan, live, replace(live.reading, partitions=units.partitions), owners)
    stage.check_steps()
    outcomes = []
    for case, of in cases.items():
        decided_plans = [
            DecidedPlan(at_s[at], plan.channels, units.owners(plan), states[at]) for at, plan in of.items()
        ]
        placed = DecidedPlans(decided_plans, replan.pool)
        outcomes.append(stage.outcome(case, Actors(scaling=Scaling(placed, placed, stage.step_s))))
    if len(replan.schedule.steps) == 1:
        by_flux = _Stage.of(batches, replan, live, live.reading, live.reading.partitions.owners)
        collection_s = max(MIN_COLLECTION_S, stage.bounds.last_s / MOST_ROUNDS)
        controller = controller_of(FluxPolicy.LOAD, collection_s, LoadBalancing())
        outcomes.insert(-1, by_flux.outcome(FLUX, Actors(controller)))
    return tuple(outcomes), stage.bounds


def _in_sample(batches: Batches, replan: Replan, rescales: Sequence[tuple[int, int]]) -> Mapping[int, Partitioner]:
    """Plans from the counts of the whole stream."""
    counted: KeyCounts | None = None
    for step in replan.steps(batches):
        counted = step.counted if counted is None else merge([counted, step.counted])
    assert counted is not None
    plans, current = {}, replan.unpinned(rescales[0][1])
    for at, channels in rescales:
        current = build_partitioner(replan.frequencies(counted, channels), replan.recipe, channels, current)
        plans[at] = current
    return plans


def _states(batches: Batches, replan: Replan, live: Live, units: Units, changes: Set[int]) -> Mapping[int, Floats]:
    """State of each unit at some steps, in tuples: that of the window.

    A key weighed by its cost has its rows as state.
    """
    per_tuple = live.settings.costs.tuple_bytes if replan.weight is Weight.BYTES else 1
    recent: RecentKeys | None = None
    states: dict[int, Floats] = {}
    for step in replan.steps(batches, weighed=replan.weight is not Weight.COST):
        if recent is None:
            recent = RecentKeys(replan.window_of(step))
            states[step.index] = np.zeros(units.count)
        elif step.index in changes:
            recent.move_to(step.start_us)
            counted = frequencies_of(recent.counted())
            state = listed_loads(counted, replan.recipe.resources.state)
            places = units.partitions.partitions_of(counted.keys)
            states[step.index] = np.bincount(places, state, units.count) / per_tuple
        recent.add(step)
    return states


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """A stage with its partitions, and how it is sampled."""

    batches: Batches
    replan: Replan
    live: Live
    settings: StageSettings
    reading: Reading
    bounds: Bounds

    @classmethod
    def of(cls, batches: Batches, replan: Replan, live: Live, reading: Reading, owners: NDArray[np.int32]) -> "_Stage":
        """A stage whose partitions hold the rows of a window as state."""
        partitions = len(owners)
        settings = replace(
            live.settings, owners=owners, partition_of=even_groups(partitions, partitions), state_tuples=0
        )
        rows = reading.rows(lambda: batches(reading.columns))
        demand = Demand.from_chunks(rows.chunks(), settings)
        window = replan.window_of(next(replan.steps(batches)))
        share = window.size / max(1.0, demand.all_rows if window.in_rows else demand.last_s * 1e6 * live.speedup)
        state = np.asarray(demand.rows * min(1.0, share), np.int64)
        return cls(batches, replan, live, replace(settings, state_tuples=state), reading, bounds_of(demand, settings))

    @property
    def step_s(self) -> float:
        """Simulated time between decisions."""
        return self.replan.step_length.size / 1e6 / self.live.speedup

    def check_steps(self) -> None:
        """Refuse more steps than a replay can have."""
        ends_s = max(self.bounds.static_s, network_s(self.settings, self.bounds.rows))
        steps, most = ends_s / self.step_s, max(MOST_LIVE_STEPS, self.bounds.rows)
        if steps > most:
            raise SettingError(
                Replan,
                f"the replay takes {steps:,.0f} steps of {self.replan.step_length}, and at most {most:,} are possible"
                " live; decrease the speed-up, or give a longer {period} or {step}",
            )

    def outcome(self, case: str, actors: Actors) -> LiveOutcome:
        """Run a case."""
        sample_s = max(LEAST_PERIOD_S, self.bounds.static_s / INTERVALS)
        per_step = max(1, math.ceil(self.step_s / sample_s))
        done = simulate(
            self.settings,
            self.reading.rows(lambda: self.batches(self.reading.columns)),
            None,
            actors,
            interval_s=self.step_s / per_step,
            on_interval=telling(case, self.live.told),
        )
        per_period = self.replan.every * per_step
        outcome = outcome_of(case, done, self.bounds)
        return live_outcome_of(outcome, self.replan.schedule, per_period, self.replan.period.size)
