"""How load is shed while a network runs."""

from dataclasses import dataclass

from adapt.core.errors import BadInput
from adapt.core.fit.network.names import BATCH, DropPlanner, Drops


@dataclass(frozen=True, slots=True)
class SheddingSettings:
    """What is planned, how often, and for which rates.

    Attributes:
        tick_us: A plan is made for each period of this length.
        planner: What makes it.
        epsilon: The part of the best score that the planners with an error bound may lose, in (0, 1).
        headroom: Part of every capacity that plans leave free, in [0, 1).
        lag_ticks: Plans for tick t know rates up to t - lag_ticks.
        smoothing: Weight of the newest rates, in (0, 1]; 1 goes by them alone.
        min_rate_change: Smaller changes of a drop rate are not applied, in [0, 1).
        feedback: Whether capacities are corrected by the utilization that is measured.
        drops: What is dropped before aggregates.
        batch: Windows that live or die together, where windows are dropped; 1 or more.

    Raises:
        BadInput: one of them is not what it may be.
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
            raise BadInput("settings: tick is 0, so that no plan is ever due; give a length of time, such as 1s")
        if not 0 < self.epsilon < 1:
            raise BadInput(f"settings: epsilon is {self.epsilon:g}; give a part of the score above 0 and below 1")
        if not 0 <= self.headroom < 1:
            raise BadInput(f"settings: headroom is {self.headroom:g}; give a part of a capacity from 0 to below 1")
        if self.lag_ticks < 0:
            raise BadInput(f"settings: lag_ticks is {self.lag_ticks}; plans cannot know what comes, so give 0 or more")
        if not 0 < self.smoothing <= 1:
            raise BadInput(f"settings: smoothing is {self.smoothing:g}; give the newest rates a weight above 0 up to 1")
        if self.batch < 1:
            raise BadInput(f"settings: batch is {self.batch}; windows live or die by 1 or more")
        if not 0 <= self.min_rate_change < 1:
            raise BadInput(f"settings: min_rate_change is {self.min_rate_change:g}; give a part from 0 to below 1")
