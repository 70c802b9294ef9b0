"""What a user asks of a verdict."""

from collections.abc import Callable, Mapping
from dataclasses import field

from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.frontier.today import NO_LIMITS, Budget
from adapt.core.partitioning.measures.plan_settings import PlanSettings
from adapt.core.units.settings import same, settings


@settings()
class Goal:
    """Limits of a verdict and of the plan that it recommends."""

    max_imbalance: float = same(PlanSettings, "max_imbalance")  # T, the most imbalance that is accepted
    limits: Budget = NO_LIMITS  # limits of the plan; with any, the plan is the best within them
    shows_frontier: bool = False  # whether the frontier is asked for; it costs some time
    # variance of shares over that of single rows, if the rows are a sample of records, for which an interval is asked
    # even with windows; else None
    sample_effect: float | None = None

    mergeable: bool = False  # whether parts of a key can be merged later, so that keys may be split
    # today's placement at another number of workers; None where that is not judged
    rescaled: Callable[[int], Partitioner] | None = field(default=None, compare=False, repr=False)
    # further placements to show in later windows, by name
    others: Mapping[str, Partitioner] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_limited(self) -> bool:
        """Whether the plan has limits."""
        return self.limits != NO_LIMITS
