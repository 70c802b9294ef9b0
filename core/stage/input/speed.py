"""Speed of a replay: an offered load or a speed-up."""

from collections.abc import Sequence
from dataclasses import dataclass

from adapt.core.units.settings import ABOVE_0, SettingError, knob, same, settings

OFFERED = 1.2
"""Default load of the busiest worker over its capacity."""

POOL_OFFERED = 0.2
"""Default load of a pool of workers over their capacity: half of the pool has the default target utilization."""

PERIODS = 100
"""Default number of control periods in a replay."""

LEAST_PERIOD_S = 1e-5
"""Least usual control period: a replay of a few rows may last nanoseconds, and a move milliseconds."""


@settings()
class Speed:
    """Speed of a replay; at most one value is given."""

    offered: float | None = knob(
        "Load of the busiest worker over its capacity (default: 1.2). It sets the speed of the replay.",
        "RATIO",
        default=None,
        range=ABOVE_0,
        needs="arrivals trace",
        unless="stages",
    )
    speedup: float | None = knob(
        "Trace seconds replayed per simulated second.", "RATIO", default=None, range=ABOVE_0, needs="arrivals trace"
    )

    def __post_init__(self) -> None:
        if None not in (self.offered, self.speedup):
            raise SettingError(Speed, "{offered} and {speedup} both set the speed of the replay; omit one")

    @property
    def chosen(self) -> bool:
        """Whether a value is given."""
        return (self.offered, self.speedup) != (None, None)

    def or_offered(self, usual: float) -> "Speed":
        """This speed, or a usual load if none is given."""
        return self if self.chosen else Speed(offered=usual)

    def __str__(self) -> str:
        return f"{self.offered:g}" if self.speedup is None else f"{self.speedup:g}x"

    def load(self, own: float) -> float:
        """Load of the workers over their capacity.

        Args:
            own: The load at the trace's own rate.
        """
        return own * (self.speedup or 1.0) if self.offered is None else self.offered

    def speedup_at(self, load: float | None) -> float:
        """Trace seconds per simulated second.

        Args:
            load: Load of the workers over their capacity at the trace's own rate; None if it has no rate.
        """
        if self.offered is None:
            return self.speedup or 1.0
        if not load:
            no_rate = (
                "all rows have the same timestamp, so the stream has no rate; replay a longer one, or give {speedup}"
            )
            raise SettingError(Speed, no_rate)
        return self.offered / load


@settings()
class PoolSpeed(Speed):
    """Speed of a replay through a pool of workers."""

    offered: float | None = same(
        Speed,
        "offered",
        help="Load of the pool over its capacity (default: 0.2). It sets the speed of the replay.",
        needs=(),
        unless=(),
    )


@dataclass(frozen=True, slots=True)
class Tempo:
    """Speed-up of a replay, and the times that follow from it."""

    speedup: float | None  # trace seconds per simulated second; None, as fast as workers accept rows
    # length of the replay if an offered load sets the speed; None, times of controllers do not depend on it
    lasts_s: float | None = None

    def or_periods(self, usual_s: float, periods: int) -> float:
        """A usual time of a controller; at an offered load, control periods."""
        return usual_s if self.lasts_s is None else periods * period_of(self.lasts_s)

    @property
    def in_trace_time(self) -> float:
        """Replay time over trace time at an offered load; else 1."""
        return 1.0 if self.lasts_s is None or not self.speedup else 1.0 / self.speedup

    def at_most_a_period(self, usual_s: float) -> float:
        """A usual time; at an offered load, at most a control period."""
        return usual_s if self.lasts_s is None else min(usual_s, period_of(self.lasts_s))


def speeds_of(offered: str | None, speedup: str | None, usual: float) -> tuple[Speed, ...]:
    """The speeds of lists as typed, one each.

    Args:
        offered: Loads, such as 0.8,1.2.
        speedup: Speed-ups, such as 2,10.
        usual: The offered load if none is given.
    """
    loads, speedups = _numbers("offered", offered, "0.8,1.2"), _numbers("speedup", speedup, "2,10")
    return tuple(Speed(load, each).or_offered(usual) for load in loads for each in speedups)


def period_of(lasts_s: float) -> float:
    """The usual control period: a hundredth of a replay, in three digits.

    It is at least 10 microseconds, so that a move does not take millions of them.
    """
    return max(LEAST_PERIOD_S, float(f"{lasts_s / PERIODS:.3g}"))


def _numbers(name: str, text: str | None, example: str) -> Sequence[float | None]:
    """The numbers of a list as typed; (None,) without one."""
    if text is None:
        return (None,)
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        raise SettingError(Speed, f"{{{name}}} takes numbers such as {example} (got {text!r})") from None
    if len(set(found)) < len(found):
        raise SettingError(Speed, f"{{{name}}} takes each value once (got {text!r})")
    return found
