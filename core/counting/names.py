"""The names by which ways to count are chosen; light enough for `--help`."""

from enum import StrEnum


class CountMethod(StrEnum):
    """How the keys of a stream are counted."""

    LOSSY = "lossy"
    """The heavy keys, each within an interval, in memory that the error bounds alone decide."""

    EXACT = "exact"
    """Every key."""

    SLIDING = "sliding"
    """Lossy, and only the rows of the last window."""
