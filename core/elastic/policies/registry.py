"""Every way of scaling by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from adapt.core.elastic.policies.comparators import FixedWorkers, LagThreshold, TrueRates
from adapt.core.elastic.policies.names import ScalingPolicy, Signal
from adapt.core.elastic.policies.scaler import Policy
from adapt.core.elastic.policies.thresholds import ThresholdScaling
from adapt.core.stage.conditions.shed_factor import Thresholds

LAG_ROWS = 1000.0
"""Rows that may wait for a worker, if nothing is said."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a policy is made from.

    Attributes:
        thresholds: tau0 to tau3.
        signal: What is compared with them.
        capacity_tuples: What a worker can hold; None where they hold nothing.
        utilization: The share of the time in which workers are to work, of DS2.
        lag_rows: Rows that may wait for a worker, of the lag threshold.
    """

    thresholds: Thresholds = Thresholds()  # noqa: RUF009 - frozen
    signal: Signal = Signal.HELD
    capacity_tuples: int | None = None
    utilization: float = 0.8
    lag_rows: float = LAG_ROWS


POLICIES: Mapping[ScalingPolicy, Callable[[Chosen], Policy]] = MappingProxyType(
    {
        ScalingPolicy.FIXED: lambda _: FixedWorkers(),
        ScalingPolicy.THRESHOLDS: lambda chosen: ThresholdScaling(
            chosen.thresholds, chosen.signal, chosen.capacity_tuples
        ),
        ScalingPolicy.DS2: lambda chosen: TrueRates(chosen.utilization),
        ScalingPolicy.LAG: lambda chosen: LagThreshold(chosen.lag_rows),
    }
)
"""How each is made."""


def policy_of(name: ScalingPolicy, chosen: Chosen | None = None) -> Policy:
    """The policy of a name.

    Raises:
        UsageError: what it is made from is out of its range.
    """
    return POLICIES[name](chosen or Chosen())
