"""Judge candidate keys and recommend one."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from adapt.core.advice.candidates import SAMPLE, Measured
from adapt.core.errors import BadInput
from adapt.core.partitioning.measures.floors import best_possible
from adapt.core.partitioning.measures.plan_settings import PlanSettings
from adapt.core.phrases import counted, listed, percent
from adapt.core.table import Column, Displayed, Kind, Table

SCHEMA = "adapt.which-key/1"

UNIQUE = 0.9
"""A candidate with this many keys a row is unique by row."""

RISING = 0.95
"""A candidate with a higher correlation with time rises or falls with it."""

PASSING = 0.95
"""If this share of rows is on keys of one window only, keys come and go."""

MOSTLY = 0.5
"""A candidate that is null in more rows is mostly null."""

AS_GOOD = 1.05
"""An imbalance up to this times the least one is as good."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate key and its measures."""

    key: str
    columns: int  # columns of the key
    later: float  # median imbalance of later windows
    worst: float  # highest imbalance of later windows
    best: float  # lower bound of the imbalance of all later rows with whole keys
    top_share: float  # of the hottest key in later rows
    top_error: float  # how much higher the share of the hottest key may be
    nulls: float  # share of rows without a key
    keys: int  # distinct keys
    new_keys: float | None  # share of the keys of later windows that are new there
    drift: float | None  # share of the load on other workers in later windows than before
    time_correlation: float | None  # rank correlation with time
    salts: int = 1
    meets_needs: bool = True  # whether rows with equal values of the needed columns stay together
    against: str = ""  # why it is not recommended; empty if it may be
    as_key: str = ""  # what to give as --key; empty for salts

    def preferred(self) -> tuple[int, float, int]:
        """Among equally good keys the least wins: columns, nulls, keys."""
        return self.columns + (self.salts > 1), self.nulls, self.keys


def judged(
    name: str,
    columns: Sequence[str],
    measured: Measured,
    rises: Sequence[float | None],
    kept: bool,
    needs: str,
    as_key: str,
) -> Judged:
    """A candidate by what one pass measured.

    Args:
        rises: Correlation of each column with time.
        kept: Whether rows with equal values of the needed columns stay together.
        needs: The needed columns, in words; empty without any.
        as_key: What to give as `--key`.
    """
    rows, total = measured.loads.sum(), float(measured.loads[measured.later :].sum())
    heavy, missed = measured.hottest()
    new, passing = measured.followed()
    correlation = rises[0] if len(rises) == 1 else None
    keys, nulls = measured.keys // measured.salts, measured.nulls / rows
    against = [
        ("constant", keys < 2),
        ("mostly null", nulls > MOSTLY),
        ("unique by row", keys >= UNIQUE * (rows - measured.nulls)),
        ("rises with time", correlation is not None and correlation > RISING),
        ("falls with time", correlation is not None and correlation < -RISING),
        ("keys come and go", passing >= PASSING),
        (f"splits equal {needs or columns[0]}: merge results", measured.salts > 1 and bool(needs)),
        (f"parts equal {needs}", not kept),
    ]
    floor = best_possible(heavy, total, measured.loads.shape[1]) or 1.0
    imbalances = measured.imbalances
    return Judged(
        name,
        len(columns),
        float(np.median(imbalances)),
        float(imbalances.max()),
        floor,
        float(heavy.max(initial=0)) / total,
        missed / total,
        nulls,
        measured.keys,
        new,
        measured.drift,
        correlation,
        measured.salts,
        kept and not (needs and measured.salts > 1),
        next((reason for reason, holds in against if holds), ""),
        as_key,
    )


