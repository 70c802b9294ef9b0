"""The verdict on a comparison: whether placement is the cure for the skew, or key splitting, or another key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from adapt.core.partitioners.names import Scheme
from adapt.core.partitioners.splitting.names import Splitting
from adapt.core.table import Table

Row = Mapping[str, Any]

_WHOLE = frozenset(scheme.value for scheme in Scheme)
_SPLIT = frozenset(way.value for way in Splitting if way is not Splitting.ONE_CHOICE)
_HASHED = (Scheme.SPARK, Scheme.KAFKA, Scheme.FLINK, Scheme.UNIFORM, Scheme.CONSISTENT)
"""What a stream would have today, the likeliest first."""


class Cure(StrEnum):
    """What brings the imbalance within its limit."""

    NONE_NEEDED = "even already"
    PLACEMENT = "placement cures it"
    SPLITTING = "needs key splitting"
    ANOTHER_KEY = "needs another key"
    NOT_COMPARED = "no cure compared"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison says about its largest channel count.

    Attributes:
        cure: The class.
        channels: N.
        sentence: The class with its evidence.
    """

    cure: Cure
    channels: int
    sentence: str

    def as_data(self) -> dict[str, Any]:
        """The verdict as JSON data."""
        return {"class": self.cure.value, "channels": self.channels, "sentence": self.sentence}


def verdict(compared: Table, limit: float, heaviest: str = "") -> Verdict | None:
    """Judge the largest channel count of a comparison; None if nothing there has a load.

    Args:
        compared: Rows of a comparison (`Comparison.table`).
        limit: The most imbalance (max/mean) that will do; the tolerance of the network.
        heaviest: The heaviest key, to be named.
    """
    loaded = [row for row in compared.records() if row["imbalance"] is not None and row["imbalance_floor"] is not None]
    if not loaded:
        return None
    channels = max(int(row["channels"] or 0) for row in loaded)
    rows = [row for row in loaded if row["channels"] == channels]
    whole, split = ([row for row in rows if row["scheme"] in names] for names in (_WHOLE, _SPLIT))
    return _judged(channels, whole or rows, split, limit, heaviest)


def _judged(channels: int, whole: Sequence[Row], split: Sequence[Row], limit: float, heaviest: str) -> Verdict:
    floor = float(whole[0]["imbalance_floor"])
    best = min(whole, key=_imbalance)
    hashed = next((row for scheme in _HASHED for row in whole if row["scheme"] == scheme.value), None)
    at = f"At {channels} channels"
    if floor > limit:
        return _beyond_placement(at, channels, best, split, limit, floor, heaviest)
    if hashed is not None and _imbalance(hashed) <= limit:
        sentence = f"{at} nothing needs to be done: hashing alone ({_named(hashed)}) has imbalance {_ratio(hashed)}."
        return Verdict(Cure.NONE_NEEDED, channels, sentence)
    if _imbalance(best) <= limit:
        return Verdict(Cure.PLACEMENT, channels, _placed(at, whole, hashed, limit))
    sentence = (
        f"{at} nothing compared here keeps within {limit:g}: the best is {_named(best)} with imbalance {_ratio(best)},"
        f" where whole keys could reach {floor:.3f}; track more keys (--track), or compare other schemes."
    )
    return Verdict(Cure.NOT_COMPARED, channels, sentence)


def _placed(at: str, whole: Sequence[Row], hashed: Row | None, limit: float) -> str:
    """What placement brings: the scheme that migrates least, of those within the limit."""
    even = [row for row in whole if _imbalance(row) <= limit]
    chosen = min(even, key=lambda row: (row["m"] or 0.0, _imbalance(row)))
    fall = f"from {_ratio(hashed)} ({_named(hashed)}) " if hashed is not None else ""
    mapped = f", {chosen['explicit_keys']:,} keys mapped one by one" if chosen["explicit_keys"] else ""
    moved = f"; of those within {limit:g}, the one that migrates least" if chosen["m"] and len(even) > 1 else ""
    how = f"{_named(chosen)}{mapped}{moved}"
    return f"{at} placement cures the skew: imbalance falls {fall}to {_ratio(chosen)} ({how})."


def _beyond_placement(
    at: str, channels: int, best: Row, split: Sequence[Row], limit: float, floor: float, heaviest: str
) -> Verdict:
    """Where the heaviest key alone is more than a channel should carry."""
    key = f"the heaviest key, {heaviest}," if heaviest else "the heaviest key"
    why = (
        f"{at} no placement of whole keys can cure the skew: {key} alone is {floor / channels:.1%} of the load, so the"
        f" imbalance is at least {floor:.3f} (best here: {_named(best)} with {_ratio(best)})."
    )
    bearable = int(limit * channels / floor)
    fewer = f" {bearable} channels can be even, or more if" if bearable > 1 else " They can only be even if"
    spread = min(split, key=_imbalance, default=None)
    if spread is None:
        return Verdict(Cure.SPLITTING, channels, f"{why}{fewer} that key is split.")
    reached = f"{_named(spread)} reaches {_ratio(spread)}"
    if _imbalance(spread) > limit:
        sentence = f"{why} Nor can splitting keys: {reached}; partition by another key."
        return Verdict(Cure.ANOTHER_KEY, channels, sentence)
    cost = f"at {spread['channels_per_key']:.2f} channels a key on average and {spread['merge_tuples']:,} merge tuples"
    return Verdict(Cure.SPLITTING, channels, f"{why}{fewer} keys are split: {reached}, {cost}.")


def _imbalance(row: Row) -> float:
    return float(row["imbalance"])


def _ratio(row: Row) -> str:
    return f"{_imbalance(row):.3f}"


def _named(row: Row) -> str:
    return f"{row['scheme']} ({row['construction']})" if row["construction"] else str(row["scheme"])
