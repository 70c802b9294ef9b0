"""How skewed a counted stream is: the Zipf law its heavy keys follow, and whether placing keys can level the load."""

import math
from dataclasses import dataclass
from enum import StrEnum
from heapq import heapreplace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adapt.core.errors import UsageError
from adapt.core.frequencies.frequencies import Frequencies
from adapt.core.frequencies.tracking import reaches, theta, threshold
from adapt.core.resources.floors import imbalance_floor
from adapt.core.resources.functions import Floats, Resources
from adapt.core.stream import Weight
from adapt.core.table import Column, Kind, Table

ENOUGH_ROWS = 100
"""Rows that a key must have to take part in a fit. Its count then errs by 10 %, so that sorting equally likely keys by
the luck of their counts does not pass for a law."""

WIDEST_INTERVAL = 0.1
"""A count takes part in a fit if its interval is no wider than this part of its upper end."""

LEAST_SPAN = 10
"""The last rank of a fit is at least this many times the first; a narrower range would fit any falling counts."""

TOLERANCE = 0.2
"""Where the law holds, counts are within this part of it."""

LEAST_HELD = 0.9
"""The part of a range, measured in log rank, that must be within the tolerance."""

MOST_RANKS = 100_000
"""Ranks beyond this are not looked at."""

MOST_EXPONENT = 32.0
"""Estimates end here; counts of int64 cannot fall more steeply over a factor of ten in rank."""

_GROUP_WIDTH = 1.05
_END_WIDTH = 1.2  # ranges are tried from and to ranks this factor apart
_NEARLY_ALIKE = 2.0  # a fall from the first rank to the last that words do not call a law
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class ZipfFit:
    """A Zipf law, weight proportional to rank^-z, and the ranks for which it holds.

    Attributes:
        exponent: z; 0 where all keys weigh the same.
        standard_error: Of z, if rows are drawn independently and the law holds; it leaves out that the ranks come
            from the same counts and what lossy counts may err. None where rows do not weigh 1.
        first_rank: The first rank of the range, from 1, the heaviest.
        last_rank: The last.
        share: What these ranks carry of the total weight, in (0, 1].
        worst_deviation: How far from the law the weight of a group of neighbouring ranks lies at most, as a part of
            what the law gives it.
    """

    exponent: float
    standard_error: float | None
    first_rank: int
    last_rank: int
    share: float
    worst_deviation: float


def fit_zipf(frequencies: Frequencies) -> ZipfFit | None:
    """The Zipf law of the heavy keys, over the widest range of ranks for which it holds; None if there is none.

    Only keys whose rank is certain enough take part: those with at least `ENOUGH_ROWS` rows (or, where rows do not
    weigh 1, that many times the weight of an average row), with a narrow interval, and heavier than any key that is
    not listed or has a wide interval may be. Where intervals are narrow, their middle is the count.

    For ranks a to b the exponent is that of greatest likelihood, the counts being a sample of p_k = k^-z / sum of
    j^-z over j = a..b. The law holds for a..b if the weights of groups of ranks (each about 5 % wide, single ranks at
    first) are within `TOLERANCE` of it at both ends and over `LEAST_HELD` of the range in log rank. Of all
    ranges with b >= `LEAST_SPAN` a on a grid, the widest in log(b / a) is taken, and of equally wide ones the first.

    Source: Clauset, Shalizi and Newman, "Power-law distributions in empirical data", SIAM Review 51(4), 2009, for
    maximum likelihood instead of a line through a log-log plot. They fit the distribution of sizes from the size
    where it begins, by the least Kolmogorov-Smirnov distance; here it is weight by rank, as streams are generated and
    partitioners judged (their exponent is 1 + 1/z), and the range is bounded at both ends by a stated tolerance,
    because with millions of rows every test refuses every real stream.
    """
    counts = _reliable_counts(frequencies)
    found = _widest_range(counts)
    if found is None:
        return None
    first, last = found
    held = counts[first - 1 : last]
    logs = np.log(np.arange(first, last + 1))
    exponent, variance = _most_likely(logs, np.ones((1, len(held))), np.array([held @ logs / held.sum()]))
    groups = _Groups.of(held, first)
    deviation = groups.deviations(np.ones((1, len(groups.counts))), exponent)
    return ZipfFit(
        exponent=float(exponent[0]),
        standard_error=float(1 / np.sqrt(held.sum() * variance[0])) if frequencies.weight is Weight.COUNT else None,
        first_rank=first,
        last_rank=last,
        share=min(float(held.sum()) / frequencies.total, 1.0),
        worst_deviation=float(deviation.max()),
    )


