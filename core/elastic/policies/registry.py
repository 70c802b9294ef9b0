"""Scaling policies by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from adapt.core.elastic.policies.engine_scalers import (
    BACKLOG_S,
    IDLE_S,
    SCALE_DOWN_WINDOW_S,
    SYNC_S,
    AutoscalerOptions,
    DynamicAllocation,
    FlinkAutoscaler,
    LagThreshold,
    PodAutoscaler,
)
from adapt.core.elastic.policies.names import Alignment, ScalerSettings, ScalingPolicy, Signal
from adapt.core.elastic.policies.scaler import BUSIEST, Patience, Policy, ScaleOn
from adapt.core.elastic.policies.thresholds import (
    POLICY_INTERVAL_S,
    WARM_UP,
    FixedWorkers,
    ScalingManager,
    ThresholdScaling,
    TrueRates,
)
from adapt.core.own.own_code import ChosenPolicy, OwnCode
from adapt.core.own_policies.view import OwnScaling
from adapt.core.stage.conditions.names import Migrating, RestartName
from adapt.core.stage.conditions.settings import RESTARTS
from adapt.core.stage.conditions.shed_factor import Thresholds
from adapt.core.stage.control.workers import Migration
from adapt.core.units.settings import same, settings

AnyScalingPolicy: TypeAlias = ScalingPolicy | OwnCode
"""A scaling policy: built in, or a user's own."""


@settings()
class Chosen:
    """Settings of a scaling policy."""

    thresholds: Thresholds = Thresholds()
    signal: Signal = same(ScalerSettings, "signal")
    capacity_tuples: int | None = None  # buffer capacity of a worker; None without buffers
    utilization: float = same(ScalerSettings, "utilization")
    lag_rows: float = same(ScalerSettings, "lag_rows")
    scale_on: ScaleOn = BUSIEST  # whose utilization it is
    pool: int = 1  # the maximum number of workers
    partitions: int = 1  # partitions of the stage
    times: float = same(ScalerSettings, "times", default=1.0)  # restarts included
    alignment: Alignment = same(ScalerSettings, "alignment")


ChosenScalingPolicy: TypeAlias = ChosenPolicy[ScalingPolicy, Chosen]
"""A scaling policy with its settings."""


@dataclass(frozen=True, slots=True)
class Published:
    """A published policy with its own timing."""

    made: Callable[[Chosen], Policy]  # makes the policy
    first_s: float = 0.0  # when it decides first, with its own times
    restart: RestartName | None = None  # how its engine restarts for a rescale; None, partitions move live


def _ds2(chosen: Chosen) -> Policy:
    return ScalingManager(TrueRates(chosen.utilization), POLICY_INTERVAL_S * chosen.times)


def _lag(chosen: Chosen) -> Policy:
    threshold = LagThreshold(chosen.lag_rows, partitions=chosen.partitions)
    return PodAutoscaler(threshold, SYNC_S * chosen.times, SCALE_DOWN_WINDOW_S * chosen.times)


def _flink(chosen: Chosen) -> Policy:
    return FlinkAutoscaler(AutoscalerOptions().sped_up(chosen.times), chosen.pool, chosen.partitions)


def _spark(chosen: Chosen) -> Policy:
    return DynamicAllocation(chosen.pool, BACKLOG_S * chosen.times, IDLE_S * chosen.times)


PUBLISHED: Mapping[ScalingPolicy, Published] = MappingProxyType(
    {
        ScalingPolicy.DS2: Published(_ds2, (WARM_UP + 1) * POLICY_INTERVAL_S, RestartName.FLINK_SAVEPOINT),
        ScalingPolicy.LAG: Published(_lag, restart=RestartName.KAFKA_EAGER),
        ScalingPolicy.FLINK: Published(_flink, AutoscalerOptions().first_s, RestartName.FLINK_SAVEPOINT),
        ScalingPolicy.SPARK: Published(_spark, BACKLOG_S),
    }
)
"""Policies of other systems, with their own timing."""

POLICIES: Mapping[ScalingPolicy, Callable[[Chosen], Policy]] = MappingProxyType(
    {
        ScalingPolicy.FIXED: lambda _: FixedWorkers(),
        ScalingPolicy.THRESHOLDS: lambda chosen: ThresholdScaling(
            chosen.thresholds, chosen.signal, chosen.capacity_tuples, chosen.scale_on
        ),
        ScalingPolicy.DS2: lambda chosen: TrueRates(chosen.utilization),
        ScalingPolicy.LAG: lambda chosen: LagThreshold(chosen.lag_rows),
        ScalingPolicy.FLINK: _flink,
        ScalingPolicy.SPARK: _spark,
    }
)
"""How each policy is made from its settings."""


def policy_of(name: AnyScalingPolicy, chosen: Chosen | None = None) -> Policy:
    """Make the policy with this name, or a user's own."""
    if isinstance(name, OwnCode):
        return OwnScaling(name)
    return POLICIES[name](chosen or Chosen())


def published(name: AnyScalingPolicy) -> Published | None:
    """The policy with its own timing, if it has any."""
    return PUBLISHED.get(name) if isinstance(name, ScalingPolicy) else None


_USUAL = Patience()


def timed_policy(
    name: AnyScalingPolicy, chosen: Chosen, patience: Patience | None, usual: Patience = _USUAL
) -> tuple[Policy, Patience | None]:
    """The policy with its timing: its own, or the delays given.

    `flink` and `spark` keep their own timing throughout.

    Args:
        patience: Delays around the policy; None, its own.
        usual: Delays around a policy without any of its own.

    Returns:
        The policy, and the delays around it; None for its own.
    """
    own = published(name)
    if own is not None and (patience is None or own.made in POLICIES.values()):
        return own.made(chosen), None
    policy = policy_of(name, chosen)
    return policy, None if getattr(policy, "paces_itself", False) else patience or usual


def migration_of(name: AnyScalingPolicy, given: Migration | None, times: float = 1.0) -> Migration:
    """How partitions migrate: as given, else as the policy's engine does.

    Args:
        times: Factor of the fixed times of the engine's restart.
    """
    own = published(name)
    if given is not None or own is None or own.restart is None:
        return given or Migration()
    restart = RESTARTS[own.restart]
    return Migration(
        Migrating.RESTART, restart=replace(restart, stop_s=restart.stop_s * times, start_s=restart.start_s * times)
    )
