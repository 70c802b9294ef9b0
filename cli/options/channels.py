"""Channel counts: one, a range, or a list."""

from adapt.core.errors import UsageError

MOST_CHANNELS = 1_000_000
"""No command takes more channels; such a number is a slip."""

_MOST_COUNTS = 10_000


def channel_counts(text: str) -> list[int]:
    """Channel counts in turn: `8`, `1:10` (both ends), `10:4` (shrinking), `1,2,4,8`.

    Raises:
        UsageError: the text has another form, a count is below 1 or above `MOST_CHANNELS`, or there are too many
            counts.
    """
    counts: list[int] = []
    for part in text.split(","):
        first, colon, last = part.partition(":")
        try:
            low, high = int(first), int(last if colon else first)
        except ValueError:
            raise UsageError(
                f"--channels {text!r} is not a count, a range or a list, e.g. 8, 1:10 or 1,2,4,8"
            ) from None
        for end in (low, high):
            check_channels(end, text)
        if len(counts) + abs(high - low) >= _MOST_COUNTS:
            raise UsageError(f"--channels {text!r} is more than {_MOST_COUNTS:,} counts; give a shorter range")
        counts += range(low, high + 1) if low <= high else range(low, high - 1, -1)
    return counts


def check_channels(channels: int, text: str = "") -> None:
    """Check a count of channels, which was typed as a part of `text`.

    Raises:
        UsageError: it is below 1 or above `MOST_CHANNELS`.
    """
    given = f"--channels {text or channels}"
    if channels < 1:
        raise UsageError(f"{given}: {channels} channels cannot carry a stream; give 1 or more")
    if channels > MOST_CHANNELS:
        raise UsageError(f"{given}: {channels:,} channels are more than the {MOST_CHANNELS:,} there may be")
