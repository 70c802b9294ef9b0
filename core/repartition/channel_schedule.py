"""Schedule of channel counts."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from adapt.core.errors import UsageError
from adapt.core.units.durations import duration_text, duration_us

_EXAMPLE = "such as 8, or 0h:8,6h:12"


@dataclass(frozen=True, slots=True)
class Schedule:
    """Channel counts by time since the first row of a trace."""

    # microseconds since the first row, and the channel count from then on; the first at 0, strictly rising
    steps: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if not self.steps:
            raise UsageError(f"--schedule needs at least one channel count, {_EXAMPLE}")
        if self.steps[0][0] != 0:
            raise UsageError(f"--schedule must start at 0h, {_EXAMPLE} (got {duration_text(self.steps[0][0])})")
        for (before, _), (after, _) in pairwise(self.steps):
            if after <= before:
                raise UsageError(
                    f"--schedule must have rising times (got {duration_text(after)} after {duration_text(before)})"
                )
        for _, channels in self.steps:
            if not 1 <= channels < 2**31:
                raise UsageError(f"the number of channels must be from 1 to 2147483647 (got {channels})")

    @classmethod
    def fixed(cls, channels: int) -> "Schedule":
        """A fixed channel count."""
        return cls(((0, channels),))

    @classmethod
    def parse(cls, text: str) -> "Schedule":
        """A schedule as typed: `8`, or `0h:8,6h:12`.

        The latter has 8 channels from the first row on, 12 from 6 hours later on.
        """
        if ":" not in text and "," not in text:
            return cls.fixed(_count(text, text))
        return cls(tuple(_step(part) for part in text.split(",")))

    def channels_at(self, offset_us: int) -> int:
        """The channel count at a time since the first row.

        In microseconds from 0.
        """
        return self.steps[bisect_right(self.steps, offset_us, key=lambda step: step[0]) - 1][1]

    def __str__(self) -> str:
        """The text that `parse` reads."""
        if len(self.steps) == 1:
            return str(self.steps[0][1])
        return ",".join(f"{duration_text(at)}:{channels}" for at, channels in self.steps)


def _step(part: str) -> tuple[int, int]:
    time, colon, count = part.partition(":")
    if not colon:
        raise UsageError(f"--schedule: step {part!r} has no time; write it {_EXAMPLE}")
    try:
        at = duration_us(time)
    except UsageError as error:
        raise UsageError(f"--schedule: step {part!r}: {error}") from error
    return at, _count(count, part)


def _count(text: str, part: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise UsageError(f"--schedule: {part!r} needs a number of channels, {_EXAMPLE} (got {text!r})")
    return int(digits)
