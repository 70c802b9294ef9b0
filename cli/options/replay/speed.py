"""Options of how fast a trace is replayed."""

from dataclasses import dataclass
from typing import ClassVar

from adapt.cli.options.groups import setting
from adapt.core.stage.input.speed import OFFERED, POOL_OFFERED, Speed, speed_of, speeds_of


@dataclass(frozen=True, slots=True)
class SpeedOptions:
    """How fast a trace is replayed."""

    USUAL: ClassVar[float] = OFFERED
    offered: float | None = setting(
        None,
        "Load of the busiest worker over its capacity (default: 1.2). It sets the speed of the replay.",
        "RATIO",
        shown=False,
        needs="--arrivals trace",
        unless="--stages",
    )
    speedup: float | None = setting(
        None, "Trace seconds replayed per simulated second.", "RATIO", needs="--arrivals trace"
    )

    @property
    def chosen(self) -> bool:
        """Whether an option sets the speed."""
        return (self.offered, self.speedup) != (None, None)

    def speed(self) -> Speed:
        """The speed of the replay."""
        return speed_of(self.offered, self.speedup, self.USUAL)


@dataclass(frozen=True, slots=True)
class PoolSpeedOptions(SpeedOptions):
    """How fast a trace is replayed through a pool of workers."""

    USUAL: ClassVar[float] = POOL_OFFERED
    offered: float | None = setting(
        None,
        "Load of the pool over its capacity (default: 0.2). It sets the speed of the replay.",
        "RATIO",
        shown=False,
    )


@dataclass(frozen=True, slots=True)
class ComparedSpeedOptions:
    """How fast a trace is replayed through several mechanisms."""

    offered: str | None = setting(
        None,
        "Load of static-uniform's busiest channel of N (default: 1.2), which sets the speed. Of a list such as"
        " 0.5,0.8,1.2 the highest is recommended for.",
        "RATIO[,...]",
        shown=False,
    )
    speedup: str | None = setting(None, "Trace seconds replayed per simulated second.", "RATIO[,...]")

    @property
    def chosen(self) -> bool:
        """Whether an option sets the speed."""
        return (self.offered, self.speedup) != (None, None)

    def speeds(self) -> tuple[Speed, ...]:
        """The speeds, in the order given."""
        return speeds_of(self.offered, self.speedup, OFFERED)

    @property
    def highest(self) -> Speed:
        """The highest speed."""
        return max(self.speeds(), key=lambda each: each.offered or each.speedup or 0.0)
