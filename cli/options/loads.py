"""Options of how keys load channels, and of the keys that are heavy."""

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
    ),
]
MaxImbalanceOption: TypeAlias = Annotated[
    float, option("Limit of the verdict: load of the busiest channel / mean load.", "RATIO")
]
MeasureOption: TypeAlias = Annotated[
    list[str] | None,
    option(
        "Measure state, computation or network by a column, not by its letter: count, cost or bytes of a trace,"
        " a heading of a CSV; repeatable.",
        "RESOURCE=COLUMN",
        panel=EXPERT,
    ),
]
SigmaOption: TypeAlias = Annotated[
    float, option("Part of the tolerated imbalance left to untracked keys.", "S", panel=EXPERT)
]
TrackOption: TypeAlias = Annotated[
    int | None,
    option(
        "Track the K heaviest keys; if left out, those that reach delta, and 1000 at least where level is used.",
        "K",
        panel=EXPERT,
    ),
]


@dataclass(frozen=True, slots=True)
class Loads:
    """How keys load channels, and which keys are tracked."""

    max_imbalance: MaxImbalanceOption = MAX_IMBALANCE
    tolerance: ToleranceOption = "1.2"
    resources: ResourcesOption = "LLL"
    sigma: SigmaOption = 0.1
    track: TrackOption = None

    def weighed(self, measure: Sequence[str] | None = None) -> "Resources":
        """The loads and tolerances; `measure` has columns in place of letters, as RESOURCE=COLUMN.

        Raises:
            UsageError: an option is out of its range.
        """
        from adapt.core.partitioning.measures.resources import Resources

        check_max_imbalance(self.max_imbalance)
        return Resources.parse(self.resources, self.tolerance, self.sigma, measure or ())
