"""Options of load shedding."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options.amounts import above_0
from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.names import DropCurve

if TYPE_CHECKING:
    from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor, Thresholds

TAU = "0.1,0.4,0.8,0.9"
MIN_DROP, DROP_CURVE = "Drop probability at the threshold.", "Shape of the drop-probability curve."


@dataclass(frozen=True, slots=True)
class BufferOptions:
    """What a worker of a stage buffers."""

    OPTION: ClassVar[str] = "--shed"
    HEAD: ClassVar[str] = "shed"
    UNLESS: ClassVar[str] = "--stages"
    READ: ClassVar[tuple[int, ...]] = (1, 2)  # the thresholds that are read
    shed: str | None = setting(
        None,
        "Buffer per worker, such as 5000@100ms. The drop probability rises with occupancy. Off by default.",
        "ROWS@TIME",
    )
    tau: str = setting(
        TAU,
        "Occupancy thresholds, as ascending ratios: the busiest worker starts at T1, and drops rows above T2.",
        "T1,T2",
        needs="--shed",
    )

    def thresholds(self) -> "Thresholds":
        """The occupancy thresholds."""
        from adapt.core.stage.conditions.shed_factor import Thresholds

        try:
            numbers = [float(part) for part in self.tau.split(",")]
            if len(numbers) == len(self.READ) < 4:
                *given, tau2 = numbers
                tau1 = given[0] if given else tau2 / 2
                numbers = [tau1 / 2, tau1, tau2, (1 + tau2) / 2]
            elif unread := [at for at in range(4) if at not in self.READ and numbers[at] != float(TAU.split(",")[at])]:
                raise UsageError(
                    f"T{unread[0]} has no effect here; give {','.join(f'T{at}' for at in self.READ)} alone (got"
                    f" {self.tau})"
                )
            return Thresholds(*numbers)
        except UsageError as error:
            raise UsageError(f"--shed tau: {error}") from None
        except (IndexError, TypeError, ValueError):
            raise UsageError(
                f"--shed tau takes up to four numbers, such as 0.1,0.4,0.8,0.9 (got {self.tau!r})"
            ) from None

    def factor(self) -> "ShedFactor":
        """How the drop probability rises."""
        from adapt.core.stage.conditions.shed_factor import ShedFactor

        return ShedFactor(self.thresholds().tau2, 0.0, DropCurve.LINEAR)

    def overload(self, window_s: float | None = None) -> "Overload | None":
        """Buffer and drop probability of a worker.

        Args:
            window_s: Window of a join, which is then the retention.
        """
        from adapt.core.stage.conditions.shed_factor import Overload

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
        return Overload(self.factor(), int(capacity), above_0("--shed", retention) if window_s is None else window_s)


@dataclass(frozen=True, slots=True)
class SheddingOptions(BufferOptions):
    """What a worker of a stage buffers, and what it drops."""

    READ: ClassVar[tuple[int, ...]] = (2,)
    tau: str = setting(TAU, "Occupancy above which a worker drops rows.", "T2", needs="--shed")
    min_drop: float = setting(0.0, MIN_DROP, "RATIO", needs="--shed")
    drop_curve: DropCurve = setting(DropCurve.LINEAR, DROP_CURVE, needs="--shed")

    def factor(self) -> "ShedFactor":
        """How the drop probability rises."""
        from adapt.core.stage.conditions.shed_factor import ShedFactor

        return ShedFactor(self.thresholds().tau2, self.min_drop, self.drop_curve)


@dataclass(frozen=True, slots=True)
class ScalingBuffer(SheddingOptions):
    """Buffer of a worker, with all thresholds of scaling."""

    READ: ClassVar[tuple[int, ...]] = (0, 1, 2, 3)
    tau: str = setting(
        TAU,
        "Occupancy thresholds, as ascending ratios. A worker drops rows above T2; the others are for scaling.",
        "T0,T1,T2,T3",
        needs="--policy thresholds|all or --shed",
    )


@dataclass(frozen=True, slots=True)
class ComparedBuffer(ScalingBuffer):
    """Buffer of the scenarios that shed load."""

    tau: str = setting(TAU, "Occupancy thresholds, as ascending ratios: those of `replay elastic`.", "T0,T1,T2,T3")
    min_drop: float = setting(0.0, MIN_DROP, "RATIO")
    drop_curve: DropCurve = setting(DropCurve.LINEAR, DROP_CURVE)
