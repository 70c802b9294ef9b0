"""The option --channels: a number, a range, or a list."""

from adapt.core.errors import UsageError

MOST_CHANNELS = 1_000_000
"""The most channels of any command."""

_MOST_COUNTS = 10_000


def channel_counts(text: str) -> list[int]:
    """Parse channel counts: `8`, `1:10` (both ends), `10:4` (shrinking), `1,2,4,8`."""
    counts: list[int] = []
    for part in text.split(","):
        first, colon, last = part.partition(":")
        try:
            low, high = int(first), int(last if colon else first)
        except ValueError:
            raise UsageError(
                f"--channels takes a number, a range or a list such as 8, 1:10 or 1,2,4,8 (got {text!r})"
            ) from None
        for end in (low, high):
            check_channels(end, text)
        if len(counts) + abs(high - low) >= _MOST_COUNTS:
            raise UsageError(
                f"--channels takes at most {_MOST_COUNTS:,} numbers of workers (got {text!r}); use a shorter range"
            )
        counts += range(low, high + 1) if low <= high else range(low, high - 1, -1)
    return counts


def check_channels(channels: int, text: str = "") -> None:
    """Check a number of channels, given as a part of `text`."""
    if not 1 <= channels <= MOST_CHANNELS:
        raise UsageError(f"--channels must be from 1 to {MOST_CHANNELS:,} (got {text or channels})")