def zipf_exponent(weights: Floats, first_rank: int = 1) -> float:
    """The z of greatest likelihood for p_k = k^-z / sum of j^-z, the weights being those of ranks from `first_rank` up.

    It is the z for which the mean of log k under p is that under the weights, in [0, `MOST_EXPONENT`].

    Args:
        weights: Weight of each rank, falling; at least two, and their sum not 0.
        first_rank: The rank of the first, from 1.
    """
    logs = np.log(np.arange(first_rank, first_rank + len(weights)))
    exponent, _ = _most_likely(logs, np.ones((1, len(weights))), np.array([weights @ logs / weights.sum()]))
    return float(exponent[0])


def _reliable_counts(frequencies: Frequencies) -> Floats:
    """The counts of the ranks that are certain enough to fit, falling; shape (ranks,)."""
    low, high = frequencies.count_low, frequencies.count_high
    if frequencies.total == 0 or not len(low):
        return np.zeros(0)
    wide = high - low > WIDEST_INTERVAL * high
    unsure = max(frequencies.complete_above, float(high[wide].max()) if wide.any() else 0.0)
    a_row = 1.0 if frequencies.weight is Weight.COUNT else frequencies.total / max(frequencies.rows, 1)
    # counts fall, so these are the first keys
    sure = int(np.count_nonzero((low > unsure) & (low >= ENOUGH_ROWS * a_row)))
    ranks = min(sure, MOST_RANKS)
    middle = (low[:ranks].astype(np.float64) + high[:ranks]) / 2
    return np.sort(middle)[::-1]


@dataclass(frozen=True, slots=True)
class _Groups:
    """Neighbouring ranks taken together, so that thousands of ranges are tried in milliseconds.

    Attributes:
        first_ranks: The first rank of each group and the rank after the last group, shape (groups + 1,).
        sizes: Ranks in each, shape (groups,).
        logs: The mean of log k of each, shape (groups,).
        counts: The weight of each, shape (groups,).
    """

    first_ranks: Floats
    sizes: Floats
    logs: Floats
    counts: Floats

    @classmethod
    def of(cls, counts: Floats, first_rank: int = 1) -> "_Groups":
        """Group ranks from `first_rank` up, each group `_GROUP_WIDTH` wide or a single rank."""
        end = first_rank + len(counts)
        steps = math.ceil(math.log(end / first_rank) / math.log(_GROUP_WIDTH))
        ranks = np.unique(np.rint(np.geomspace(first_rank, end, steps + 1)).astype(np.int64))
        starts, sizes = ranks[:-1] - first_rank, np.diff(ranks).astype(np.float64)
        logs = np.add.reduceat(np.log(np.arange(first_rank, end)), starts) / sizes
        return cls(ranks.astype(np.float64), sizes, logs, np.add.reduceat(counts, starts))

    def deviations(self, inside: Floats, exponents: Floats) -> Floats:
        """How far each group is from the law, as a part of what the law gives it; shape (ranges, groups).

        Args:
            inside: 1 for the groups of each range, else 0, shape (ranges, groups).
            exponents: z of each range, shape (ranges,).
        """
        law = inside * self.sizes * np.exp(-np.outer(exponents, self.logs))
        law *= ((inside @ self.counts) / law.sum(axis=1))[:, None]
        ratios: Floats = np.divide(self.counts, law, out=np.ones_like(law), where=inside > 0)
        return np.abs(ratios - 1)


