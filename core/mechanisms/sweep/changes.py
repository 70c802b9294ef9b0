"""Loads at which the recommendation changes, with confidence intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from adapt.core.mechanisms.scenarios import BASELINE
from adapt.core.mechanisms.sweep.finding import Finding
from adapt.core.phrases import counted, percent
from adapt.core.statistics.intervals import LEVEL, median_ranks
from adapt.core.table import Column, Kind, Table

UNCLEAR = "the answer changes with the seed"

CHANGE_COLUMNS = (
    Column("below", about="answer at lower loads"),
    Column("above", about="answer at higher loads"),
    Column("last_below", Kind.NUMBER, "", "highest load with the one answer"),
    Column("first_above", Kind.NUMBER, "", "lowest load with the other answer"),
    Column(
        "low", Kind.NUMBER, "", "lower end of the interval of the load where it changes; missing if below all loads"
    ),
    Column("high", Kind.NUMBER, "", "upper end of that; missing if above all loads"),
    Column("seeds", Kind.COUNT, "", "seeds that the interval is of"),
    Column("confidence", Kind.SHARE, "", "of the interval; 1 where no seed changes anything"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What to do at a load.

    Attributes:
        more: Workers to add.
        scenario: The scenario to use with them.
        keeps_up: Whether it keeps up.
    """

    more: int
    scenario: str
    keeps_up: bool

    @property
    def phrase(self) -> str:
        """The answer in a sentence."""
        if not self.keeps_up:
            return "nothing helps" if self.scenario == BASELINE else f"use {self.scenario}, though it falls behind"
        if self.more:
            rest = "" if self.scenario == BASELINE else f" and use {self.scenario}"
            return f"add {counted(self.more, 'worker')}{rest}"
        return f"{BASELINE} is enough" if self.scenario == BASELINE else f"use {self.scenario}"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the answer between two loads.

    Each seed has a load where its own answer changes. The interval is of the median of these loads over seeds, by order
    statistics, which assume nothing of their distribution; its ends are loads that were run.

    Attributes:
        below, above: The answers on its sides.
        last_below, first_above: Adjacent loads with these answers.
        low, high: Ends of the interval; None beyond all loads that were run.
        seeds: Number of seeds.
        confidence: That of the interval; 1 where no seed changes anything, 0 with one seed.

    Source: David and Nagaraja, "Order Statistics", 2003, section 7.1.
    """

    below: str
    above: str
    last_below: float
    first_above: float
    low: float | None
    high: float | None
    seeds: int
    confidence: float

    @property
    def place(self) -> str:
        """Where it is, in a sentence."""
        if self.low is not None and self.high is not None:
            return f"between {self.low:g} and {self.high:g}"
        if self.low is not None:
            return f"above {self.low:g}"
        return "at any load" if self.high is None else f"below {self.high:g}"


def answer_at(found: Finding, findings: Sequence[Finding], seed: int | None = None) -> Answer | None:
    """What to do at a point.

    More workers are the answer where nothing keeps up without them.

    Args:
        seed: Number of the seed that decides; None for the mean of all.

    Returns:
        None if the point has not had the seed.
    """
    picked = found.picked(seed)
    if picked is None or picked[1]:
        return None if picked is None else Answer(0, *picked)
    for wider in sorted((each for each in findings if is_wider(each, found)), key=lambda each: each.point.workers):
        helps = wider.picked(seed) or wider.picked(None)
        if helps and helps[1]:
            return Answer(wider.point.workers - found.point.workers, *helps)
    return Answer(0, *picked)


def phrase_of(found: Finding, findings: Sequence[Finding]) -> str:
    """What to do at a load.

    The answer is not clear where it is right with at most half of the seeds.
    """
    answer = None if 2 * (found.wins + found.level) <= found.seeds else answer_at(found, findings)
    return UNCLEAR if answer is None else answer.phrase


def by_load(findings: Sequence[Finding]) -> list[Finding]:
    """Findings with the given workers and hash, by load."""
    base = findings[0].point
    here = (each for each in findings if (each.point.workers, each.point.hash) == (base.workers, base.hash))
    return sorted(here, key=lambda each: each.point.offered)


def is_wider(one: Finding, other: Finding) -> bool:
    """Whether a point has more workers and is otherwise the same."""
    same = (one.point.offered, one.point.hash) == (other.point.offered, other.point.hash)
    return same and one.point.workers > other.point.workers


def changes(findings: Sequence[Finding]) -> list[Change]:
    """Where the answer changes with the load.

    Loads without a clear answer lie in between.
    """
    here = by_load(findings)
    clear = [(phrase, each) for each in here if (phrase := phrase_of(each, findings)) != UNCLEAR]
    groups = [[each for _, each in group] for _, group in groupby(clear, key=lambda pair: pair[0])]
    return [_change(here, groups[at], groups[at + 1], findings) for at in range(len(groups) - 1)]


def _change(here: list[Finding], below: list[Finding], above: list[Finding], findings: Sequence[Finding]) -> Change:
    """The change between two groups of loads, of all those in order."""
    first, last = here.index(below[0]), here.index(above[-1])
    span = here[first : last + 1]
    decide = [each for each in span if below[-1].point.offered <= each.point.offered <= above[0].point.offered]
    before, after = (None if not 0 <= at < len(here) else here[at].point.offered for at in (first - 1, last + 1))
    is_certain = all(each.race.is_certain for each in decide)
    seeds = min(each.seeds for each in decide if is_certain or not each.race.is_certain)
    lows: list[float | None] = []
    highs: list[float | None] = []
    for seed in range(seeds):
        sides = [_side(each, (below[-1], above[0]), findings, seed) for each in span]
        until = next((at for at, side in enumerate(sides) if side not in (0, None)), len(sides))
        since = next((at for at in reversed(range(len(sides))) if sides[at] not in (1, None)), -1)
        lows.append(span[until - 1].point.offered if until else before)
        highs.append(span[since + 1].point.offered if since + 1 < len(span) else after)
    rank, confidence = median_ranks(seeds, LEVEL)
    low = sorted(-math.inf if each is None else each for each in lows)[rank - 1]
    high = sorted(math.inf if each is None else each for each in highs)[-rank]
    return Change(
        phrase_of(below[-1], findings),
        phrase_of(above[0], findings),
        below[-1].point.offered,
        above[0].point.offered,
        low if math.isfinite(low) else None,
        high if math.isfinite(high) else None,
        seeds,
        1.0 if is_certain else confidence,
    )


def _side(found: Finding, ends: tuple[Finding, Finding], findings: Sequence[Finding], seed: int) -> int | float | None:
    """Which of two answers a seed gives at a load: 0, 1, one half if neither or both; None if it was not run."""
    answer = answer_at(found, findings, seed)
    if answer is None:
        return None
    wanted = [answer_at(end, findings) for end in ends]
    if answer in wanted:
        return wanted.index(answer)
    right = [
        each is not None
        and (each.more, each.keeps_up) == (answer.more, answer.keeps_up)
        and not answer.more
        and found.is_level_at(seed, each.scenario)
        for each in wanted
    ]
    return right.index(True) if sum(right) == 1 else 0.5


def changes_table(findings: Sequence[Finding]) -> Table:
    """Where the answer changes with the load, with intervals."""
    rows = [
        (each.below, each.above, each.last_below, each.first_above, each.low, each.high, each.seeds, each.confidence)
        for each in changes(findings)
    ]
    note = "Each seed's answer changes at a load of its own; the interval is of their median."
    return Table.from_rows("Where the answer changes with the load", CHANGE_COLUMNS, rows, note)


def how_sure(found: Sequence[Change]) -> str:
    """Confidence of the places of changes, as a sentence.

    Empty with one seed or without changes.
    """
    least = min((each.confidence for each in found), default=0.0)
    if least in (0.0, 1.0):
        return "No seed changes that." if least else ""
    seeds = min(each.seeds for each in found if each.confidence == least)
    return f"Starts are at {percent(least, 2)} confidence, from {counted(seeds, 'seed')}."
