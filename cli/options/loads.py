"""Options on the load of keys and the limits on imbalance."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError
from adapt.core.partitioning.measures.plan_settings import PlanSettings
from adapt.core.units.settings import same, settings

if TYPE_CHECKING:
    from adapt.core.partitioning.measures.resources import Resources
    from adapt.core.verdict.goal import Goal


@settings()
class GoalOptions:
    """Limits of a verdict and of the plan that it recommends."""

    max_imbalance: float = same(PlanSettings, "max_imbalance")
    max_migration: str | None = same(PlanSettings, "max_migration")
    max_pins: int | None = setting(None, "Most keys that the plan pins, besides today's.", "K")
    mergeable: bool = setting(False, "Hot keys may be split: results are merged later.", None, "--mergeable")

    def goal(self, channels: int, *, shows_frontier: bool) -> "Goal":
        """The goal at a number of channels, checked."""
        if self.max_pins is not None and self.max_pins < 1:
            raise UsageError(f"--max-pins must be at least 1 (got {self.max_pins}); omit it to let the verdict choose")
        asked = self.max_imbalance, self.max_migration, self.max_pins, channels
        return goal_within(*asked, shows_frontier=shows_frontier, mergeable=self.mergeable)


def goal_within(
    max_imbalance: float,
    max_migration: str | None,
    max_pins: int | None,
    channels: int,
    *,
    shows_frontier: bool,
    mergeable: bool = False,
) -> "Goal":
    """The goal of a verdict within limits of its plan."""
    from adapt.core.partitioning.frontier.today import Budget
    from adapt.core.partitioning.problem.constraints import MigrationLimit
    from adapt.core.verdict.goal import Goal

    share = None
    if max_migration is not None:
        share = min(MigrationLimit.parse(max_migration).state(1.0, channels), 1.0)
        if share == 0 and max_pins:
            raise UsageError(
                f"--max-migration {max_migration} and --max-pins {max_pins} exclude each other: a pinned key moves its"
                " state; omit one"
            )
    return Goal(max_imbalance, Budget(share, max_pins), shows_frontier, mergeable=mergeable)


@settings()
class Loads:
    """How keys load channels, and how many are pinned."""

    max_imbalance: float = same(PlanSettings, "max_imbalance")
    tolerance: str = same(PlanSettings, "tolerance")
    resources: str = same(PlanSettings, "resources")
    sigma: float = same(PlanSettings, "sigma")
    max_pins: int | None = same(PlanSettings, "max_pins")

    def weighed(self, measure: Sequence[str] | None = None) -> "Resources":
        """The loads and tolerances, checked.

        Args:
            measure: Columns in place of letters, as RESOURCE=COLUMN.
        """
        from adapt.core.partitioning.measures.resources import Resources

        return Resources.parse(self.resources, self.tolerance, self.sigma, measure or ())
