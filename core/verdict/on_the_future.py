"""Verdict class of a stream by what its later windows showed."""

from adapt.core.out_of_sample.outcome import OutOfSample
from adapt.core.verdict.verdict_class import VerdictClass

_ROUNDING = 1e-9

_MUCH = 0.95
"""Rebuilding pays if it brings the median imbalance below this part of that of a plan that is kept."""


def class_out_of_sample(
    in_sample: VerdictClass, tested: OutOfSample, pins: int, limit: float, most_moved: float | None = None
) -> VerdictClass:
    """The class by tested windows.

    Balanced: today's placement is within the limit in half of them. Otherwise, if some of the hottest keys have to be
    split, the class in-sample, unless pinned keys keep the limit all the same; else pinning, where a plan has lowered
    the imbalance for certain, and refreshing where rebuilding it keeps the limit and keeping it does not, or lowers the
    imbalance much further; else nobody can tell.

    Args:
        in_sample: The class by all counted rows.
        pins: Number of keys that the recommended plan pins.
        limit: Tolerated imbalance, from 1.
        most_moved: Largest share of state that a refresh may move.
    """
    allowed = limit * (1 + _ROUNDING)
    kept, rebuilt = tested.kept.median, tested.rebuilt.median
    if tested.today.median <= allowed:
        return VerdictClass.BALANCED
    if pins and kept <= allowed:
        return VerdictClass.PINNING
    refreshed = bool(tested.rebuilt.pins) and rebuilt < _MUCH * min(kept, tested.today.median)
    refreshed &= most_moved is None or tested.rebuilt.state_to_move <= most_moved
    if refreshed and rebuilt <= allowed:
        return VerdictClass.REFRESHING
    if in_sample in (VerdictClass.SPLITTING, VerdictClass.ANOTHER_KEY):
        return in_sample
    if refreshed:
        return VerdictClass.REFRESHING
    return VerdictClass.PINNING if pins else VerdictClass.UNKNOWN
