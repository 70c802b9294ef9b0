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
        + "; if the claim compares with a point, such as equality of two results, our mean must also be on the claimed"
        " side of that point. A claimed order (more than 8; one above the other) holds if the whole 95 % interval of "
        "our mean"
        " is on the claimed side. Otherwise, if our mean is on that side, only the direction holds; else the claim "
        "does not"
        " hold. Results are compared seed by seed."
    )


class Verdict(StrEnum):
    """Verdict on a claim."""

    HOLDS = "holds"
    DIRECTION = "direction only"
    FAILS = "does not hold"


@dataclass(frozen=True, slots=True)
class Range:
    """Range of numbers that make a claim true.

    One end may be infinite, for a claim of order.

    Attributes:
        low: Lower end.
        high: Upper end.
        departs: Point of comparison: if our mean is on the claimed side of it, the direction holds. None for no such
            point; by default, a claim of order compares with its own end.
    """

    low: float = -math.inf
    high: float = math.inf
    departs: float | None = None

    @property
    def is_order(self) -> bool:
        """Whether the claim only sets a bound."""
        return math.isinf(self.low) or math.isinf(self.high)

    def meets(self, low: float, high: float) -> bool:
        """Whether an interval overlaps the range."""
        return low <= self.high and high >= self.low

    def holds(self, low: float, high: float) -> bool:
        """Whether an interval lies strictly within the range."""
        return low > self.low and high < self.high

    def has_direction(self, mean: float) -> bool:
        """Whether a mean is on the claimed side.

        That is the side of the point of comparison where the range is.
        """
        departs = self.departs
        if departs is None and self.is_order:
            departs = self.low if math.isinf(self.high) else self.high
        if departs is None:
            return False
        return mean > departs if self.low >= departs else mean < departs


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
        why: Reason why the claim fails, or holds only in its direction; shown in those cases.
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
    leans = claimed.has_direction(ours.mean)
    if claimed.is_order:
        holds = claimed.holds(ours.low, ours.high)
    else:
        holds = claimed.meets(*ours.of_others(runs)) and (leans or claimed.departs is None)
    if holds:
        return Verdict.HOLDS
    return Verdict.DIRECTION if leans else Verdict.FAILS
