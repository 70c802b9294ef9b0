"""The verdict on a stream: whether it is even, or what makes it so, with the evidence and how sure it is."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from adapt.core.counting.tables import NULL_KEY
from adapt.core.phrases import counted, percent
from adapt.core.table import told_html
from adapt.core.verdict.skew_over_time import OverTime
from adapt.core.verdict.verdict_class import MOST_SPLIT, Cure

_PLAIN = (
    *("channels", "engine", "tolerance", "imbalance", "imbalance_floor", "gap", "useful_workers"),
    *("top_share", "top_key", "busy_keys", "keys_to_move", "state_to_move", "imbalance_after"),
)
"""What is written as it is."""

_MOST_SPELT = 5
"""A sentence names no more keys."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """An interval of f_max, and so of the floor.

    Attributes:
        top_share_low, top_share_high: The ends.
        imbalance_floor_low, imbalance_floor_high: max(1, N f) at them.
        level: The share of samples whose interval holds the truth, at least; None where the interval is of the count
            alone, as rows that weigh are no draws.
        certain: Whether the floor is on the same side of the limit at both ends.
    """

    top_share_low: float
    top_share_high: float
    imbalance_floor_low: float
    imbalance_floor_high: float
    level: float | None
    method: str
    certain: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the skew of a stream asks for at so many channels.

    Attributes:
        engine: What places the keys today.
        tolerance: T, the most imbalance that will do.
        imbalance: The fullest channel over the average, as the engine places them.
        imbalance_floor: No placement of whole keys has less; max(1, N f_max) where channels are alike.
        top_key: The heaviest key as it is shown; empty if none is listed.
        top_share: f_max, its share of the load.
        busy_keys: Keys with a load; an estimate where some are not listed.
        keys_to_move: Where placement cures it, how many keys move; None elsewhere, or if too few are listed to tell.
        state_to_move: Their share of all state.
        imbalance_after: What is left then.
        keys_to_split: Where it takes splitting, the names of the keys, the heaviest first, at most 20.
        number_to_split: How many they are.
        split_share: What they carry, as a share of the load.
        proved: Whether it is certain that no placement keeps the limit, where none was found.
        confidence: What the sample allows to say of f_max; None where nothing was estimated.
        over_time: The same by panes; None where no times are known.
    """

    cure: Cure
    channels: int
    engine: str
    tolerance: float
    imbalance: float
    imbalance_floor: float
    top_key: str
    top_share: float
    busy_keys: int
    keys_to_move: int | None = None
    state_to_move: float | None = None
    imbalance_after: float | None = None
    keys_to_split: tuple[str, ...] = ()
    number_to_split: int = 0
    split_share: float = 0.0
    proved: bool = True
    confidence: Confidence | None = None
    over_time: OverTime | None = None

    @property
    def gap(self) -> float:
        """How far the engine is from the best there may be: imbalance over imbalance_floor."""
        return self.imbalance / self.imbalance_floor

    @property
    def useful_workers(self) -> float:
        """1 / f_max: more channels than that cannot all be busy, as long as keys stay whole."""
        return 1 / self.top_share if self.top_share else float(max(self.busy_keys, 1))

    @property
    def headline(self) -> str:
        """The class, at how many channels, by what limit."""
        return f"{self.cure.value} ({counted(self.channels, 'channel')}, limit {self.tolerance:g})"

    @property
    def sentences(self) -> list[str]:
        """What is so today and at best; what to do; how sure that is; how it varies."""
        told = [_today(self), _cure(self)]
        if self.confidence is not None:
            told.append(_sure(self, self.confidence))
        if self.over_time is not None:
            told.append(_varies(self.over_time))
        return told

    def _repr_html_(self) -> str:
        """In words, for a notebook."""
        return told_html(self.headline, self.sentences)

    def as_data(self) -> dict[str, Any]:
        """The verdict as JSON data; the names of its numbers are those of metrics and do not change."""
        return {
            "class": self.cure.value,
            **{name: getattr(self, name) for name in _PLAIN},
            "keys_to_split": list(self.keys_to_split),
            **{name: getattr(self, name) for name in ("number_to_split", "split_share", "proved")},
            "confidence": None if self.confidence is None else asdict(self.confidence),
            "over_time": None if self.over_time is None else self.over_time.as_data(),
            "sentence": " ".join(self.sentences),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Verdict":
        """What `as_data` told.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        derived = {"class", "gap", "useful_workers", "sentence", "confidence", "over_time", "keys_to_split"}
        confidence, over_time = data["confidence"], data["over_time"]
        return cls(
            cure=Cure(data["class"]),
            keys_to_split=tuple(data["keys_to_split"]),
            confidence=None if confidence is None else Confidence(**confidence),
            over_time=None if over_time is None else OverTime.from_data(over_time),
            **{name: value for name, value in data.items() if name not in derived},
        )


def _today(verdict: Verdict) -> str:
    placed = f"Today ({verdict.engine}) the fullest of {counted(verdict.channels, 'channel')} carries"
    floor = f"no placement of whole keys does better than {verdict.imbalance_floor:.3f}"
    heaviest = (
        f" The heaviest key, {verdict.top_key}, has {percent(verdict.top_share)} of the load, so that"
        f" {verdict.useful_workers:,.3g} channels at most can be busy while keys stay whole."
        if verdict.top_key
        else ""
    )
    return f"{placed} {verdict.imbalance:.3f} times the average; {floor}.{heaviest}"


def _cure(verdict: Verdict) -> str:
    match verdict.cure:
        case Cure.NONE_NEEDED:
            return f"Nothing needs to be done: {verdict.imbalance:.3f} is within {verdict.tolerance:g}."
        case Cure.PLACEMENT:
            return _placement(verdict)
        case Cure.SPLITTING:
            return (
                f"{_no_placement(verdict)} Splitting {_keys(verdict)}, {percent(verdict.split_share)} of the load,"
                f" over the channels that have room makes it possible.{_null(verdict)}"
            )
        case Cure.ANOTHER_KEY:
            return f"{_no_placement(verdict)} {_another(verdict)}{_null(verdict)}"


def _placement(verdict: Verdict) -> str:
    if verdict.keys_to_move is None:
        return (
            f"Placing keys one by one keeps within {verdict.tolerance:g}; which ones, these counts list too few keys to"
            " tell."
        )
    return (
        f"Moving {counted(verdict.keys_to_move, 'key')}, {percent(verdict.state_to_move or 0.0)} of the state, brings"
        f" it to {verdict.imbalance_after or 1.0:.3f}, within {verdict.tolerance:g}."
    )


def _no_placement(verdict: Verdict) -> str:
    if verdict.imbalance_floor > verdict.tolerance or verdict.proved:
        why = "" if verdict.imbalance_floor > verdict.tolerance else ": the heavy keys do not divide evenly"
        return f"No placement keeps within {verdict.tolerance:g}{why}."
    return f"No placement within {verdict.tolerance:g} was found, though one may exist."


def _another(verdict: Verdict) -> str:
    if verdict.busy_keys < verdict.channels:
        have = "has" if verdict.busy_keys == 1 else "have"
        return (
            f"Only {counted(verdict.busy_keys, 'key')} {have} any load, fewer than channels: partition by a finer key,"
            " or take fewer channels."
        )
    return (
        f"Splitting would have to spread {_keys(verdict)}, {percent(verdict.split_share)} of the load, which is"
        f" more than {MOST_SPLIT:.0%}: partition by a finer key, or take fewer channels."
    )


def _null(verdict: Verdict) -> str:
    """What can be done about rows without a key, where they are among those that are too heavy."""
    has_null = NULL_KEY in verdict.keys_to_split
    return " Rows without a key can be spread or left out, if they share no state." if has_null else ""


def _keys(verdict: Verdict) -> str:
    names, number = verdict.keys_to_split, verdict.number_to_split
    spelt = ", ".join(names[:_MOST_SPELT]) + (f" and {number - _MOST_SPELT:,} more" if number > _MOST_SPELT else "")
    return f"{counted(number, 'key')} ({spelt})"


def _sure(verdict: Verdict, confidence: Confidence) -> str:
    ends = f"{percent(confidence.top_share_low)} to {percent(confidence.top_share_high)}"
    floors = f"{confidence.imbalance_floor_low:.3f} to {confidence.imbalance_floor_high:.3f}"
    if confidence.level is None:
        source = "by the bounds of the counter"
    else:
        source = f"at {confidence.level:.0%} confidence (Clopper-Pearson, messages taken as drawn)"
    told = f"The share of the heaviest key is {ends} {source}, so the floor is {floors}"
    if confidence.certain:
        side = "within" if confidence.imbalance_floor_high <= verdict.tolerance else "above"
        return f"{told}: {side} the limit throughout."
    return f"{told}: too few messages to say on which side of {verdict.tolerance:g} it is; take a longer sample."


def _varies(over_time: OverTime) -> str:
    shares = [pane.top_share for pane in over_time.panes]
    floors = [pane.imbalance_floor for pane in over_time.panes]
    ranges = (
        f"In {len(over_time.panes)} panes of about {over_time.panes[0].rows:,} rows the heaviest key of each has"
        f" {percent(min(shares))} to {percent(max(shares))}, and the floor is {min(floors):.3f} to {max(floors):.3f}"
    )
    if over_time.changes:
        each = ", ".join(f"{cure.value} in {count}" for cure, count in over_time.classes)
        return f"{ranges}; the class changes: {each}."
    return f"{ranges}; the class of every one: {over_time.classes[0][0].value}."
