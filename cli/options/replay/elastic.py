"""Options of `adapt replay elastic`: when workers come and go, which worker has what, and what is joined."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options.amounts import above_0, seconds
from adapt.cli.options.groups import setting
from adapt.cli.options.placement import HashOption, SchemeChoice
from adapt.core.elastic.policies.names import Alignment, ScalingPolicy, Signal
from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTION, Construction, Scheme
from adapt.core.stage.conditions.names import Migrating

if TYPE_CHECKING:
    from adapt.core.elastic.policies.scaler import Rebuild
    from adapt.core.elastic.replay.replay import Elastic
    from adapt.core.partitioning.build import Recipe
    from adapt.core.stage.conditions.join import Join
    from adapt.core.stage.conditions.shed_factor import Thresholds
    from adapt.core.stage.input.mini_partitions import MiniPartitions


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Which worker has which partitions, and how they move."""

    PANEL: ClassVar[str] = "Which worker has what"
    rebuild: str | None = setting(
        None,
        "Build the plan anew every so often, when the imbalance is above a limit, or both; never if left out.",
        "60s|1.5|60s,1.5",
    )
    partitions: int = setting(64, "Partitions for each worker of the pool; each is placed and moves as a whole.", "K")
    own_keys: int = setting(0, "The heaviest keys of the trace have a partition each.", "H")
    scheme: SchemeChoice = setting(Scheme.HYBRID, "How plans place partitions.")
    construction: Construction = setting(DEFAULT_CONSTRUCTION, "How they place the heavy ones.")
    ranges: bool = setting(
        False, "Without a plan: each worker has a range of partitions, as consumers of Kafka have.", None, "--ranges"
    )
    window: str = setting("30s", "Plans are built from the rows of so long.", "30s")
    migrate: Migrating = setting(Migrating.ALL, "In which portions partitions move.")
    batch: int = setting(16, "Partitions of a portion.", "B")
    hash: HashOption = HashName.MURMUR3

    def placed(self, pool: int) -> "MiniPartitions":
        """The partitions of a pool of workers."""
        from adapt.core.stage.conditions.settings import check_workers
        from adapt.core.stage.input.mini_partitions import MiniPartitions

        check_workers(pool)
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
    pool: int = setting(16, "All workers there are.", "N", panel="Options")
    workers: int | None = setting(
        None,
        "Workers at the start; there are never fewer. What the mean rate asks for if left out.",
        "M",
        panel="Options",
        shown=False,
    )
    policy: list[ScalingPolicy] | None = setting(
        None, "What scales, beside the case of fixed workers; repeatable; thresholds if left out.", panel="Options"
    )
    period: str = setting("1s", "How often a policy looks at the workers.", "1s")
    sweep: str | None = setting(
        None,
        "Run all cases with each tau1, and show false shedding against idle workers and state that moves.",
        "tau1=0.2,0.4",
    )
    signal: Signal = setting(
        Signal.HELD, "What thresholds are compared with: what workers hold (or work), or what is offered to them."
    )
    hold_up: str = setting("5s", "More workers must be wanted so long.", "5s")
    hold_down: str = setting("30s", "Fewer must be, so long.", "30s")
    start: str = setting("0s", "A worker takes so long to start.", "10s")
    utilization: float = setting(0.8, "Share of the time that workers are to work, for ds2.", "U")
    lag: float = setting(1000.0, "Rows that may wait for a worker, for lag.", "ROWS")
    alignment: Alignment = setting(
        Alignment.ANY, "Which numbers of workers there may be: any, or those that divide the partitions."
    )

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


@dataclass(frozen=True, slots=True)
class JoinOptions:
    """What is joined, within which window, and what a match costs."""

    PANEL: ClassVar[str] = "A join of two streams"
    join: str | None = setting(
        None, "Join the rows of equal key whose COLUMN differs, such as stream; it has two values.", "COLUMN"
    )
    join_window: str | None = setting(
        None,
        "Rows match if they are at most so far apart, in the time of the trace; --shed 5000 holds them so long.",
        "10s",
    )
    match_time: str | None = setting(
        None, "CPU for each match of a row, beside what the row costs; 1us if left out.", "1us", shown=False
    )

    def joined(self) -> "Join | None":
        """What is joined, or nothing.

        Raises:
            UsageError: there is a join without a window, or a window or cost without a join.
        """
        from adapt.core.stage.conditions.join import Join

        if self.join is None:
            for option, given in (("--join-window", self.join_window), ("--match-time", self.match_time)):
                if given is not None:
                    raise UsageError(
                        f"{option} {given} is of a join; say with --join COLUMN which two streams are joined"
                    )
            return None
        if self.join_window is None:
            raise UsageError(
                f"--join {self.join} says not how far apart rows may be that match; give --join-window, such as 10s"
            )
        match_s = 1e-6 if self.match_time is None else seconds("--match-time", self.match_time)
        return Join(round(above_0("--join-window", self.join_window) * 1e6), match_s)
