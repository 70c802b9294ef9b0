"""Fitting a Zipf law to the top keys of a counted stream."""

import math
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Frequencies
from adapt.core.stream import Weight
from adapt.core.table import Cell, Column, Kind, Table

ENOUGH_ROWS = 100
"""Minimum rows of a key in a fit. Its count then varies by 10 %, so equally likely keys sorted by count do not
look like a law."""

WIDEST_INTERVAL = 0.1
"""The widest interval of a count in a fit, relative to its upper bound."""

LEAST_SPAN = 10
"""Minimum ratio of last to first rank; any decreasing counts fit a narrower range."""

TOLERANCE = 0.2
"""The largest relative deviation from the law."""

LEAST_HELD = 0.9
"""The share of the range, in log rank, that must be within the tolerance."""

MOST_RANKS = 100_000
"""The last rank considered."""

MOST_EXPONENT = 32.0
"""The largest exponent; int64 counts cannot fall faster over a factor of ten in rank."""

_GROUP_WIDTH = 1.05
_END_WIDTH = 1.2  # ratio of neighboring candidate ends of ranges
_NEARLY_ALIKE = 2.0  # a smaller fall from first to last rank is not called a law
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class ZipfFit:
    """A Zipf law, weight proportional to rank^-z, and its range of ranks."""

    exponent: float  # z; 0 if all keys weigh the same
    # of z, for independent rows that follow the law; ignores the ranking by the same counts and the error of lossy
    # counts. None if rows do not weigh 1
    standard_error: float | None
    first_rank: int  # the first rank of the range; 1 is the hottest key
    last_rank: int
    share: float  # the share of the total weight on these ranks, in (0, 1]
    worst_deviation: float  # the largest relative deviation from the law of a group of neighboring ranks


def fit_zipf(frequencies: Frequencies) -> ZipfFit | None:
    """The Zipf law of the top keys, if one fits.

    Only keys of certain rank take part: with at least `ENOUGH_ROWS` rows (or that many times the mean weight of a row),
    a narrow interval, and above any key that is unlisted or has a wide interval. Counts are the middles of intervals.

    For ranks a to b the exponent maximizes the likelihood of counts sampled from p_k = k^-z / sum of j^-z over
    j = a..b. The law holds for a..b if the weights of groups of ranks (each about 5 % wide, single ranks at first) are
    within `TOLERANCE` of it at both ends and over `LEAST_HELD` of the range in log rank. Of all ranges with
    b >= `LEAST_SPAN` a on a grid, the result is the widest in log(b / a), then the first.

    Source: Clauset, Shalizi and Newman, "Power-law distributions in empirical data", SIAM Review 51(4), 2009, for
    maximum likelihood instead of a line through a log-log plot. They fit the distribution of sizes above
    a minimum, by the smallest Kolmogorov-Smirnov distance; here it is weight by rank, as streams are generated and
    partitioners evaluated (their exponent is 1 + 1/z), and a tolerance bounds the range at both ends, because with
    millions of rows every test rejects every real stream.
    """
    counts = _reliable_counts(frequencies)
    found = _widest_range(counts)
    if found is None:
        return None
    first, last = found
    held = counts[first - 1 : last]
    logs = np.log(np.arange(first, last + 1))
    exponent, variance = most_likely(logs, np.ones((1, len(held))), np.array([held @ logs / held.sum()]))
    groups = _Groups.from_counts(held, first)
    deviation = groups.deviations(np.ones((1, len(groups.counts))), exponent)
    return ZipfFit(
        exponent=float(exponent[0]),
        standard_error=float(1 / np.sqrt(held.sum() * variance[0])) if frequencies.weight is Weight.COUNT else None,
        first_rank=first,
        last_rank=last,
        share=min(float(held.sum()) / frequencies.total, 1.0),
        worst_deviation=float(deviation.max()),
    )


