"""Options of `adapt replay repartition`: when plans are rebuilt, and how."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options.channels import check_channels
from adapt.cli.options.groups import setting
from adapt.cli.options.placement import SCHEME, SchemeChoice, Today
from adapt.cli.options.replay.stage import SpeedupOption, StageOptions, TroubleOptions
from adapt.core.engines.names import AnyScheme
from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.measures.plan_settings import PlanSettings
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTION, Construction, Scheme
from adapt.core.repartition.names import TriggerName
from adapt.core.stage.input.speed import Speed
from adapt.core.units.settings import same, settings

if TYPE_CHECKING:
    from adapt.core.partitioning.build import Recipe
    from adapt.core.repartition.decisions import Replan, Schedule
    from adapt.core.repartition.replay import Live
    from adapt.traces.store.trace import Trace

PARTITIONS = 64
"""Partitions of each worker under Flux."""


@dataclass(frozen=True, slots=True)
class ReplanOptions:
    """Channel counts over time, and when plans are adopted."""

    channels: int | None = setting(None, "Fixed number of workers.", "N")
    schedule: str = setting("", "Number of workers by time since the first row.", "0h:N,6h:N")
    period: str = setting("1h", "How often trigger period adopts a new plan.", "7d|1000rows")
    trigger: TriggerName = setting(
        TriggerName.PERIOD,
        "When to adopt a new plan: every period, to repair a violation of --tolerance, or if worth it. Worth needs rows"
        " in most steps: it compares plans in two steps before it adopts one.",
    )
    step: str | None = setting(
        None, "How often the trigger decides (default: the period, or a tenth of it with another trigger).", "6m"
    )
    window: str | None = setting(
        None,
        "Recent rows that plans are built from (default: the period); auto: from the first step's keys.",
        "1h|1000rows|auto",
    )
    move_cost: float | None = setting(
        None,
        "Trigger worth: rows processed while a row of state moves (default: by the stage's costs).",
        "ROWS",
        needs="--trigger worth",
    )

    def replan(self, recipe: "RecipeOptions", today: Today) -> "Replan":
        """When plans are adopted, and how they are built."""
        from adapt.core.repartition.decisions import AUTO, Replan
        from adapt.core.units.row_or_time_span import Length

        schedule = self._schedule()
        several = len({channels for _, channels in schedule.steps}) > 1
        auto = self.window == AUTO
        return Replan(
            recipe.recipe(today, Scheme.CONSISTENT if several else today.engine),
            schedule,
            Length.parse(self.period),
            self.trigger,
            step=None if self.step is None else Length.parse(self.step, "--step"),
            window=None if auto or self.window is None else Length.parse(self.window, "--window"),
            auto_window=auto,
            move_cost=self.move_cost,
        )

    def _schedule(self) -> "Schedule":
        from adapt.core.repartition.decisions import Schedule

        if (self.channels is None) == (not self.schedule):
            raise UsageError("give either --channels N or --schedule 0h:N,6h:N")
        if self.channels is None:
            return Schedule.parse(self.schedule)
        check_channels(self.channels)
        return Schedule.fixed(self.channels)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """The stage that `--live` replays the decisions in."""

    NEEDS: ClassVar[str] = "--live"
    stage: StageOptions
    trouble: TroubleOptions
    speedup: SpeedupOption = 1.0

    def live(self, trace: "Trace", replan: "Replan") -> "Live":
        """The stage of a trace."""
        from adapt.core.repartition.replay import Live
        from adapt.core.stage.input.mini_partitions import MiniPartitions

        Speed(speedup=self.speedup)  # in its range
        today = replan.unpinned(replan.schedule.channels_at(0))
        placed = MiniPartitions(replan.pool, PARTITIONS, partitioner=today)
        settings = self.stage.settings(placed, self.trouble)
        return Live(settings, self.stage.reading(trace, placed, self.speedup))


@settings()
class RecipeOptions:
    """How plans are built."""

    scheme: SchemeChoice = setting(Scheme.HYBRID, "How keys are assigned to workers.", "NAME", **SCHEME)
    construction: Construction = setting(
        DEFAULT_CONSTRUCTION, "How the hybrid scheme assigns pinned keys.", needs="--scheme hybrid"
    )
    resources: str = same(PlanSettings, "resources")
    tolerance: str = same(PlanSettings, "tolerance")
    sigma: float = same(PlanSettings, "sigma")
    max_pins: int | None = same(PlanSettings, "max_pins")
    max_migration: str | None = same(PlanSettings, "max_migration")

    def recipe(self, today: Today, base: AnyScheme) -> "Recipe":
        """The recipe of every plan.

        Args:
            base: What places the keys that are not pinned.
        """
        from adapt.core.partitioning.build import Recipe
        from adapt.core.partitioning.measures.resources import Resources
        from adapt.core.partitioning.problem.constraints import Constraints, MigrationLimit
        from adapt.core.partitioning.schemes.consistent import DEFAULT_REPLICAS

        resources = Resources.parse(self.resources, self.tolerance, self.sigma)
        return Recipe(
            self.scheme,
            self.construction,
            resources,
            max_pins=self.max_pins,
            hash=today.hash or HashName.MURMUR3,
            replicas=today.replicas or DEFAULT_REPLICAS,
            max_parallelism=today.max_parallelism,
            constraints=Constraints(
                max_migration=None if self.max_migration is None else MigrationLimit.parse(self.max_migration)
            ),
            base=base,
        )
