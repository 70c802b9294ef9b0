"""Settings of load shedding in a running network."""

from dataclasses import dataclass

from adapt.core.errors import AdaptError, BadInput, UsageError
from adapt.core.fit.network.names import BATCH, DropPlanner, Drops


@dataclass(frozen=True, slots=True)
class SheddingSettings:
    """How often drop plans are made, for which rates, by what.

    Attributes:
        tick_us: Planning interval.
        planner: The drop planner.
        epsilon: Share of the best score that planners with an error bound may lose, in (0, 1); with d-fit, only the
            distance between the rates of its tables, as a share of the highest.
        headroom: Share of every capacity that plans leave free, in [0, 1).
        lag_ticks: Age of the newest rates that a plan knows, in ticks.
        smoothing: Weight of the newest rates in the moving average, in (0, 1]; 1: no smoothing.
        min_rate_change: A share kept is raised only by more than this part of itself, in [0, 1); it is always lowered.
        feedback: Whether capacities are corrected by measured utilization.
        drops: What is dropped before aggregates.
        batch: Consecutive windows kept or dropped together, where windows are dropped; at least 1.
    """

    tick_us: int = 1_000_000
    planner: DropPlanner = DropPlanner.EXACT
    epsilon: float = 0.05
    headroom: float = 0.05
    lag_ticks: int = 1
    smoothing: float = 1.0
    min_rate_change: float = 0.01
    feedback: bool = False
    drops: Drops = Drops.RANDOM
    batch: int = BATCH

    def __post_init__(self) -> None:
        if self.tick_us <= 0:
            raise BadInput("settings: tick must be above 0 (got 0)")
        check_ratio("settings: epsilon", self.epsilon, above_0=True, error=BadInput)
        check_ratio("settings: headroom", self.headroom, error=BadInput)
        check_ratio("settings: min_rate_change", self.min_rate_change, error=BadInput)
        if not 0 < self.smoothing <= 1:
            raise BadInput(f"settings: smoothing must be above 0 and at most 1 (got {self.smoothing:g})")
        for name, value, least in (("lag_ticks", self.lag_ticks, 0), ("batch", self.batch, 1)):
            if value < least:
                raise BadInput(f"settings: {name} must be at least {least} (got {value})")


def check_ratio(name: str, value: float, *, above_0: bool = False, error: type[AdaptError] = UsageError) -> None:
    """Require a value in [0, 1), or in (0, 1)."""
    if not 0 <= value < 1 or (above_0 and value == 0):
        raise error(f"{name} must be {'above' if above_0 else 'at least'} 0 and below 1 (got {value:g})")
