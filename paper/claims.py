"""Claims of a paper, and the rule by which they are judged."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from paper.estimates import Estimate

PAPER_RUNS = 5
"""Number of runs that the partitioning paper averages over (section 5.1)."""

ONE_RUN = 1
"""Number of runs assumed for a paper that does not mention repeated runs."""

MARGIN, MARGIN_AT_0 = 0.05, 0.01
"""By how much a direction exceeds its point of comparison, beyond the spread: as a share, and where it is 0."""

EQUAL, SIMILAR = 0.05, 0.2
"""How far a ratio may be from 1 for "equal", "remains" and "hardly differs", and for "close", "similar" and "alike"."""


def rule(runs: int) -> str:
    """The judging rule as text.

    Args:
        runs: Number of runs that the paper averages over.
    """
    compared = (
        f"the mean of {runs} of our runs lies with 95 % probability, since the paper's numbers are means of {runs} runs"
        if runs > 1
        else "one more of our runs lies with 95 % probability, since the paper does not mention repeated runs"
    )
    return (
        "The rule. A claimed number holds if the range of its printed digits (1.32 is 1.315 to 1.325; for sizes, "
        "times and shares given as about or around, plus or minus a fifth) overlaps the interval in which "
        + compared
        + "; if the claim compares with a point, our mean must also be on the claimed side of it."
        " A claimed bound (more than 8) holds if the whole 95 % interval of our mean is on the claimed side. A"
        f" direction (one above the other) holds if that interval is on the claimed side by a margin: {MARGIN:.0%} of"
        f" the point of comparison, {MARGIN_AT_0:g} where that is 0. A number that differs from the paper's on the"
        " claimed side of such a point, by that margin, holds only in its direction. Results are equal, remain or"
        f" hardly differ if the whole interval is within {EQUAL:.0%}, and are close, similar or do not differ much"
        f" within {SIMILAR:.0%}, on all pages. If our mean is on the claimed side but not its interval, or lacks the"
        " margin, the claim is not clear; else it does not hold. Results are compared seed by seed."
    )


class Verdict(StrEnum):
    """Verdict on a claim."""

    HOLDS = "holds"
    DIRECTION = "direction only"
    UNCLEAR = "not clear"
    FAILS = "does not hold"


@dataclass(frozen=True, slots=True)
class Range:
    """Range of numbers that make a claim true.

    One end may be infinite, for a claim of order.

    Attributes:
        low: Lower end.
        high: Upper end.
        departs: Point of comparison, on one side of which the range is; None for no such point. An order without one,
            of 0 or 1, compares with its own end.
        is_whole: Whether the whole interval of our mean must be within.
    """

    low: float = -math.inf
    high: float = math.inf
    departs: float | None = None
    is_whole: bool = False

    def __post_init__(self) -> None:
        if self.is_order and self.departs is None and self._end in (0, 1):
            object.__setattr__(self, "departs", self._end)

    @property
    def is_order(self) -> bool:
        """Whether the claim only sets a bound."""
        return math.isinf(self.low) or math.isinf(self.high)

    @property
    def _end(self) -> float:
        return self.low if math.isinf(self.high) else self.high

    def meets(self, low: float, high: float) -> bool:
        """Whether an interval overlaps the range."""
        return low <= self.high and high >= self.low

    def holds(self, low: float, high: float) -> bool:
        """Whether an interval lies strictly within the range."""
        return low > self.low and high < self.high

    def departs_by(self, low: float, high: float) -> float:
        """How far an interval is beyond the point of comparison, on the claimed side; negative on the other."""
        assert self.departs is not None
        return low - self.departs if self.low >= self.departs else self.departs - high

    @property
    def margin(self) -> float:
        """How far that must be for a direction."""
        return MARGIN * abs(self.departs) if self.departs else MARGIN_AT_0


def printed(number: str, departs: float | None = None) -> Range:
    """Range of a printed number: half of its last digit."""
    _, _, decimals = number.partition(".")
    half = 0.5 * 10.0 ** -len(decimals)
    return Range(float(number) - half, float(number) + half, departs)


def about(number: float, departs: float | None = None) -> Range:
    """Range of a size or time given as "about": a fifth."""
    return Range(0.8 * number, 1.2 * number, departs)


def between(low: float, high: float, departs: float | None = None) -> Range:
    """Range between two printed numbers."""
    return Range(low, high, departs)


def equal() -> Range:
    """Range of a ratio of results that are equal, remain or hardly differ."""
    return Range(1 - EQUAL, 1 + EQUAL, is_whole=True)


def similar() -> Range:
    """Range of a ratio of results that are close or similar."""
    return Range(1 - SIMILAR, 1 + SIMILAR, is_whole=True)


def never() -> Range:
    """Range of a count that is always 0.

    The whole interval of our mean must be below 1/2.
    """
    return Range(high=0.5)


def above(bound: float, departs: float | None = None) -> Range:
    """Range above a number."""
    return Range(low=bound, departs=departs)


def below(bound: float, departs: float | None = None) -> Range:
    """Range below a number."""
    return Range(high=bound, departs=departs)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a paper that a number can confirm or refute.

    Attributes:
        source: Figure or section.
        text: The claim in a sentence.
        reported: The paper's number, in its words.
        range: Numbers that make the claim true.
        measure: Description of our number.
        why: Reason why the claim does not hold; shown where it does not.
        certainty: Mark, explained on the page, for how clearly the paper says so; empty if clearly.
    """

    source: str
    text: str
    reported: str
    range: Range
    measure: str
    why: str = ""
    certainty: str = ""

    @property
    def told(self) -> str:
        """The paper's number with its mark."""
        return f"{self.reported} [{self.certainty}]" if self.certainty else self.reported


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with our number and the verdict."""

    claim: Claim
    ours: Estimate
    verdict: Verdict

    @property
    def why(self) -> str:
        """Reason why the claim is not confirmed; empty if it is."""
        return "" if self.verdict is Verdict.HOLDS else self.claim.why


def judged(claim: Claim, values: Iterable[float], runs: int = PAPER_RUNS) -> Judged:
    """Judge a claim by one number per seed.

    The paper's number is the mean of `runs`.
    """
    ours = Estimate.of(values)
    return Judged(claim, ours, verdict(claim.range, ours, runs))


def verdict(claimed: Range, ours: Estimate, runs: int = PAPER_RUNS) -> Verdict:
    """Verdict by the rule in `rule`."""
    interval, mean = (ours.low, ours.high), (ours.mean, ours.mean)
    beyond = claimed.departs is None or claimed.departs_by(*mean) > 0
    clear = claimed.departs is not None and claimed.departs_by(*interval) >= claimed.margin
    if claimed.is_order or claimed.is_whole:
        holds = claimed.holds(*interval) and (clear or claimed.departs is None)
        leans = claimed.holds(*mean)
    else:
        holds = claimed.meets(*ours.of_others(runs)) and beyond
        leans = False
    if holds:
        return Verdict.HOLDS
    if clear:
        return Verdict.DIRECTION
    return Verdict.UNCLEAR if leans or (claimed.departs is not None and beyond) else Verdict.FAILS
