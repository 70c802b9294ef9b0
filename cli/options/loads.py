"""Options on the load of keys and the limits on imbalance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

from adapt.cli.options.groups import EXPERT, option, setting
from adapt.core.errors import UsageError
from adapt.core.partitioning.measures.imbalance_limit import MAX_IMBALANCE, check_max_imbalance

if TYPE_CHECKING:
    from adapt.core.partitioning.measures.resources import Resources
    from adapt.core.verdict.goal import Goal

ResourcesOption: TypeAlias = Annotated[
    str,
    option(
        "How state, computation and network grow with a key's count: C constant, L linear, Q quadratic.",
        "XYZ",
        panel=EXPERT,
    ),
]
ToleranceOption: TypeAlias = Annotated[
    str,
    option(
        "Tolerated max/min load ratio, alpha: one number, or one each for state, computation and network.",
        "RATIO|X,Y,Z",
        panel=EXPERT,
        unless="--method exact",
    ),
]
MaxImbalanceOption: TypeAlias = Annotated[float, option("Limit of the verdict: max/mean channel load.", "RATIO")]
MeasureOption: TypeAlias = Annotated[
    list[str] | None,
    option(
        "Measure state, computation or network by this column; repeatable. One of count, cost and bytes of a trace, or"
        " a column of a CSV. Replaces the letter of --resources.",
        "RESOURCE=COLUMN",
        panel=EXPERT,
    ),
]
SigmaOption: TypeAlias = Annotated[
    float,
    option(
        "Share of the tolerated imbalance left to hashed keys.",
        "SHARE",
        panel=EXPERT,
        needs="--scheme hybrid",
        unless="--method exact",
    ),
]
MaxPinsOption: TypeAlias = Annotated[
    int | None,
    option(
        "Pin at most K keys. Default: every key above the threshold, and with construction level at least 1000.",
        "K",
        panel=EXPERT,
        needs="--scheme hybrid",
        unless="--method exact",
    ),
]


MaxMigrationOption: TypeAlias = Annotated[
    str | None,
    option(
        "Most state that may migrate in one step: 0.5 is half an average channel's state, 10% a part of all.",
        "X|P%",
    ),
]


@dataclass(frozen=True, slots=True)
class GoalOptions:
    """Limits of a verdict and of the plan that it recommends."""

    max_imbalance: MaxImbalanceOption = MAX_IMBALANCE
    max_migration: MaxMigrationOption = None
    max_pins: int | None = setting(None, "Recommend the best plan that pins at most K more keys.", "K")

    def goal(self, channels: int, *, shows_frontier: bool) -> "Goal":
        """The goal at a number of channels, checked."""
        if self.max_pins is not None and self.max_pins < 1:
            raise UsageError(f"--max-pins must be at least 1 (got {self.max_pins}); omit it to let the verdict choose")
        return goal_within(
            self.max_imbalance, self.max_migration, self.max_pins, channels, shows_frontier=shows_frontier
        )


def goal_within(
    max_imbalance: float, max_migration: str | None, max_pins: int | None, channels: int, *, shows_frontier: bool
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
    return Goal(max_imbalance, Budget(share, max_pins), shows_frontier)


@dataclass(frozen=True, slots=True)
class Loads:
    """How keys load channels, and how many are pinned."""

    max_imbalance: MaxImbalanceOption = MAX_IMBALANCE
    tolerance: ToleranceOption = "1.2"
    resources: ResourcesOption = "LLL"
    sigma: SigmaOption = 0.1
    max_pins: MaxPinsOption = None

    def weighed(self, measure: Sequence[str] | None = None) -> "Resources":
        """The loads and tolerances, checked.

        Args:
            measure: Columns in place of letters, as RESOURCE=COLUMN.
        """
        from adapt.core.partitioning.measures.resources import Resources

        check_max_imbalance(self.max_imbalance)
        return Resources.parse(self.resources, self.tolerance, self.sigma, measure or ())