def _reliable_counts(frequencies: Frequencies) -> Floats:
    """The counts of ranks certain enough to fit, descending; shape (ranks,)."""
    low, high = frequencies.count_low, frequencies.count_high
    if frequencies.total == 0 or not len(low):
        return np.zeros(0)
    wide = high - low > WIDEST_INTERVAL * high
    unsure = max(frequencies.complete_above, float(high[wide].max()) if wide.any() else 0.0)
    a_row = 1.0 if frequencies.weight is Weight.COUNT else frequencies.total / max(frequencies.rows, 1)
    # counts descend, so these are the first keys
    sure = int(np.count_nonzero((low > unsure) & (low >= ENOUGH_ROWS * a_row)))
    ranks = min(sure, MOST_RANKS)
    middle = (low[:ranks].astype(np.float64) + high[:ranks]) / 2
    return np.sort(middle)[::-1]


@dataclass(frozen=True, slots=True)
class _Groups:
    """Groups of neighboring ranks, so that thousands of ranges are tried in milliseconds."""

    first_ranks: Floats  # the first rank of each group and the rank after the last group, shape (groups + 1,)
    sizes: Floats  # ranks in each, shape (groups,)
    logs: Floats  # the mean of log k of each, shape (groups,)
    counts: Floats  # the weight of each, shape (groups,)

    @classmethod
    def from_counts(cls, counts: Floats, first_rank: int = 1) -> "_Groups":
        """Group ranks from `first_rank` up, each group `_GROUP_WIDTH` wide or a single rank."""
        end = first_rank + len(counts)
        steps = math.ceil(math.log(end / first_rank) / math.log(_GROUP_WIDTH))
        ranks = np.unique(np.rint(np.geomspace(first_rank, end, steps + 1)).astype(np.int64))
        starts, sizes = ranks[:-1] - first_rank, np.diff(ranks).astype(np.float64)
        logs = np.add.reduceat(np.log(np.arange(first_rank, end)), starts) / sizes
        return cls(ranks.astype(np.float64), sizes, logs, np.add.reduceat(counts, starts))

    def deviations(self, inside: Floats, exponents: Floats) -> Floats:
        """The relative deviation of each group from the law; shape (ranges, groups).

        Args:
            inside: 1 for the groups of each range, else 0, shape (ranges, groups).
            exponents: z of each range, shape (ranges,).
        """
        law = inside * self.sizes * np.exp(-np.outer(exponents, self.logs))
        law *= ((inside @ self.counts) / law.sum(axis=1))[:, None]
        ratios: Floats = np.divide(self.counts, law, out=np.ones_like(law), where=inside > 0)
        return np.abs(ratios - 1)


def _widest_range(counts: Floats) -> tuple[int, int] | None:
    """The first and last rank of the widest range that a Zipf law fits."""
    if len(counts) < LEAST_SPAN:
        return None
    groups = _Groups.from_counts(counts)
    ranks = groups.first_ranks
    steps = math.ceil(math.log(ranks[-1]) / math.log(_END_WIDTH))
    ends = np.unique(np.searchsorted(ranks, np.geomspace(1, ranks[-1], steps + 1) * (1 - 1e-9)))
    first, after = (pair.ravel() for pair in np.meshgrid(ends, ends, indexing="ij"))
    far = ranks[after] - 1 >= LEAST_SPAN * ranks[first]
    first, after = first[far], after[far]
    at = np.arange(len(groups.counts))
    inside = ((at >= first[:, None]) & (at < after[:, None])).astype(np.float64)
    mean_logs = inside @ (groups.counts * groups.logs) / (inside @ groups.counts)
    exponents, _ = most_likely(groups.logs, inside * groups.sizes, mean_logs)
    within = (groups.deviations(inside, exponents) <= TOLERANCE) * inside
    widths = np.diff(np.log(ranks))
    held = (within @ widths) / (inside @ widths)
    ranges = np.arange(len(first))
    holds = (held >= LEAST_HELD) & (within[ranges, first] > 0) & (within[ranges, after - 1] > 0)
    if not holds.any():
        return None
    # `first` ascends along the grid; argmax takes the first of equals
    widest = int(np.argmax(np.where(holds, (ranks[after] - 1) / ranks[first], 0.0)))
    return int(ranks[first[widest]]), int(ranks[after[widest]]) - 1


