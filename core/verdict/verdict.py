"""The verdict on a stream: whether it is even, or what makes it so, with the evidence and how sure it is."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from adapt.core.table import told_html
from adapt.core.verdict.skew_over_time import OverTime
from adapt.core.verdict.verdict_class import Cure
from adapt.core.verdict.words import headline, sentences


@dataclass(frozen=True, slots=True)
class Confidence:
    """An interval of f_max, and so of the floor.

    Attributes:
        top_share_low, top_share_high: The ends.
        imbalance_floor_low, imbalance_floor_high: max(1, N f) at them.
        level: The share of samples whose interval holds the truth, at least; None where the interval is of the count
            alone, as rows that weigh are no draws.
        method: By which it was made.
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
        cure: The class.
        channels: N.
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
        return headline(self)

    @property
    def sentences(self) -> list[str]:
        """The evidence, what to do, how sure it is, and how it varies."""
        return sentences(self)

    def _repr_html_(self) -> str:
        """In words, for a notebook."""
        return told_html(self.headline, self.sentences)

    def as_data(self) -> dict[str, Any]:
        """The verdict as JSON data; the names of its numbers are those of metrics and do not change."""
        return {
            "class": self.cure.value,
            "channels": self.channels,
            "engine": self.engine,
            "tolerance": self.tolerance,
            "imbalance": self.imbalance,
            "imbalance_floor": self.imbalance_floor,
            "gap": self.gap,
            "useful_workers": self.useful_workers,
            "top_share": self.top_share,
            "top_key": self.top_key,
            "busy_keys": self.busy_keys,
            "keys_to_move": self.keys_to_move,
            "state_to_move": self.state_to_move,
            "imbalance_after": self.imbalance_after,
            "keys_to_split": list(self.keys_to_split),
            "number_to_split": self.number_to_split,
            "split_share": self.split_share,
            "proved": self.proved,
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
