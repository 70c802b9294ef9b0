"""Options of load shedding."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

from adapt.cli.options.amounts import above_0
from adapt.cli.options.groups import option, setting
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.names import DropCurve

if TYPE_CHECKING:
    from adapt.core.stage.conditions.shed_factor import Overload, Thresholds

MinDropOption: TypeAlias = Annotated[float, option("Drop probability at the threshold.", "RATIO")]
DropCurveOption: TypeAlias = Annotated[DropCurve, option("Shape of the drop-probability curve.")]


@dataclass(frozen=True, slots=True)
class SheddingOptions:
    """What a worker of a stage buffers, and what it drops."""

    OPTION: ClassVar[str] = "--shed"
    HEAD: ClassVar[str] = "shed"
    shed: str | None = setting(
        None,
        "Buffer per worker, such as 5000@100ms. The drop probability rises with occupancy. Off by default.",
        "ROWS@TIME",
    )
    tau: str = setting(
        "0.1,0.4,0.8,0.9",
        "Occupancy thresholds, as ascending ratios. A worker drops rows above T2; the others are for scaling.",
        "T0,T1,T2,T3",
    )
    min_drop: MinDropOption = 0.0
    drop_curve: DropCurveOption = DropCurve.LINEAR

    def thresholds(self) -> "Thresholds":
        """The occupancy thresholds."""
        from adapt.core.stage.conditions.shed_factor import Thresholds

        try:
            return Thresholds(*map(float, self.tau.split(",")))
        except UsageError as error:
            raise UsageError(f"--shed tau: {error}") from None
        except (TypeError, ValueError):
            raise UsageError(
                f"--shed tau takes up to four numbers, such as 0.1,0.4,0.8,0.9 (got {self.tau!r})"
            ) from None

    def overload(self, window_s: float | None = None) -> "Overload | None":
        """Buffer and drop probability of a worker.

        Args:
            window_s: Window of a join, which is then the retention.
        """
        from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor

        if self.shed is None:
            return None
        capacity, at, retention = self.shed.partition("@")
        counted = capacity.isdecimal() and len(capacity) < 8
        if window_s is not None and (at or not counted):
            raise UsageError(
                f"--shed takes only a number of rows with --join, such as 5000, since the window is the retention"
                f" (got {self.shed!r})"
            )
        if window_s is None and not (at and counted):
            raise UsageError(f"--shed takes rows@retention, such as 5000@100ms (got {self.shed!r})")
        factor = ShedFactor(self.thresholds().tau2, self.min_drop, self.drop_curve)
        return Overload(factor, int(capacity), above_0("--shed", retention) if window_s is None else window_s)
