"""Out-of-sample imbalance of placements, window by window."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from adapt.core.out_of_sample.windows import is_numbered, start_column
from adapt.core.table import Column, Kind, Table

LEVEL = 0.9
"""Confidence level of the interval for the next window."""

TODAY = "today"
"""Name of today's placement."""

BEST = "best possible"
"""Name of the floor."""


@dataclass(frozen=True, slots=True)
class Track:
    """Imbalance of a placement in the tested windows."""

    imbalances: tuple[float, ...]  # by tested window
    state_to_move: float  # share of all state that it moves once; for a plan that is rebuilt, per window
    pins: int = 0  # number of pinned keys; of the last plan, if it is rebuilt
    splits: int = 0  # number of split keys

    @property
    def median(self) -> float:
        """Median imbalance."""
        return float(np.median(self.imbalances))

    @property
    def p90(self) -> float:
        """90th percentile of the imbalance."""
        return float(np.quantile(self.imbalances, 0.9))

    @property
    def worst(self) -> float:
        """Highest imbalance."""
        return max(self.imbalances)

    def helps(self, today: "Track") -> float:
        """Share of the windows with a lower imbalance than today's."""
        below = [own < other for own, other in zip(self.imbalances, today.imbalances, strict=True)]
        return sum(below) / len(below)


@dataclass(frozen=True, slots=True)
class OutOfSample:
    """Placements measured on windows after those they were built from."""

    past: int  # number of windows before the first tested one
    starts_us: tuple[int, ...]  # start of each tested window, in microseconds since 1970
    rows: tuple[int, ...]  # rows of each tested window
    floors: tuple[float, ...]  # best possible imbalance of each tested window with whole keys
    # placements by name: today's, others without pins, and plans: one built before the first tested window and kept,
    # one that splits keys too, and one rebuilt before each tested window
    tracks: Mapping[str, Track]
    # interval of the recommended plan's imbalance in the window that follows, at confidence `LEVEL`
    next_window: tuple[float, float]
    recommended: str = TODAY  # name of the recommended placement

    @property
    def today(self) -> Track:
        """Today's placement."""
        return self.tracks[TODAY]

    @property
    def plan(self) -> Track:
        """The recommended placement."""
        return self.tracks[self.recommended]

    @property
    def helped(self) -> int:
        """Number of tested windows in which the recommended placement lowers the imbalance."""
        return round(self.plan.helps(self.today) * len(self.rows))

    @property
    def window_us(self) -> int:
        """Median length of a window, in microseconds.

        0 for one window, and for numbered windows.
        """
        is_one = len(self.starts_us) < 2
        return 0 if is_one or is_numbered(self.starts_us) else int(np.median(np.diff(self.starts_us)))

    def table(self) -> Table:
        """One row per placement, and one for the best possible."""
        columns = (
            Column("placement"),
            Column("median_imbalance", Kind.RATIO, about="median over the tested windows", bar=True),
            Column("p90_imbalance", Kind.RATIO, about="90th percentile over the tested windows"),
            Column("worst_imbalance", Kind.RATIO, about="worst tested window"),
            Column("helps", Kind.SHARE, about="share of the tested windows with a lower imbalance than today's"),
            Column("pins", Kind.COUNT, about="pinned keys"),
            Column("splits", Kind.COUNT, about="split keys"),
            Column("state_to_move", Kind.SHARE, about="of all state: once, or in each window if rebuilt"),
        )
        rows: list[tuple[Any, ...]] = [
            (
                name,
                track.median,
                track.p90,
                track.worst,
                track.helps(self.today),
                track.pins,
                track.splits,
                track.state_to_move,
            )
            for name, track in self.tracks.items()
        ]
        best = Track(self.floors, 0.0)
        rows.append((BEST, best.median, best.p90, best.worst, None, None, None, None))
        note = (
            f"Imbalance in {len(self.rows)} windows of about {self.rows[0]:,} rows, each measured on rows that the plan"
            " was not built from."
        )
        return Table.from_rows("Out-of-sample imbalance", columns, rows, note)

    def windows_table(self) -> Table:
        """One row per tested window, for charts."""
        names = list(self.tracks)
        columns = (
            start_column(self.starts_us),
            Column("rows", Kind.COUNT),
            *(Column(name, Kind.RATIO, about="imbalance") for name in names),
            Column(BEST, Kind.RATIO, about="imbalance"),
        )
        tracks = [self.tracks[name].imbalances for name in names]
        rows = zip(self.starts_us, self.rows, *tracks, self.floors, strict=True)
        return Table.from_rows("Out-of-sample imbalance by window", columns, rows)

    def as_data(self) -> dict[str, Any]:
        """JSON data."""
        return asdict(self) | {"placements": self.table().records()}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "OutOfSample":
        """Read the data of `as_data`."""
        tracks = {
            name: Track(
                tuple(track["imbalances"]), float(track["state_to_move"]), track["pins"], track.get("splits", 0)
            )
            for name, track in data["tracks"].items()
        }
        low, high = data["next_window"]
        starts, rows, floors = (tuple(data[name]) for name in ("starts_us", "rows", "floors"))
        recommended = data.get("recommended", "plan kept")  # of older artefacts
        return cls(int(data["past"]), starts, rows, floors, tracks, (float(low), float(high)), recommended)
