"""The classes of a verdict."""

from enum import StrEnum

MOST_SPLIT = 0.5
"""Where more of the load than this part would have to be split, another key is asked for."""


class Cure(StrEnum):
    """What brings the imbalance within its limit."""

    NONE_NEEDED = "even already"
    """The placement of today keeps it."""
    PLACEMENT = "placement cures it"
    """Some placement of whole keys does."""
    SPLITTING = "needs key splitting"
    """None does, but with the heaviest keys spread over channels."""
    ANOTHER_KEY = "needs another key"
    """There are fewer keys than channels, or more than half of the load would be split."""
