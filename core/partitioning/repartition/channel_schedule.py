"""How many channels there are, and from when on."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from adapt.core.errors import UsageError
from adapt.core.units.durations import duration_text, duration_us

_EXAMPLE = "such as 8, or 0h:8,6h:12"


@dataclass(frozen=True, slots=True)
class Schedule:
    """Channel counts by the time since the first row of a trace.

    Attributes:
        steps: Microseconds since the first row, and the channel count from then on; the first at 0, strictly rising.

    Raises:
        UsageError: the steps are not so, or a count is below 1.
    """

    steps: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if not self.steps:
            raise UsageError(f"a schedule has at least one channel count, {_EXAMPLE}")
        if self.steps[0][0] != 0:
            raise UsageError(
                f"the schedule begins at {duration_text(self.steps[0][0])}, but must say how many channels there are"
                f" from 0h on, {_EXAMPLE}"
            )
        for (before, _), (after, _) in pairwise(self.steps):
            if after <= before:
                raise UsageError(
                    f"the schedule goes from {duration_text(before)} to {duration_text(after)}, but its times must rise"
                )
        for _, channels in self.steps:
            if not 1 <= channels < 2**31:
                raise UsageError(f"{channels} channels cannot carry a stream: give from 1 to 2147483647")

    @classmethod
    def fixed(cls, channels: int) -> "Schedule":
        """One channel count all the time."""
        return cls(((0, channels),))

    @classmethod
    def parse(cls, text: str) -> "Schedule":
        """A schedule as a user writes it: `8`, or `0h:8,6h:12` (from the first row on 8 channels, 6 hours later 12).

        Raises:
            UsageError: it is neither.
        """
        if ":" not in text and "," not in text:
            return cls.fixed(_count(text, text))
        return cls(tuple(_step(part) for part in text.split(",")))

    def channels_at(self, offset_us: int) -> int:
        """The channel count at a time since the first row, from 0 up."""
        return self.steps[bisect_right(self.steps, offset_us, key=lambda step: step[0]) - 1][1]

    def __str__(self) -> str:
        """The text that `parse` reads."""
        if len(self.steps) == 1:
            return str(self.steps[0][1])
        return ",".join(f"{duration_text(at)}:{channels}" for at, channels in self.steps)


def _step(part: str) -> tuple[int, int]:
    time, colon, count = part.partition(":")
    if not colon:
        raise UsageError(f"step {part!r} of the schedule has no time; a schedule is written {_EXAMPLE}")
    try:
        at = duration_us(time)
    except UsageError as error:
        raise UsageError(f"step {part!r} of the schedule: {error}") from error
    return at, _count(count, part)


def _count(text: str, part: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise UsageError(f"{part!r} has {text!r} where a number of channels is expected, {_EXAMPLE}")
    return int(digits)
