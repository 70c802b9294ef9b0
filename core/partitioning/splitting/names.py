"""The names by which ways of splitting keys are chosen; light enough for `--help`."""

from enum import StrEnum


class Splitting(StrEnum):
    """How many channels a key may use. Each of its tuples goes to the one of them that is least loaded."""

    ONE_CHOICE = "one-choice"
    """None is split: the uniform scheme, to compare with."""

    PKG = "pkg"
    """Partial key grouping: two channels for every key."""

    D_CHOICES = "d-choices"
    """Several channels for heavy keys, two for the others."""

    W_CHOICES = "w-choices"
    """Every channel for heavy keys, two for the others."""


REMEDIES = (Splitting.PKG, Splitting.W_CHOICES)
"""What is shown beside placements where no placement of whole keys can be even: the usual way, and the best."""