@dataclass(frozen=True, slots=True, repr=False)
class WhichKey(Displayed):
    """Candidate keys, the recommended one, and what it breaks."""

    candidates: tuple[Judged, ...]  # by rising imbalance, those that may be recommended first
    needs: str  # the needed columns; empty without any
    engine: str
    channels: int  # workers
    later_windows: int  # windows that are judged on; 0: all rows, in-sample
    is_exact: bool  # whether all values of the needed columns were followed, not a sample
    skipped: tuple[str, ...] = ()  # columns that cannot be keys, with their types
    guesses: tuple[str, ...] = ()  # guessed settings of the source, in words

    @property
    def recommended(self) -> Judged | None:
        """Least imbalance; within 5 %, fewest columns, nulls and keys."""
        fit = [each for each in self.candidates if not each.against]
        if not fit:
            return None
        least = min(each.later for each in fit)
        return min((each for each in fit if each.later <= AS_GOOD * least), key=Judged.preferred)

    @property
    def said(self) -> Sequence[str]:
        """The recommendation, and what it breaks."""
        found = self.recommended
        later = f"in the median of {counted(self.later_windows, 'later window')}" if self.later_windows else "in-sample"
        if found is None:
            lead = ["No candidate is a good key; see why under `against`, and add candidates."]
        else:
            lead = [
                f"Partition by {found.key} ({self.asked}): imbalance {found.later:.3f} {later}.",
                self.breaks,
            ]
            if found.later > PlanSettings().max_imbalance:
                lead.append("Its imbalance is high: `adapt verdict` says which of its keys to pin or split.")
        if not self.later_windows:
            lead.append("In-sample only: rows are too few for six windows, or have no times. Change is not tested.")
        if len(self.candidates) == 1:
            lead.append("There is one candidate only: give the source, or a trace that keeps more columns (--keep).")
        if self.skipped:
            lead.append(f"Not judged, because of their type: {', '.join(self.skipped)}.")
        return lead

    @property
    def breaks(self) -> str:
        """What the recommended key breaks; empty without one."""
        found = self.recommended
        if found is None:
            return ""
        lost = "It breaks order, joins and state by other columns, and changing the key moves all state."
        if found.salts > 1:
            return f"Equal keys are on up to {counted(found.salts, 'worker')}: merge their results. {lost}"
        if not self.needs:
            return f"{lost} State what must stay together by --needs."
        basis = "" if self.is_exact else " (on a sample of the values)"
        return f"Rows with equal {self.needs} share a worker{basis}. {lost}"

    def table(self) -> Table:
        """One row per candidate."""
        found = self.recommended
        columns = [
            Column("key"),
            Column("later", Kind.RATIO, about="median imbalance of later windows"),
            Column("best", Kind.RATIO, about="best possible with whole keys, of later rows"),
            Column("against", about="why it is not recommended"),
            Column("top_share", Kind.SHARE, about="hottest key in later rows"),
            Column("nulls", Kind.SHARE, about="rows without the key"),
            Column("keys", Kind.COUNT, about=f"exact below {SAMPLE:,}, else a standard error of 2.2 %"),
            Column("new_keys", Kind.SHARE, about="keys of later windows that are new there"),
            Column("drift", Kind.SHARE, about="load on other workers in later windows than before"),
            Column("with_time", Kind.NUMBER, about="rank correlation with time"),
        ]
        rows = [
            [
                f"{each.key} *" if each is found else each.key,
                *(
                    each.later,
                    each.best,
                    each.against,
                    each.top_share,
                    each.nulls,
                    each.keys,
                    each.new_keys,
                    each.drift,
                ),
                None if each.time_correlation is None else round(each.time_correlation, 3),
            ]
            for each in self.candidates
        ]
        pairs = [each for each in self.candidates if each.columns > 1]
        note = "; ".join(f'{each.key}: --key "{each.as_key}"' for each in pairs)
        is_text = any("concat(" in each.as_key for each in pairs)
        note += ". Such a pair is judged as this text, and is null where a column is." if is_text else ""
        return Table.from_rows(f"Candidate keys ({self.asked}; * recommended)", columns, rows, note)

    @property
    def asked(self) -> str:
        """The workers, and the engine that places the keys."""
        return f"{counted(self.channels, 'worker')}, {self.engine}"

    def displayed(self) -> list[Table]:
        """The table of candidates."""
        return [self.table()]

    def as_data(self) -> dict[str, Any]:
        """One JSON document."""
        found = self.recommended
        return {
            "schema": SCHEMA,
            "recommended": None if found is None else found.key,
            "breaks": self.breaks,
            "engine": self.engine,
            "channels": self.channels,
            "needs": self.needs,
            "later_windows": self.later_windows,
            "needs_exact": self.is_exact,
            "skipped": list(self.skipped),
            "candidates": [asdict(each) for each in self.candidates],
        }


def ranked(candidates: Sequence[Judged], needs: str) -> tuple[Judged, ...]:
    """Candidates by rising imbalance, those that may be recommended first.

    Raises:
        BadInput: no candidate meets the needs, or all are unique by row.
    """
    names = listed([each.key for each in candidates[:12]])
    if not any(each.meets_needs for each in candidates):
        raise BadInput(
            f"no candidate keeps rows with equal {needs} on one worker ({names}); add {needs} to --candidates"
        )
    if all(each.against == "unique by row" for each in candidates):
        least = percent(UNIQUE)
        raise BadInput(
            f"all candidates have a new value in at least {least} of rows ({names}); name columns whose values recur"
        )
    return tuple(sorted(candidates, key=lambda each: (bool(each.against), each.later)))
