"""Options of `adapt replay elastic`: scaling, plans, join."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options.amounts import above_0
from adapt.cli.options.groups import setting
from adapt.cli.options.placement import SCHEME, HashOption, SchemeChoice
from adapt.cli.options.replay.costs import given
from adapt.cli.options.replay.migration import MigrationOptions
from adapt.core.elastic.policies.names import Alignment, ScalingPolicy, Signal
from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTION, Construction, Scheme
from adapt.core.stage.conditions.names import QueueingName

if TYPE_CHECKING:
    from adapt.core.costs.profile import Profile
    from adapt.core.elastic.planning.prices import Prices
    from adapt.core.elastic.policies.scaler import Rebuild
    from adapt.core.elastic.replay.replay import Elastic
    from adapt.core.partitioning.build import Recipe
    from adapt.core.stage.conditions.shed_factor import Thresholds
    from adapt.core.stage.input.mini_partitions import MiniPartitions


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """How partitions are placed and moved."""

    PANEL: ClassVar[str] = "Plans and migration"
    rebuild: str | None = setting(
        None,
        "Rebuild the plan after a time, above an imbalance, or both; off by default.",
        "60s|1.5|60s,1.5",
    )
    partitions: int = setting(64, "Partitions per worker of the pool; each moves as a whole.", "K")
    own_keys: int = setting(0, "Number of hot keys that get a partition each.", "KEYS")
    scheme: SchemeChoice = setting(Scheme.HYBRID, "Partitioning scheme of plans.", "NAME", **SCHEME)
    construction: Construction = setting(DEFAULT_CONSTRUCTION, "How plans place hot partitions.")
    ranges: bool = setting(
        False, "Give workers ranges of partitions without a plan, as Kafka's range assignor does.", None, "--ranges"
    )
    window: str = setting("30s", "How much recent history a plan is built from.", "30s")
    migration: MigrationOptions
    hash: HashOption = HashName.MURMUR3

    def placed(self, pool: int) -> "MiniPartitions":
        """The partitions of a pool of workers."""
        from adapt.core.stage.conditions.settings import check_workers
        from adapt.core.stage.input.mini_partitions import MiniPartitions

        check_workers(pool)
        return MiniPartitions(pool, self.partitions, self.hash)

    def recipe(self) -> "Recipe | None":
        """How plans are built; None with ranges of partitions."""
        from adapt.core.partitioning.build import Recipe

        if self.ranges and self.own_keys:
            raise UsageError("--own-keys needs plans; remove --own-keys or --ranges")
        return None if self.ranges else Recipe(self.scheme, self.construction, hash=self.hash)

    def rebuilding(self, min_interval_s: float) -> "Rebuild":
        """When the plan is rebuilt: by time, imbalance, or both."""
        from adapt.core.elastic.policies.scaler import Rebuild

        every_s: float | None = None
        limit: float | None = None
        for part in [] if self.rebuild is None else map(str.strip, self.rebuild.split(",")):
            try:
                limit = float(part)
            except ValueError:
                every_s = above_0("--rebuild", part)
        return Rebuild(every_s, limit, min_interval_s)


@dataclass(frozen=True, slots=True)
class PriceOptions:
    """Prices of late rows, pauses and moved state."""

    PANEL: ClassVar[str] = "Cost and regret"
    target_latency: str = setting("5s", "Latency above which a row is late.", "5s")
    late_price: float = setting(10.0, "Price of a late row, in multiples of the mean work of a row.", "TIMES")
    pause_price: float = setting(
        1.0, "Price of a second in which all partitions are paused, in worker seconds.", "SECONDS"
    )
    moved_price: float = setting(20.0, "Price of a GiB of state moved, in worker seconds.", "SECONDS")

    def prices(self) -> "Prices":
        """The prices."""
        from adapt.core.elastic.planning.prices import Prices

        target_s = above_0("--target-latency", self.target_latency)
        return Prices(target_s, self.late_price, self.pause_price, self.moved_price)


@dataclass(frozen=True, slots=True)
class ScalingOptions:
    """When and how far the stage scales."""

    PANEL: ClassVar[str] = "Scaling"
    pool: int = setting(16, "Maximum number of workers.", "WORKERS", panel="Options")
    workers: int | None = setting(
        None,
        "Workers at the start, and the minimum (default: what the mean rate needs).",
        "WORKERS",
        panel="Options",
        shown=False,
    )
    policy: list[ScalingPolicy] | None = setting(
        None, "Scaling policy to compare with fixed workers; repeatable (default: thresholds).", panel="Options"
    )
    period: str = setting("1s", "How often the controller runs.", "1s")
    sweep: str | None = setting(
        None,
        "Run all cases with each tau1 and show false shedding, idle workers and state moved.",
        "tau1=0.2,0.4",
    )
    signal: Signal = setting(
        Signal.HELD, "Utilization that thresholds are compared with, after shedding (held) or before (offered)."
    )
    scale_on: str = setting(
        "busiest",
        "Worker that thresholds watch: the busiest, the mean, or a share at or above them.",
        "busiest|mean|P%",
    )
    scale_out_delay: str = setting("5s", "How long more workers must be needed before scaling out.", "5s")
    cooldown: str = setting("30s", "How long fewer workers must be enough before scaling in.", "30s")
    startup_time: str | None = setting(None, "Worker start-up time (default: 0s).", "10s", shown=False)
    utilization: float = setting(0.8, "Target utilization for --policy ds2.", "RATIO")
    lag: float = setting(1000.0, "Lag threshold of a worker for --policy lag.", "ROWS")
    alignment: Alignment = setting(
        Alignment.ANY, "Allowed numbers of workers: any, or those that divide the number of partitions."
    )

    def elastic(
        self,
        plans: PlanOptions,
        thresholds: "Thresholds",
        engine: QueueingName | None = None,
        profile: "Profile | None" = None,
        prices: "Prices | None" = None,
    ) -> "Elastic":
        """How the stage scales.

        Args:
            prices: Prices of late rows, pauses and moved state; None, the defaults.
            engine: Whose queues it has.
            profile: The cost profile, if any; options win over it.
        """
        from adapt.core.elastic.planning.prices import Prices
        from adapt.core.elastic.policies.placements import Counting
        from adapt.core.elastic.policies.registry import Chosen
        from adapt.core.elastic.policies.scale_on import ScaleOn
        from adapt.core.elastic.policies.scaler import Patience
        from adapt.core.elastic.replay.replay import Elastic

        delay_s = above_0("--scale-out-delay", self.scale_out_delay)
        start_s = None if profile is None else profile.restart.start_s
        return Elastic(
            pool=self.pool,
            least=self.workers,
            policies=tuple(self.policy or [ScalingPolicy.THRESHOLDS]),
            chosen=Chosen(thresholds, self.signal, None, self.utilization, self.lag, ScaleOn.parse(self.scale_on)),
            patience=Patience(delay_s, above_0("--cooldown", self.cooldown)),
            rebuild=plans.rebuilding(delay_s),
            alignment=self.alignment,
            recipe=plans.recipe(),
            counting=Counting(above_0("--window", plans.window)),
            period_s=above_0("--period", self.period),
            migration=plans.migration.chosen(engine),
            startup_s=given("--startup-time", self.startup_time, start_s, "0s"),
            sweep=self._swept(),
            prices=prices or Prices(),
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
            raise UsageError(f"--sweep takes values of tau1 such as tau1=0.2,0.4,0.6 (got {self.sweep!r})") from None