def most_likely(logs: Floats, sizes: Floats, mean_logs: Floats) -> tuple[Floats, Floats]:
    """Maximum-likelihood z of each range, and the variance of log k.

    The derivative of the mean is minus the variance, so Newton's method is safe within a shrinking bracket. The Fisher
    information of n rows about z is n times the variance.

    Args:
        logs: log k of each group of ranks, shape (groups,).
        sizes: Ranks of each group in each range, shape (ranges, groups).
        mean_logs: The observed means, shape (ranges,).
    """
    low, high = np.zeros(len(sizes)), np.full(len(sizes), MOST_EXPONENT)
    exponents = np.ones(len(sizes))
    squares = logs * logs
    variances = np.zeros(len(sizes))
    for _ in range(100):
        weights = sizes * np.exp(-np.outer(exponents, logs))
        sums = weights.sum(axis=1)
        means = weights @ logs / sums
        variances = np.maximum(weights @ squares / sums - means * means, 1e-300)
        low = np.where(means > mean_logs, exponents, low)
        high = np.where(means < mean_logs, exponents, high)
        newton = np.maximum(exponents + (means - mean_logs) / variances, 0.0)
        following = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
        moved = float(np.abs(following - exponents).max(initial=0.0))
        exponents = following
        if moved < 1e-9:
            break
    return exponents, variances


def zipf_table(frequencies: Frequencies) -> Table:
    """The law in one row, with a sentence as its note."""
    fit = fit_zipf(frequencies)
    columns = (
        Column("zipf_exponent", Kind.NUMBER, about="z of weight ~ rank^-z"),
        Column("zipf_error", Kind.NUMBER, about="standard error of z by sampling alone"),
        Column("zipf_first_rank", Kind.COUNT, about="first rank of the law"),
        Column("zipf_last_rank", Kind.COUNT, about="last rank of the law"),
        Column("zipf_share", Kind.SHARE, about="share of the total on these ranks"),
        Column("zipf_deviation", Kind.SHARE, about="largest deviation from the law"),
    )
    row: tuple[Cell, ...] = (None,) * len(columns)
    if fit is not None:
        row = (*(fit.exponent, fit.standard_error, fit.first_rank, fit.last_rank), *(fit.share, fit.worst_deviation))
    return Table.from_rows("Zipf law", columns, [row], zipf_sentence(frequencies, fit))


def zipf_sentence(frequencies: Frequencies, fit: ZipfFit | None) -> str:
    """The law, or why none fits, as a sentence."""
    if fit is None:
        if len(_reliable_counts(frequencies)) < LEAST_SPAN:
            rows = "rows" if frequencies.weight is Weight.COUNT else "times the mean row weight"
            return (
                f"Too few keys to fit a power law: fewer than {LEAST_SPAN} have at least {ENOUGH_ROWS} {rows} and a"
                f" certain rank{'; exact counting may find more' if frequencies.epsilon else ''}."
            )
        return f"No power law fits ranks that span a factor of {LEAST_SPAN}."
    fall = (fit.last_rank / fit.first_rank) ** fit.exponent
    ranks = f"ranks {fit.first_rank:,} to {fit.last_rank:,}, with {_percent(fit.share)} of the total"
    if fall < _NEARLY_ALIKE:
        return f"The keys of {ranks}, have nearly equal weight: Zipf exponent {fit.exponent:.2f}."
    error = "" if fit.standard_error is None else f" (standard error {fit.standard_error:.1g})"
    return f"Weights fall as rank^-{fit.exponent:.2f}{error} over {ranks}."


def _percent(share: float) -> str:
    """A share as a percentage of three digits; 100 % only if exact."""
    told = f"{100 * share:.3g} %"
    return "over 99.9 %" if told == "100 %" and share < 1 - _ROUNDING else told
