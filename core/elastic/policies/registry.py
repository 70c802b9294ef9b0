"""Scaling policies by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from adapt.core.elastic.planning.cheapest_schedule import Schedule
from adapt.core.elastic.planning.optimum import FollowSchedule
from adapt.core.elastic.planning.plan_ahead import PlanAhead
from adapt.core.elastic.planning.prices import Prices
from adapt.core.elastic.policies.comparators import FixedWorkers, LagThreshold, TrueRates
from adapt.core.elastic.policies.names import ScalingPolicy, Signal
from adapt.core.elastic.policies.scale_on import BUSIEST, ScaleOn
from adapt.core.elastic.policies.scaler import Policy
from adapt.core.elastic.policies.thresholds import ThresholdScaling
from adapt.core.stage.conditions.shed_factor import Thresholds

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
        prices: What a schedule of workers costs, for plan-ahead.
        bounds: Fewest and most workers, likewise.
        schedule: Workers by window, for the optimum; None, not yet made.
    """

    thresholds: Thresholds = Thresholds()  # noqa: RUF009 - frozen
    signal: Signal = Signal.HELD
    capacity_tuples: int | None = None
    utilization: float = 0.8
    lag_rows: float = LAG_ROWS
    scale_on: ScaleOn = BUSIEST
    prices: Prices = Prices()  # noqa: RUF009 - frozen
    bounds: tuple[int, int] = (1, 1)
    schedule: Schedule | None = None


POLICIES: Mapping[ScalingPolicy, Callable[[Chosen], Policy]] = MappingProxyType(
    {
        ScalingPolicy.FIXED: lambda _: FixedWorkers(),
        ScalingPolicy.THRESHOLDS: lambda chosen: ThresholdScaling(
            chosen.thresholds, chosen.signal, chosen.capacity_tuples, chosen.scale_on
        ),
        ScalingPolicy.DS2: lambda chosen: TrueRates(chosen.utilization),
        ScalingPolicy.LAG: lambda chosen: LagThreshold(chosen.lag_rows),
        ScalingPolicy.PLAN_AHEAD: lambda chosen: PlanAhead(*chosen.bounds, chosen.prices),
        ScalingPolicy.OPTIMUM: lambda chosen: (
            FixedWorkers() if chosen.schedule is None else FollowSchedule(chosen.schedule)
        ),
    }
)
"""How each policy is made from its settings."""


def policy_of(name: ScalingPolicy, chosen: Chosen | None = None) -> Policy:
    """Make the policy with this name.

    Raises:
        UsageError: a setting is out of range.
    """
    return POLICIES[name](chosen or Chosen())