def _widest_range(counts: Floats) -> tuple[int, int] | None:
    """The first and last rank of the widest range for which a Zipf law holds."""
    if len(counts) < LEAST_SPAN:
        return None
    groups = _Groups.of(counts)
    ranks = groups.first_ranks
    steps = math.ceil(math.log(ranks[-1]) / math.log(_END_WIDTH))
    ends = np.unique(np.searchsorted(ranks, np.geomspace(1, ranks[-1], steps + 1) * (1 - 1e-9)))
    first, after = (pair.ravel() for pair in np.meshgrid(ends, ends, indexing="ij"))
    far = ranks[after] - 1 >= LEAST_SPAN * ranks[first]
    first, after = first[far], after[far]
    at = np.arange(len(groups.counts))
    inside = ((at >= first[:, None]) & (at < after[:, None])).astype(np.float64)
    mean_logs = inside @ (groups.counts * groups.logs) / (inside @ groups.counts)
    exponents, _ = _most_likely(groups.logs, inside * groups.sizes, mean_logs)
    within = (groups.deviations(inside, exponents) <= TOLERANCE) * inside
    widths = np.diff(np.log(ranks))
    held = (within @ widths) / (inside @ widths)
    ranges = np.arange(len(first))
    holds = (held >= LEAST_HELD) & (within[ranges, first] > 0) & (within[ranges, after - 1] > 0)
    if not holds.any():
        return None
    # `first` rises along the grid, and argmax takes the first of equals
    widest = int(np.argmax(np.where(holds, (ranks[after] - 1) / ranks[first], 0.0)))
    return int(ranks[first[widest]]), int(ranks[after[widest]]) - 1


