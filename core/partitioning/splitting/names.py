"""Names of the schemes that split keys; light enough for `--help`."""

from enum import StrEnum


class Splitting(StrEnum):
    """How many channels a key may use.

    Each message goes to the least loaded of them.
    """

    ONE_CHOICE = "one-choice"
    """No splitting: the uniform scheme, to compare with."""

    PKG = "pkg"
    """Partial key grouping: two channels for every key."""

    D_CHOICES = "d-choices"
    """Several channels for hot keys, two for the others."""

    W_CHOICES = "w-choices"
    """Every channel for hot keys, two for the others."""


class PlannedSplitting(StrEnum):
    """How keys are split by a plan, whatever the current load."""

    SPLIT_HOT = "split-hot"
    """The hottest keys over fixed channels each, by replacement keys; the next hottest pinned, the others hashed."""


REMEDIES = (PlannedSplitting.SPLIT_HOT, Splitting.PKG, Splitting.W_CHOICES)
"""Compared by default if no assignment of whole keys keeps the limit: one that a plan describes,
the usual scheme, and the best."""
