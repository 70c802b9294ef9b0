"""Options of `adapt replay elastic`: scaling, plans, join."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options import own
from adapt.cli.options.amounts import above_0
from adapt.cli.options.groups import setting
from adapt.cli.options.placement import OWN_HASHING, SCHEME, MaxParallelismOption, SchemeChoice
from adapt.core.elastic.policies.names import (
    ALL_POLICIES,
    COOLDOWN,
    SCALE_OUT_DELAY,
    WINDOW,
    CountingSettings,
    ScalerSettings,
    ScalingPolicy,
    ScalingSettings,
)
from adapt.core.engines.names import Engine
from adapt.core.errors import UsageError
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTION, Construction, Scheme
from adapt.core.stage.conditions.names import QueueingName
from adapt.core.stage.conditions.stage_settings import UNCHANGED, RescaleSettings
from adapt.core.units.settings import same, settings

if TYPE_CHECKING:
    from adapt.core.costs.profile import Profile
    from adapt.core.elastic.policies.registry import Chosen
    from adapt.core.elastic.policies.scaler import Rebuild
    from adapt.core.elastic.replay.replay import Elastic
    from adapt.core.engines.units import EngineUnits
    from adapt.core.partitioning.build import Recipe
    from adapt.core.stage.conditions.shed_factor import Thresholds
    from adapt.core.stage.input.mini_partitions import MiniPartitions
    from adapt.core.stage.input.speed import Tempo
    from adapt.core.stream import KeyType


@dataclass(frozen=True, slots=True)
class SchemeOptions:
    """How keys are assigned to partitions, and partitions to workers."""

    OPTION: ClassVar[str] = "--scheme"
    HEAD: ClassVar[str] = "scheme"
    scheme: SchemeChoice | None = setting(
        None,
        "Partitioning scheme of plans, or an engine, whose key groups or partitions move. Default: hybrid, or"
        " --engine unless an option needs plans.",
        "NAME",
        **SCHEME,
    )
    construction: Construction = setting(
        DEFAULT_CONSTRUCTION, "How plans place hot partitions.", needs="--scheme hybrid", unless=UNCHANGED
    )
    max_parallelism: MaxParallelismOption = None


@settings(panel="Plans and migration", kw_only=True)
class PlanOptions:
    """How partitions are placed and moved."""

    rebuild: str | None = setting(
        None,
        "Rebuild the plan after a time, above an imbalance, or both; off by default.",
        "60s|1.5|60s,1.5",
        needs=OWN_HASHING,
    )
    DEFAULT_PARTITIONS: ClassVar[int] = 64
    partitions: int | None = setting(
        None,
        "Partitions per worker of the pool; each moves as a whole. Default: 64; with --scheme spark 200 in all.",
        "K",
        shown=False,
    )
    window_s: float | None = same(CountingSettings, "window_s")
    migration: RescaleSettings
    of: SchemeOptions

    def placed(self, pool: int, queueing: QueueingName | None, key_type: "KeyType") -> "MiniPartitions":
        """The partitions of a pool of workers.

        Args:
            key_type: The type of the keys, for an engine that places them.
            queueing: Whose queues the stage has, if named.
        """
        from adapt.core.stage.conditions.settings import check_workers
        from adapt.core.stage.input.mini_partitions import MiniPartitions

        check_workers(pool)
        units = self.units(pool, queueing)
        per_worker = self.DEFAULT_PARTITIONS if self.partitions is None else self.partitions
        return MiniPartitions(pool, per_worker, units=None if units is None else units.partitioner(key_type))

    def units(self, pool: int, queueing: QueueingName | None) -> "EngineUnits | None":
        """The units of an engine that places keys, if one does."""
        from adapt.core.engines.units import EngineUnits

        engine = self._engine(queueing)
        if engine is None:
            if self.of.max_parallelism is not None:
                raise UsageError(
                    "--scheme max-parallelism is the number of Flink's key groups; write flink:max-parallelism=N"
                )
            return None
        return EngineUnits.of_pool(engine, pool, self.partitions, self.of.max_parallelism, self.DEFAULT_PARTITIONS)

    def recipe(self) -> "Recipe":
        """How plans are built."""
        from adapt.core.partitioning.build import Recipe

        return Recipe(self.of.scheme or Scheme.HYBRID, self.of.construction)

    def _engine(self, queueing: QueueingName | None) -> Engine | None:
        if self.of.scheme is not None:
            return self.of.scheme if isinstance(self.of.scheme, Engine) else None
        if queueing in (None, QueueingName.FLUX) or any(self._of_plans().values()):
            return None
        return Engine(queueing.value)

    def _of_plans(self) -> dict[str, bool]:
        """Options that need plans, and whether they are given."""
        return {
            "--rebuild": self.rebuild is not None,
            "--scheme construction": self.of.construction is not DEFAULT_CONSTRUCTION,
        }

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


@settings("policy", head="name")
class PolicyOption(ScalerSettings):
    """A scaling policy with its parameters."""

    OWN: ClassVar[str] = "own"
    BUILT_IN: ClassVar[tuple[str, ...]] = (*ScalingPolicy, ALL_POLICIES)
    name: str = setting(
        ScalingPolicy.THRESHOLDS.value,
        f"Scaling policy to compare with fixed workers; repeatable (default: thresholds). {own.CLASS} {ALL_POLICIES}"
        f" stands for all of the built-in ones: {', '.join(ScalingPolicy)}.",
        "NAME",
    )
    own: Mapping[str, str] = field(default_factory=dict)

    def all_of_them(self) -> "Iterable[PolicyOption]":
        """The policies of this name."""
        return (PolicyOption(name=each) for each in ScalingPolicy) if self.name == ALL_POLICIES else [self]

    def chosen(self, tempo: "Tempo") -> "Chosen":
        """The settings of the policy."""
        from adapt.core.elastic.policies.registry import Chosen
        from adapt.core.elastic.policies.scaler import ScaleOn

        return Chosen(
            signal=self.signal,
            utilization=self.utilization,
            lag_rows=self.lag_rows,
            scale_on=ScaleOn.parse(self.scale_on),
            times=tempo.in_trace_time if self.times is None else self.times,
            alignment=self.alignment,
        )


@settings(panel="Scaling")
class ScalingOptions:
    """When and how far the stage scales."""

    policy: list[PolicyOption]
    pool: int = same(ScalingSettings, "pool")
    workers: int | None = same(ScalingSettings, "workers")
    period_s: float | None = same(ScalingSettings, "period_s")
    scale_out_delay_s: float | None = same(ScalingSettings, "scale_out_delay_s")
    cooldown_s: float | None = same(ScalingSettings, "cooldown_s")

    def elastic(
        self,
        plans: PlanOptions,
        thresholds: "Thresholds",
        tempo: "Tempo",
        engine: QueueingName | None = None,
        profile: "Profile | None" = None,
    ) -> "Elastic":
        """How the stage scales.

        Args:
            tempo: Speed of the replay.
            engine: Whose queues it has.
            profile: The cost profile, if any; options win over it.
        """
        from adapt.core.elastic.policies.placements import LEAST_S, Counting
        from adapt.core.elastic.policies.registry import ChosenScalingPolicy
        from adapt.core.elastic.policies.scaler import Patience
        from adapt.core.elastic.replay.replay import Elastic
        from adapt.core.stage.control.workers import Migration

        timed, usual = self.scale_out_delay_s is not None or self.cooldown_s is not None, Patience()
        delay_s = self.scale_out_delay_s or tempo.or_periods(usual.scale_out_delay_s, SCALE_OUT_DELAY)
        usual = Patience(delay_s, self.cooldown_s or tempo.or_periods(usual.cooldown_s, COOLDOWN))
        window_s = plans.window_s or max(LEAST_S, tempo.or_periods(Counting().window_s, WINDOW))
        named = [every for each in self.policy or [PolicyOption()] for every in each.all_of_them()]
        policies = tuple(
            ChosenScalingPolicy(policy, each.chosen(tempo), own.given(each))
            for policy, each in zip(own.policies(ScalingPolicy, named), named, strict=True)
        )
        start_s = plans.migration.startup_time_s
        if start_s is None and profile is not None:
            start_s = profile.restart.start_s
        units = plans.units(self.pool, engine)
        return Elastic(
            pool=self.pool,
            least=self.workers,
            policies=policies,
            thresholds=thresholds,
            patience=usual if timed else None,
            usual=usual,
            rebuild=plans.rebuilding(delay_s),
            recipe=plans.recipe() if units is None else None,
            units=units,
            counting=Counting(window_s),
            period_s=self.period_s or tempo.or_periods(1.0, 1),
            migration=Migration.of(plans.migration, engine),
            startup_s=start_s or 0.0,
        )
