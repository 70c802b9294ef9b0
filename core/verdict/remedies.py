"""Remedies, with what they give, cost and need."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.counting.sketches import Hashes, HeavySums, hashes_of
from adapt.core.counting.tables import key_shown
from adapt.core.keys.partitioner import Channels
from adapt.core.out_of_sample.outcome import OutOfSample, Track
from adapt.core.phrases import counted, percent
from adapt.core.table import Column, Kind, Table


class Way(StrEnum):
    """What can be done about skew."""

    NOTHING = "today"
    PIN = "pin"
    REBUILD = "pin and rebuild"
    SPLIT = "split"
    COMBINE = "pre-aggregate"
    WORKERS = "another number of workers"
    PRODUCERS = "one partitioner for all producers"
    KEY = "another key"


NEEDS = {
    Way.NOTHING: "nothing",
    Way.PIN: "router or salts",
    Way.REBUILD: "live router",
    Way.SPLIT: "merging",
    Way.COMBINE: "merging",
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
    rows_sent: float | None = None  # share of rows that pre-aggregation sends to the workers

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
            case Way.COMBINE:
                return f"pre-aggregate to {percent(self.rows_sent or 0.0)} of rows"
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


BUNDLE = 5_000
"""Rows that an upstream task aggregates before it sends them: the size in Flink's documentation of MiniBatch."""


MOST_COMBINED = 10
"""Hottest keys whose rows are shown."""


@dataclass(slots=True)
class TwoPhase:
    """Rows that arrive at workers, before and after pre-aggregation.

    The rows of a window go to upstream tasks in turn. A task sends one row per key of each `bundle` rows, and of the
    rest at the end of the window.
    """

    tasks: int  # upstream tasks; 1 where each task has consecutive rows
    bundle: int  # rows
    pane: int  # rows of each window
    before: Floats  # shape (windows, workers)
    after: Floats  # likewise
    _round: int = -1  # the bundles that the last batch left open
    _sent: Hashes = field(default_factory=lambda: np.zeros(0, np.uint64))  # keys in them, by task
    _keys: HeavySums = field(default_factory=lambda: HeavySums(("before", "after")))

    def add(
        self, keys: pa.Array, codes: NDArray[np.int64], channels: Channels, at_random: NDArray[np.bool_], first: int
    ) -> None:
        """Count a batch.

        Args:
            keys: Its distinct keys.
            codes: The key of each row; shape (rows,).
            channels: The worker of each distinct key; shape (keys,).
            at_random: Distinct keys whose rows go to any worker; shape (keys,).
            first: Rank of its first row.
        """
        window, place = np.divmod(np.arange(first, first + len(codes)), self.pane)
        rounds = window * -(-self.pane // (self.tasks * self.bundle)) + place // self.tasks // self.bundle
        bundles = (rounds - rounds[0]) * self.tasks + place % self.tasks
        pairs, rows = np.unique(bundles * len(keys) + codes, return_index=True)
        own, code = np.divmod(pairs, len(keys))
        with np.errstate(over="ignore"):
            hashes = hashes_of(keys)[code] * np.uint64(0x9E3779B97F4A7C15) + (own % self.tasks).astype(np.uint64)
        held, is_continued, is_open = self._sent, rounds[0] == self._round, rounds[rows] == rounds[-1]
        new = ~((own < self.tasks) & is_continued & np.isin(hashes, held))
        self._sent = np.union1d(held if rounds[-1] == self._round else held[:0], hashes[is_open])
        self._round = int(rounds[-1])
        for loads, at, keyed in ((self.before, window, codes), (self.after, window[rows][new], code[new])):
            fixed, width = ~at_random[keyed], loads.shape[1]
            loads += np.bincount(at[fixed] * width + channels[keyed[fixed]], minlength=loads.size).reshape(loads.shape)
            loads += np.bincount(at[~fixed], minlength=len(loads))[:, None] / width
        sums = {"before": codes, "after": code[new]}
        self._keys.add(keys, {name: np.bincount(each, minlength=len(keys)) for name, each in sums.items()}, 0)

    @property
    def sentence(self) -> str:
        """What it saves, and what is taken as given."""
        before, after = (f"{of.sum():,.0f}" for of in (self.before, self.after))
        most_before, most_after = (f"{of.max():,.0f}" for of in (self.before, self.after))
        whose = "consecutive rows" if self.tasks == 1 else f"rows in each of {self.tasks:,} upstream tasks"
        return (
            f"Pre-aggregated before the shuffle, {after} of {before} rows arrive, at most {most_after} instead of"
            f" {most_before} at a worker in a window: one row per key of {self.bundle:,} {whose}, and of the rest at"
            " the end of a window."
        )

    def remedy(self, tested: OutOfSample | None) -> Remedy:
        """Pre-aggregation as a remedy; its load is the rows that arrive."""
        width, total = self.after.shape[1], self.after.sum(axis=0)
        share = float(total.sum() / self.before.sum())
        one = Remedy(Way.COMBINE, workers=width, imbalance=float(total.max() * width / total.sum()), rows_sent=share)
        one = replace(one, state_moved=0.0)
        if tested is None or tested.past + len(tested.rows) != len(self.after):
            return one
        later = self.after[tested.past :]
        track = Track(tuple((later.max(axis=1) * width / later.sum(axis=1)).tolist()), 0.0)
        return one.over(track, tested.today, len(later))

    def tables(self) -> list[Table]:
        """Rows before and after, by window and for the hottest keys."""
        names, about = ("before", "after"), "rows of the busiest worker"
        columns = [Column(name, Kind.COUNT) for name in ("window", *names)]
        columns += [Column(f"busiest_{name}", Kind.COUNT, about=about) for name in names]
        of = (self.before, self.after)
        sums = np.array([*(each.sum(axis=1) for each in of), *(each.max(axis=1) for each in of)]).round()
        rows = [[at, *each] for at, each in enumerate(sums.T.astype(np.int64).tolist())]
        keys, amounts, _ = self._keys.top(MOST_COMBINED)
        counts = np.array([amounts[name] for name in names]).T.tolist()
        hot = [[key_shown(key), *each] for key, each in zip(keys.to_pylist(), counts, strict=True)]
        return [
            Table.from_rows("Rows before and after pre-aggregation", columns, rows, self.sentence),
            Table.from_rows("The same of the hottest keys", [Column("key"), *columns[1:3]], hot),
        ]

    def as_data(self) -> dict[str, Any]:
        """JSON data."""
        windows, keys = (table.records() for table in self.tables())
        return {"tasks": self.tasks, "bundle": self.bundle, "windows": windows, "keys": keys}


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
    return told if remedy.certain or remedy.way in (Way.COMBINE, Way.WORKERS, Way.PRODUCERS) else f"({told})"


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
