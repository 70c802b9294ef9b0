"""Remedies, with what they give, cost and need."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from adapt.core.out_of_sample.outcome import Track
from adapt.core.phrases import counted
from adapt.core.table import Column, Kind, Table


class Way(StrEnum):
    """What can be done about skew."""

    NOTHING = "today"
    PIN = "pin"
    REBUILD = "pin and rebuild"
    SPLIT = "split"
    WORKERS = "another number of workers"
    PRODUCERS = "one partitioner for all producers"
    KEY = "another key"


NEEDS = {
    Way.NOTHING: "nothing",
    Way.PIN: "router or salts",
    Way.REBUILD: "live router",
    Way.SPLIT: "merging",
    Way.WORKERS: "rescale",
    Way.PRODUCERS: "all producers",
    Way.KEY: "adapt advise which-key",
}
"""What each needs of the job."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Something that can be done about skew."""

    way: Way
    pins: int = 0  # keys that it pins
    splits: int = 0  # keys that it splits
    workers: int = 0  # workers that it needs; 0 for another key
    imbalance: float | None = None  # of all counted rows; None where it is not known
    later: float | None = None  # median imbalance in later windows; None without any
    worst: float | None = None  # the highest of them
    helped: int | None = None  # number of later windows with a lower imbalance than today's
    state_moved: float | None = None  # share of all state that moves; in all later windows, if keys are chosen again
    certain: bool = False  # whether it lowers the imbalance of later windows for certain
    recommended: bool = False
    partitioner: str = ""  # of all producers, in words
    key: str = ""  # the best other key; empty where none is better, or none was judged
    candidates: int = 0  # number of columns judged as other keys
    command: str = ""  # that judges other keys

    @property
    def words(self) -> str:
        """What to do, in a few words."""
        pins, splits = counted(self.pins, "key"), counted(self.splits, "key")
        match self.way:
            case Way.PIN:
                return f"pin {pins}"
            case Way.REBUILD:
                return f"pin {pins}, rebuilt"
            case Way.SPLIT:
                return f"split {splits}" + (f", pin {self.pins:,}" if self.pins else "")
            case Way.WORKERS:
                return f"rescale to {counted(self.workers, 'worker')}"
            case Way.PRODUCERS:
                return f"only {self.partitioner}"
            case Way.KEY if self.key:
                return f"{self.way}: {self.key}"
            case _:
                return self.way.value

    @property
    def cost(self) -> tuple[float, int]:
        """State moved, then keys; the least wins."""
        return self.state_moved or 0.0, self.pins + self.splits

    @property
    def judged(self) -> float | None:
        """Imbalance in later windows, else of all counted rows."""
        return self.imbalance if self.later is None else self.later

    def over(self, track: Track, today: Track, windows: int) -> "Remedy":
        """It with what later windows showed."""
        helped = round(track.helps(today) * windows)
        return replace(self, later=track.median, worst=track.worst, helped=helped)

    def as_data(self) -> dict[str, Any]:
        """JSON data."""
        return asdict(self) | {"way": self.way.value, "needs": NEEDS[self.way], "remedy": self.words}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Remedy":
        """Read the data of `as_data`."""
        own = {name: value for name, value in data.items() if name not in ("way", "needs", "remedy")}
        return cls(Way(data["way"]), **own)


def remedies_table(remedies: Sequence[Remedy], windows: int, best: tuple[float, float | None], note: str = "") -> Table:
    """One row per remedy, and one for the best possible.

    Args:
        windows: Number of later windows.
        best: Best possible imbalance of whole keys: of all counted rows, and the median of later windows.
    """
    tested = bool(windows)
    columns = [
        Column("remedy"),
        *([Column("later", Kind.RATIO, about="median imbalance of later windows")] if tested else []),
        *([Column("helped", about="later windows with a lower imbalance than today's")] if tested else []),
        Column("all_rows", Kind.RATIO, about="imbalance of all rows, in-sample"),
        Column("state_moved", Kind.SHARE, about="of all state; in all later windows, if keys are chosen again"),
        Column("needs", about="what it needs of the job"),
    ]
    rows = [
        [
            f"{each.words}{' *' if each.recommended else ''}",
            *([each.later, _helped(each, windows)] if tested else []),
            each.imbalance,
            each.state_moved,
            NEEDS[each.way],
        ]
        for each in remedies
    ]
    rows.append(["best possible", *([best[1], None] if tested else []), best[0], None, "whole keys"])
    luck = ", in brackets: perhaps luck" if any((_helped(each, windows) or "")[:1] == "(" for each in remedies) else ""
    return Table.from_rows(f"Remedies (* recommended{luck})", columns, rows, note)


def _helped(remedy: Remedy, windows: int) -> str | None:
    """Windows in which it helped, in brackets where that is not certain."""
    if remedy.helped is None or remedy.way is Way.NOTHING:
        return None
    told = f"{remedy.helped} of {windows}"
    return told if remedy.certain or remedy.way in (Way.WORKERS, Way.PRODUCERS) else f"({told})"


def unified_sentence(remedies: Sequence[Remedy]) -> str:
    """What one partitioner for all producers would give; empty where they agree."""
    nothing, found = remedies[0] if remedies else None, [each for each in remedies if each.way is Way.PRODUCERS]
    if nothing is None or not found:
        return ""
    rows = ", ".join(f"{each.judged or 1.0:.3f} with {each.partitioner}" for each in found)
    higher = all((each.judged or 0.0) > (nothing.judged or 0.0) for each in found)
    then = " Each raises it: set one for the order by key, then judge its placement by --engine." if higher else ""
    return (
        f"With one partitioner in all producers, the imbalance is {rows}, and {nothing.judged or 1.0:.3f} today.{then}"
    )
