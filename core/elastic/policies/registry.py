"""Scaling policies by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from adapt.core.elastic.policies.comparators import FixedWorkers, LagThreshold, TrueRates
from adapt.core.elastic.policies.names import ScalingPolicy, Signal
from adapt.core.elastic.policies.scale_on import BUSIEST, ScaleOn
from adapt.core.elastic.policies.scaler import Policy
from adapt.core.elastic.policies.thresholds import ThresholdScaling
from adapt.core.lab.adapters import OwnScaling
from adapt.core.own.own_code import OwnCode
from adapt.core.stage.conditions.shed_factor import Thresholds

AnyScalingPolicy: TypeAlias = ScalingPolicy | OwnCode
"""A scaling policy: built in, or a user's own."""

LAG_ROWS = 1000.0
"""Default lag threshold of a worker, in rows."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Settings of all scaling policies.

    Attributes:
        thresholds: tau0 to tau3.
        signal: The utilization that is compared with them.
        capacity_tuples: Buffer capacity of a worker; None without buffers.
        scale_on: Whose utilization it is.
        utilization: Target utilization of DS2.
        lag_rows: Lag threshold of a worker, in rows.
    """

    thresholds: Thresholds = Thresholds()  # noqa: RUF009 - frozen
    signal: Signal = Signal.HELD
    capacity_tuples: int | None = None
    utilization: float = 0.8
    lag_rows: float = LAG_ROWS
    scale_on: ScaleOn = BUSIEST


POLICIES: Mapping[ScalingPolicy, Callable[[Chosen], Policy]] = MappingProxyType(
    {
        ScalingPolicy.FIXED: lambda _: FixedWorkers(),
        ScalingPolicy.THRESHOLDS: lambda chosen: ThresholdScaling(
            chosen.thresholds, chosen.signal, chosen.capacity_tuples, chosen.scale_on
        ),
        ScalingPolicy.DS2: lambda chosen: TrueRates(chosen.utilization),
        ScalingPolicy.LAG: lambda chosen: LagThreshold(chosen.lag_rows),
    }
)
"""How each policy is made from its settings."""


def policy_of(name: AnyScalingPolicy, chosen: Chosen | None = None) -> Policy:
    """Make the policy with this name, or a user's own.

    Raises:
        UsageError: a setting is out of range, or a user's class does not fit.
    """
    if isinstance(name, OwnCode):
        return OwnScaling(name)
    return POLICIES[name](chosen or Chosen())
