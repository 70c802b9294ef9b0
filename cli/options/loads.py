"""Options on the load of keys and the limits on imbalance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

from adapt.cli.options.groups import EXPERT, option
from adapt.core.partitioning.measures.imbalance_limit import MAX_IMBALANCE, check_max_imbalance

if TYPE_CHECKING:
    from adapt.core.partitioning.measures.resources import Resources

ResourcesOption: TypeAlias = Annotated[
    str,
    option(
        "How state, computation and network grow with a key's count. C constant, L linear, Q quadratic.",
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
    float, option("Share of the tolerated imbalance left to hashed keys.", "SHARE", panel=EXPERT)
]
MaxPinsOption: TypeAlias = Annotated[
    int | None,
    option(
        "Pin at most K keys. Default: every key above the threshold, and with construction level at least 1000.",
        "K",
        panel=EXPERT,
    ),
]


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

        Raises:
            UsageError: an option is out of its range.
        """
        from adapt.core.partitioning.measures.resources import Resources

        check_max_imbalance(self.max_imbalance)
        return Resources.parse(self.resources, self.tolerance, self.sigma, measure or ())
