"""Options of `adapt replay elastic`: when workers come and go, and which worker has what."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from adapt.cli.options.amounts import above_0, seconds
from adapt.cli.options.groups import option
from adapt.cli.options.placement import HashOption
from adapt.cli.options.schemes import SchemeChoice
from adapt.core.elastic.policies.names import Alignment, ScalingPolicy, Signal
from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTION, Construction, Scheme
from adapt.core.stage.conditions.names import Migrating

if TYPE_CHECKING:
    from adapt.core.elastic.policies.scaler import Rebuild
    from adapt.core.elastic.replay.replay import Elastic
    from adapt.core.partitioning.build import Recipe
    from adapt.core.stage.conditions.shed_factor import Thresholds
    from adapt.core.stage.input.mini_partitions import MiniPartitions


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Which worker has which partitions, and how they move."""

    PANEL: ClassVar[str] = "Which worker has what"

    rebuild: Annotated[
        str | None,
        option(
            "Build the plan anew every so often, when the imbalance is above a limit, or both; never if left out.",
            "60s|1.5|60s,1.5",
        ),
    ] = None
    partitions: Annotated[
        int, option("Partitions for each worker of the pool; each is placed and moves as a whole.", "K")
    ] = 64
    own_keys: Annotated[int, option("The heaviest keys of the trace have a partition each.", "H")] = 0
    scheme: Annotated[SchemeChoice, option("How plans place partitions.")] = Scheme.HYBRID
    construction: Annotated[Construction, option("How they place the heavy ones.")] = DEFAULT_CONSTRUCTION
    ranges: Annotated[
        bool,
        option("Without a plan: each worker has a range of partitions, as consumers of Kafka have.", None, "--ranges"),
    ] = False
    window: Annotated[str, option("Plans are built from the rows of so long.", "30s")] = "30s"
    migrate: Annotated[Migrating, option("In which portions partitions move.")] = Migrating.ALL
    batch: Annotated[int, option("Partitions of a portion.", "B")] = 16
    hash: HashOption = HashName.MURMUR3

    def placed(self, pool: int) -> "MiniPartitions":
        """The partitions of a pool of workers."""
        from adapt.core.stage.conditions.settings import check_sites
        from adapt.core.stage.input.mini_partitions import MiniPartitions

        check_sites(pool)
        return MiniPartitions(pool, self.partitions, self.hash)

    def recipe(self) -> "Recipe | None":
        """How plans are built; None, workers have ranges of partitions."""
        from adapt.core.partitioning.build import Recipe

        if self.ranges and self.own_keys:
            raise UsageError("ranges know nothing of heavy keys; leave --ranges or --own-keys out")
        return None if self.ranges else Recipe(self.scheme, self.construction, hash=self.hash)

    def rebuilding(self, rest_s: float) -> "Rebuild":
        """When the plan is built anew: a time, a limit of imbalance, or both."""
        from adapt.core.elastic.policies.scaler import Rebuild

        every_s: float | None = None
        limit: float | None = None
        for part in [] if self.rebuild is None else map(str.strip, self.rebuild.split(",")):
            try:
                limit = float(part)
            except ValueError:
                every_s = above_0("--rebuild", part)
        return Rebuild(every_s, limit, rest_s)


@dataclass(frozen=True, slots=True)
class ScalingOptions:
    """How many workers there are, and when that changes."""

    PANEL: ClassVar[str] = "When workers come and go"

    pool: Annotated[int, option("All workers there are.", "N", panel="Options")] = 16
    workers: Annotated[
        int | None,
        option(
            "Workers at the start; there are never fewer. What the mean rate asks for if left out.",
            "M",
            panel="Options",
            shown=False,
        ),
    ] = None
    policy: Annotated[
        list[ScalingPolicy] | None,
        option("What scales, beside the case of fixed workers; repeatable; thresholds if left out.", panel="Options"),
    ] = None
    period: Annotated[str, option("How often a policy looks at the workers.", "1s")] = "1s"
    sweep: Annotated[
        str | None,
        option(
            "Run all cases with each tau1, and show false shedding against idle workers and state that moves.",
            "tau1=0.2,0.4",
        ),
    ] = None
    signal: Annotated[
        Signal, option("What thresholds are compared with: what workers hold (or work), or what is offered to them.")
    ] = Signal.HELD
    hold_up: Annotated[str, option("More workers must be wanted so long.", "5s")] = "5s"
    hold_down: Annotated[str, option("Fewer must be, so long.", "30s")] = "30s"
    start: Annotated[str, option("A worker takes so long to start.", "10s")] = "0s"
    utilization: Annotated[float, option("Share of the time that workers are to work, for ds2.", "U")] = 0.8
    lag: Annotated[float, option("Rows that may wait for a worker, for lag.", "ROWS")] = 1000.0
    alignment: Annotated[
        Alignment, option("Which numbers of workers there may be: any, or those that divide the partitions.")
    ] = Alignment.ANY

    def elastic(self, plans: PlanOptions, thresholds: "Thresholds") -> "Elastic":
        """What scales the stage."""
        from adapt.core.elastic.policies.placements import Counting
        from adapt.core.elastic.policies.registry import Chosen
        from adapt.core.elastic.policies.scaler import Patience
        from adapt.core.elastic.replay.replay import Elastic
        from adapt.core.stage.control.workers import Migration

        hold_up_s = above_0("--hold-up", self.hold_up)
        return Elastic(
            pool=self.pool,
            least=self.workers,
            policies=tuple(self.policy or [ScalingPolicy.THRESHOLDS]),
            chosen=Chosen(thresholds, self.signal, None, self.utilization, self.lag),
            patience=Patience(hold_up_s, above_0("--hold-down", self.hold_down)),
            rebuild=plans.rebuilding(hold_up_s),
            alignment=self.alignment,
            recipe=plans.recipe(),
            counting=Counting(above_0("--window", plans.window)),
            period_s=above_0("--period", self.period),
            migration=Migration(plans.migrate, plans.batch),
            start_s=seconds("--start", self.start),
            sweep=self._swept(),
        )

    def _swept(self) -> tuple[float, ...]:
        """The values of tau1 to sweep."""
        if self.sweep is None:
            return ()
        name, _, values = self.sweep.partition("=")
        try:
            if name.strip() != "tau1":
                raise ValueError(name)
            return tuple(float(value) for value in values.split(","))
        except ValueError:
            raise UsageError(
                f"--sweep {self.sweep!r} is not values of tau1 with commas, such as tau1=0.2,0.4,0.6"
            ) from None
