"""What a paper claims, and the one rule by which each claim is judged."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from paper.estimates import Estimate

PAPER_RUNS = 5
"""The runs that the partitioning paper averages over (section 5.1)."""

ONE_RUN = 1
"""What the numbers of a paper are taken to come from that says nothing of repeated runs."""


def rule(runs: int) -> str:
    """The rule in words.

    Args:
        runs: What a number of the paper is the mean of.
    """
    compared = (
        f"the mean of {runs} of our runs lies with 95 % probability, since the paper's numbers are means of {runs} runs"
        if runs > 1
        else "one more of our runs lies with 95 % probability, since the paper does not say that it repeated any"
    )
    return (
        "The rule. A claimed number holds if the range that its digits stand for (1.32 is 1.315 to 1.325; of sizes,"
        " times and shares called about or around, a fifth more or less) meets the interval in which "
        + compared
        + "; where the claim departs from a point, as from equality of two things compared, our mean must be on the"
        " claimed side of it too. A claimed order (more than 8; one above the other) holds if the whole 95 % interval"
        " of our mean is on the claimed side. Otherwise, if our mean is on that side, the claim has the direction only;"
        " and else it does not hold. Things compared are compared seed by seed."
    )


class Verdict(StrEnum):
    """What is left of a claim."""

    HOLDS = "holds"
    DIRECTION = "direction only"
    FAILS = "does not hold"


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers that make a claim true; one of both ends may be infinite, and the claim is then one of order.

    Attributes:
        low: The least.
        high: The most.
        departs: The point from which the claim departs: on the claimed side of it, our mean has the direction. None if
            there is no such point. An order departs from its own end, if nothing else is said.
    """

    low: float = -math.inf
    high: float = math.inf
    departs: float | None = None

    @property
    def is_order(self) -> bool:
        """Whether the claim only sets a bound."""
        return math.isinf(self.low) or math.isinf(self.high)

    def meets(self, low: float, high: float) -> bool:
        """Whether an interval has a number in common with the range."""
        return low <= self.high and high >= self.low

    def holds(self, low: float, high: float) -> bool:
        """Whether an interval lies within the range, its ends not counting."""
        return low > self.low and high < self.high

    def has_direction(self, mean: float) -> bool:
        """Whether a mean is on the same side of the departing point as the range."""
        departs = self.departs
        if departs is None and self.is_order:
            departs = self.low if math.isinf(self.high) else self.high
        if departs is None:
            return False
        return mean > departs if self.low >= departs else mean < departs


def printed(number: str, departs: float | None = None) -> Range:
    """The range that a printed number stands for: half of its last digit more or less."""
    _, _, decimals = number.partition(".")
    half = 0.5 * 10.0 ** -len(decimals)
    return Range(float(number) - half, float(number) + half, departs)


def about(number: float, departs: float | None = None) -> Range:
    """The range of a size or a time called about or around: a fifth more or less."""
    return Range(0.8 * number, 1.2 * number, departs)


def between(low: float, high: float, departs: float | None = None) -> Range:
    """The range that two printed numbers enclose."""
    return Range(low, high, departs)


def never() -> Range:
    """The range of what is counted and never happens: an order, so that the whole interval of our mean is below 1/2."""
    return Range(high=0.5)


def above(bound: float, departs: float | None = None) -> Range:
    """All that is more."""
    return Range(low=bound, departs=departs)


def below(bound: float, departs: float | None = None) -> Range:
    """All that is less."""
    return Range(high=bound, departs=departs)


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a paper that a number can prove or refute.

    Attributes:
        source: Figure or section.
        text: What is claimed, in a sentence.
        reported: The paper's number, in its words.
        range: The numbers that make the claim true.
        measure: What our number is.
        why: Why the claim does not hold, or only in its direction; shown where that is so.
        certainty: How sure it is that the paper says so, as a mark that the page explains; empty where it is plain.
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
    """A claim with our number and what follows from it."""

    claim: Claim
    ours: Estimate
    verdict: Verdict

    @property
    def why(self) -> str:
        """Why the claim is not simply confirmed; empty where it is."""
        return "" if self.verdict is Verdict.HOLDS else self.claim.why


def judged(claim: Claim, values: Iterable[float], runs: int = PAPER_RUNS) -> Judged:
    """Judge a claim by one number a seed; the paper's is the mean of `runs`."""
    ours = Estimate.of(values)
    return Judged(claim, ours, verdict(claim.range, ours, runs))


def verdict(claimed: Range, ours: Estimate, runs: int = PAPER_RUNS) -> Verdict:
    """What `rule` says."""
    leans = claimed.has_direction(ours.mean)
    if claimed.is_order:
        holds = claimed.holds(ours.low, ours.high)
    else:
        holds = claimed.meets(*ours.of_others(runs)) and (leans or claimed.departs is None)
    if holds:
        return Verdict.HOLDS
    return Verdict.DIRECTION if leans else Verdict.FAILS
