"""Verdict classes."""

from enum import StrEnum

MOST_SPLIT = 0.5
"""If more than this share of the load would have to be split, another key is the better fix."""


class VerdictClass(StrEnum):
    """What brings the imbalance within its limit."""

    BALANCED = "balanced"
    """Today's placement is within the limit."""
    PINNING = "fixable by pinning"
    """Some assignment of whole keys is within the limit."""
    REBUILDING = "fixable by pinning and rebuilding"
    """Pinned keys have to be chosen again in every window."""
    SPLITTING = "needs splitting"
    """None is, unless the hottest keys are split over workers."""
    ANOTHER_KEY = "needs another key"
    """There are fewer keys than workers, or more than half of the load would be split."""
    UNKNOWN = "cannot tell"
    """No plan has lowered the imbalance of later windows for certain, or rows are too few."""