def _most_likely(logs: Floats, sizes: Floats, mean_logs: Floats) -> tuple[Floats, Floats]:
    """For each range, the z at which the mean of log k is as observed, and the variance of log k there.

    The mean falls with z at the rate of the variance, so Newton's method is safe between the ends of a shrinking
    bracket. The Fisher information of n rows about z is n times the variance.

    Args:
        logs: log k of each group of ranks, shape (groups,).
        sizes: How many ranks of each group a range has, shape (ranges, groups).
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


class Skew(StrEnum):
    """What the skew of a stream asks for, at a number of channels."""

    FLAT = "flat"
    """No key reaches delta: hashing alone will do."""
    CURABLE = "curable"
    """Some keys must be placed one by one, and placing them levels the load."""
    FEW_KEYS = "few_keys"
    """No key is too heavy for a channel, but the heavy ones are too few to divide evenly."""
    ONE_KEY = "one_key"
    """N f1 > 1: no placement of whole keys reaches balance."""
    UNCERTAIN = "uncertain"
    """The intervals of the counts are too wide to tell."""


@dataclass(frozen=True, slots=True)
class SkewVerdict:
    """What the weights of the keys mean for so many channels. Pairs are the ends of intervals, equal if exact.

    A channel's load is the weight of its keys; the resource functions have a say only in delta.

    Attributes:
        skew: The verdict; None where no row weighs anything.
        channels: N.
        top_share: f1, the share of the heaviest key, listed or not; None without any weight.
        null_is_top: Whether the listed key that surely weighs most is null.
        useful_workers: 1 / f1: more channels than that cannot all be busy. The upper end is None if f1 may be
            anything down to 0; None without any weight.
        imbalance_floor: max(1, N f1), the least max/mean load of any placement; None without any weight.
        too_heavy: How many keys surely weigh more than an average channel.
        delta: The share from which a key is placed one by one; None where none is (one channel, no weight).
        keys_to_place: How many listed keys surely reach delta, and how many may.
        their_share: What those that surely do weigh at least and those that may at most, as a share of the total.
        placed_imbalance: max/mean load once those that may are placed, heaviest first, each on the emptiest channel,
            and the rest fills the gaps: with the lower and with the upper ends of their counts; None without any
            weight.
    """

    skew: Skew | None
    channels: int
    top_share: tuple[float, float] | None = None
    null_is_top: bool = False
    useful_workers: tuple[float, float | None] | None = None
    imbalance_floor: tuple[float, float] | None = None
    too_heavy: int = 0
    delta: float | None = None
    keys_to_place: tuple[int, int] = (0, 0)
    their_share: tuple[float, float] = (0.0, 0.0)
    placed_imbalance: tuple[float, float] | None = None

    @property
    def sentence(self) -> str:
        """The verdict in words, with its numbers."""
        if self.skew is None or self.top_share is None:
            return "No row weighs anything: there is no load to balance."
        if self.channels == 1:
            return "One channel takes every key: there is nothing to balance."
        match self.skew:
            case Skew.FLAT:
                return (
                    f"No key reaches delta, {_percent(self.delta or 0.0)} of the stream at {self.channels:,} channels"
                    f" (the heaviest carries {_between(self.top_share)}): hashing alone will do."
                )
            case Skew.CURABLE:
                ratio = _times(self.placed_imbalance[1] if self.placed_imbalance else 1.0)
                level = "levels the load" if ratio == "1" else f"leaves at most {ratio} times the average load on one"
                return (
                    f"{self._heavy_keys()} of the stream: at {self.channels:,} channels hashing alone leaves the"
                    f" balance to chance; placing {'it' if self.keys_to_place[1] == 1 else 'them one by one'} {level}."
                )
            case Skew.FEW_KEYS:
                ratio = _times(self.placed_imbalance[0] if self.placed_imbalance else 1.0)
                return (
                    f"{self._heavy_keys()} of the stream: none is too heavy for one of {self.channels:,} channels, but"
                    " they do not divide evenly. Placed heaviest first, they leave the fullest channel with"
                    f" {ratio} times the average load."
                )
            case Skew.ONE_KEY:
                return self._one_key()
            case Skew.UNCERTAIN:
                return self._uncertain()

    def _heavy_keys(self) -> str:
        keys = self.keys_to_place[1]
        return f"{keys:,} {'key carries' if keys == 1 else 'keys carry'} {_between(self.their_share)}"

    def _one_key(self) -> str:
        low, high = self.top_share or (1.0, 1.0)
        more, levelled = self.too_heavy - 1, _channels_below(low)
        others = f", and {more:,} more {'exceeds' if more == 1 else 'exceed'} an average channel" if more > 0 else ""
        beyond = f"more than {levelled:,} channels cannot be" if levelled > 1 else "not even two channels can be"
        told = (
            f"{'The null key' if self.null_is_top else 'One key'} carries {_between((low, high))}{others}: at"
            f" {self.channels:,} channels the fullest has at least {_times(self.channels * low)} times the average"
            f" load, whatever the placement; {beyond} levelled without splitting the key."
        )
        spread = " Rows without a key can be spread or left out, if they share no state."
        return told + spread * self.null_is_top

    def _uncertain(self) -> str:
        low, high = self.top_share or (0.0, 1.0)
        tell = "exact counting or a smaller epsilon tells"
        if _too_heavy(high, self.channels):
            surely = f"; more than {_channels_below(low):,} surely cannot be" if low else ""
            fits = _channels_below(high)
            not_yet = f"; for {fits:,} or fewer no key is too heavy" if fits > 1 else ""
            return (
                f"The heaviest key carries {_percent(low)} to {_percent(high)}: whether {self.channels:,} channels can"
                f" be levelled without splitting it, {tell}{surely}{not_yet}."
            )
        if self.keys_to_place[0]:
            return (
                f"{self._heavy_keys()} of the stream: none is too heavy for one of {self.channels:,} channels; whether"
                f" they divide evenly, {tell}."
            )
        return (
            f"No key surely reaches delta, {_percent(self.delta or 0.0)} of the stream at {self.channels:,} channels,"
            f" and none carries more than {_percent(high)}: none is too heavy for one channel; whether hashing alone"
            f" will do, {tell}."
        )


def skew_verdict(frequencies: Frequencies, resources: Resources, channels: int) -> SkewVerdict:
    """Judge whether hashing, placing keys or only splitting keys can level this stream.

    Placing levels the load if the fullest channel stays within 1 + theta of the average one, theta (Eq. 15) being that
    of the least tolerance. Placing heaviest first stays within 4/3 of the best placement (Graham, "Bounds on
    multiprocessing timing anomalies", 1969), and close to it where light keys can fill the gaps.
    O(keys + placed keys * log channels).

    Args:
        frequencies: The counted keys.
        resources: What sets delta and the tolerance.
        channels: N.

    Raises:
        UsageError: there are no channels.
    """
    if channels < 1:
        raise UsageError(f"{channels} channels cannot be judged: give 1 or more")
    total = frequencies.total
    if not total > 0:
        return SkewVerdict(None, channels)
    low, high = top = _top_share(frequencies)
    least, shares = frequencies.count_low / total, frequencies.count_high / total
    delta = threshold(frequencies, resources, channels) if channels > 1 else None
    may = reaches(frequencies, delta) if delta is not None else np.zeros(len(shares), np.bool_)
    surely = least >= delta if delta is not None else may
    keys = int(np.count_nonzero(surely)), int(np.count_nonzero(may))
    placed = _placed_imbalance(least[may], channels), _placed_imbalance(shares[may], channels)
    unlisted = delta is not None and frequencies.complete_above >= delta * total
    tolerated = 1 + theta(min(resources.tolerance), channels)
    return SkewVerdict(
        skew=_skew(top, channels, (keys[0], keys[1] + unlisted), placed, tolerated),
        channels=channels,
        top_share=top,
        null_is_top=bool(len(least)) and not frequencies.keys[0].is_valid,
        useful_workers=(1 / high, 1 / low if low else None),
        imbalance_floor=(imbalance_floor(low, 1.0, channels) or 1.0, imbalance_floor(high, 1.0, channels) or 1.0),
        too_heavy=int(np.count_nonzero(_too_heavy(least, channels))),
        delta=delta,
        keys_to_place=keys,
        their_share=(min(float(least[surely].sum()), 1.0), min(float(shares[may].sum()), 1.0)),
        placed_imbalance=placed,
    )


def _top_share(frequencies: Frequencies) -> tuple[float, float]:
    """The least and the most that the heaviest key can carry; it may be one that is not listed."""
    low = float(frequencies.count_low.max(initial=0))
    high = max(float(frequencies.count_high.max(initial=0)), frequencies.complete_above, low)
    # a counter that lists nothing and promises nothing knows only that no key carries more than all
    return low / frequencies.total, min(high / frequencies.total, 1.0) or 1.0


def _skew(
    top: tuple[float, float], channels: int, keys: tuple[int, int], placed: tuple[float, float], tolerated: float
) -> Skew:
    """The verdict, from the share of the heaviest key, how many keys reach delta and what placing them leaves."""
    if _too_heavy(top[0], channels):
        return Skew.ONE_KEY
    if _too_heavy(top[1], channels) or (keys[1] and not keys[0]):
        return Skew.UNCERTAIN
    if not keys[0]:
        return Skew.FLAT
    if placed[1] <= tolerated:
        return Skew.CURABLE
    return Skew.FEW_KEYS if placed[0] > tolerated else Skew.UNCERTAIN


def _too_heavy(share: ArrayLike, channels: int) -> NDArray[np.bool_]:
    """Whether a key of this share weighs more than an average channel, rounding of an even share aside."""
    return np.asarray(np.asarray(share) * channels > 1 + _ROUNDING)


def _channels_below(share: float) -> int:
    """The most channels for which a key of this share is not too heavy."""
    return math.floor((1 + _ROUNDING) / share)


def _placed_imbalance(shares: Floats, channels: int) -> float:
    """max/mean load with these keys placed heaviest first on the emptiest channel; the rest fills the gaps."""
    filled = [0.0] * channels
    for share in np.sort(shares)[::-1].tolist():
        heapreplace(filled, filled[0] + share)
    return max(1.0, channels * max(filled))


def skew_table(frequencies: Frequencies, resources: Resources, channels: int) -> Table:
    """The verdict and the Zipf law in one row, and both in words as its note.

    Where counts have intervals, each number is the end that is certain: the floor is one of every placement, and more
    than `useful_workers` channels cannot all be busy.

    Raises:
        UsageError: there are no channels.
    """
    verdict, fit = skew_verdict(frequencies, resources, channels), fit_zipf(frequencies)
    columns = (
        Column("verdict", about="flat: hash; curable: place keys; few_keys, one_key: no placement levels the load"),
        Column("channels", Kind.COUNT, about="the channels that the verdict is about"),
        Column("top_share_low", Kind.SHARE, about="the heaviest key carries no less"),
        Column("top_share_high", Kind.SHARE, about="the heaviest key carries no more"),
        Column("useful_workers", Kind.NUMBER, about="1 / top_share_low: more channels cannot all be busy"),
        Column("imbalance_floor", Kind.RATIO, about="the least fullest over average load of any placement"),
        Column(
            "placed_imbalance", Kind.RATIO, about="fullest over average load, at most, once keys_to_place are placed"
        ),
        Column("keys_to_place", Kind.COUNT, about="keys that reach delta, or may"),
        Column("their_share", Kind.SHARE, about="what they carry, at most"),
        Column("zipf_exponent", Kind.NUMBER, about="z of weight ~ rank^-z"),
        Column("zipf_error", Kind.NUMBER, about="standard error of z by sampling alone"),
        Column("zipf_first_rank", Kind.COUNT, about="the law holds from this rank"),
        Column("zipf_last_rank", Kind.COUNT, about="to this rank"),
        Column("zipf_share", Kind.SHARE, about="what these ranks carry"),
        Column("zipf_deviation", Kind.SHARE, about="the worst deviation from the law within these ranks"),
    )
    top, workers = verdict.top_share or (None, None), verdict.useful_workers or (None, None)
    counted = verdict.skew is not None
    row = (
        verdict.skew and verdict.skew.value,
        channels,
        *top,
        workers[1],
        verdict.imbalance_floor and verdict.imbalance_floor[0],
        verdict.placed_imbalance and verdict.placed_imbalance[1],
        verdict.keys_to_place[1] if counted else None,
        verdict.their_share[1] if counted else None,
        *((fit.exponent, fit.standard_error, fit.first_rank, fit.last_rank) if fit else (None,) * 4),
        *((fit.share, fit.worst_deviation) if fit else (None,) * 2),
    )
    note = f"{verdict.sentence} {zipf_sentence(frequencies, fit)}" if counted else verdict.sentence
    return Table.of("Skew", columns, [row], note)


def zipf_sentence(frequencies: Frequencies, fit: ZipfFit | None) -> str:
    """The law, or why there is none, in words."""
    if fit is None:
        if len(_reliable_counts(frequencies)) < LEAST_SPAN:
            rows = "rows" if frequencies.weight is Weight.COUNT else "times the weight of an average row"
            return (
                f"Too few keys for a power law: fewer than {LEAST_SPAN} have {ENOUGH_ROWS} {rows} or more and are"
                f" counted well enough to rank{'; exact counting may find more' if frequencies.epsilon else ''}."
            )
        return f"No power law: none holds over ranks that span a factor of {LEAST_SPAN}."
    fall = (fit.last_rank / fit.first_rank) ** fit.exponent
    ranks = f"ranks {fit.first_rank:,} to {fit.last_rank:,}, which carry {_percent(fit.share)}"
    if fall < _NEARLY_ALIKE:
        return f"The keys of {ranks}, weigh nearly the same: their Zipf exponent is {fit.exponent:.2f}."
    error = "" if fit.standard_error is None else f" (standard error {fit.standard_error:.1g})"
    return f"Weights fall as rank^-{fit.exponent:.2f}{error} over {ranks}."


def _percent(share: float) -> str:
    """A share as a percentage of three digits, rounded to nearest; never 100 % for less."""
    told = f"{100 * share:.3g} %"
    return "over 99.9 %" if told == "100 %" and share < 1 - _ROUNDING else told


def _between(shares: tuple[float, float]) -> str:
    """An interval of shares; one number where its ends read the same."""
    low, high = _percent(shares[0]), _percent(shares[1])
    return low if low == high else f"{low} (at most {high})"


def _times(ratio: float) -> str:
    return f"{ratio:.3g}" if ratio < 1000 else f"{ratio:,.0f}"
