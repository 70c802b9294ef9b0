"""Options of `adapt replay repartition`: when plans are rebuilt, and how."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapt.cli.options.channels import check_channels
from adapt.cli.options.groups import setting
from adapt.cli.options.loads import MaxMigrationOption, MaxPinsOption, ResourcesOption, SigmaOption, ToleranceOption
from adapt.cli.options.placement import (
    SCHEME,
    BaseOption,
    HashOption,
    ReplicasOption,
    SchemeChoice,
    UtilityOption,
    check_base,
    check_replicas,
)
from adapt.core.engines.names import AnyScheme, Engine
from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTION, Construction, Scheme

if TYPE_CHECKING:
    from adapt.core.partitioning.build import Recipe
    from adapt.core.partitioning.repartition.channel_schedule import Schedule


@dataclass(frozen=True, slots=True)
class ChannelsOverTime:
    """Channel counts over time."""

    channels: int | None = setting(None, "Fixed number of channels.", "N")
    schedule: str = setting("", "Number of channels by time since the first row.", "0h:N,6h:N")

    def channel_schedule(self) -> "Schedule":
        """The number of channels by time since the first row.

        Raises:
            UsageError: both a number and a schedule are given, or neither, or one is invalid.
        """
        from adapt.core.partitioning.repartition.channel_schedule import Schedule

        if (self.channels is None) == (not self.schedule):
            raise UsageError("give either --channels N or --schedule 0h:N,6h:N")
        if self.channels is None:
            return Schedule.parse(self.schedule)
        check_channels(self.channels)
        return Schedule.fixed(self.channels)


@dataclass(frozen=True, slots=True)
class PeriodOptions(ChannelsOverTime):
    """Channel counts over time, and how often the plan is rebuilt."""

    period: str = setting("1h", "How often keys are counted and the plan is rebuilt.", "7d|1000rows")


@dataclass(frozen=True, slots=True)
class RecipeOptions:
    """How plans are built."""

    scheme: SchemeChoice = setting(Scheme.HYBRID, "How keys are assigned to channels.", "NAME", **SCHEME)
    construction: Construction = setting(DEFAULT_CONSTRUCTION, "How the hybrid scheme assigns pinned keys.")
    resources: ResourcesOption = "LLL"
    tolerance: ToleranceOption = "1.2"
    sigma: SigmaOption = 0.1
    utility: UtilityOption = None
    max_pins: MaxPinsOption = None
    hash: HashOption = HashName.MURMUR3
    base: BaseOption = None
    replicas: ReplicasOption = None
    max_migration: MaxMigrationOption = None

    def recipe(self, today: AnyScheme = Scheme.CONSISTENT) -> "Recipe":
        """The recipe of every plan.

        Args:
            today: The base, if none is given.
        """
        from adapt.core.partitioning.build import Recipe
        from adapt.core.partitioning.measures.resources import Resources
        from adapt.core.partitioning.problem.constraints import Constraints, MigrationLimit
        from adapt.core.partitioning.schemes.consistent import DEFAULT_REPLICAS

        check_base(self.base, self.scheme)
        resources = Resources.parse(self.resources, self.tolerance, self.sigma)
        if resources.sources:
            raise UsageError(
                f"--resources column:{resources.sources[0]}: a replay only counts keys; give loads by count, such as"
                " n^1.5"
            )
        on_ring = self.replicas is not None and isinstance(today, Engine)
        base = self.base or (Scheme.CONSISTENT if on_ring else today)
        if self.replicas is not None:
            check_replicas(self.scheme, base)
        return Recipe(
            self.scheme,
            self.construction,
            resources,
            self.utility,
            self.max_pins,
            self.hash,
            self.replicas or DEFAULT_REPLICAS,
            constraints=Constraints(
                max_migration=None if self.max_migration is None else MigrationLimit.parse(self.max_migration)
            ),
            base=base,
        )
