"""Names of counting methods, quick to import for `--help`."""

from enum import StrEnum


class CountMethod(StrEnum):
    """Counting methods."""

    LOSSY = "lossy"
    """Hot keys with bounds on their counts, in bounded memory."""

    EXACT = "exact"
    """Every key."""

    SLIDING = "sliding"
    """Lossy, over the last window."""
