"""Sustainable rate, by bisection, and the break-even of workers.

Source: ordered streams, section 7.1: the number "beyond which the performance drops when the overheads of
parallelization outweigh its benefits"; existing techniques "identify this break-even point automatically", by adding
threads while throughput grows. The gain that counts and the search are ours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

from adapt.core.errors import UsageError
from adapt.core.metrics import column_named
from adapt.core.ordered.engine.settings import MOST_WORKERS
from adapt.core.ordered.replay.arrivals import LatencyTarget, Sustained
from adapt.core.ordered.replay.outcome import WorkersOutcome
from adapt.core.phrases import percent
from adapt.core.table import Column, Kind, Table
from adapt.core.values import duration

LOW, HIGH = 0.2, 1.2
"""Shares of the capacity between which the search begins; at the lower one, the latency at low load is measured."""

STEP = 0.02
"""The search ends with an interval of at most this share of the capacity."""

VOTES = 3
"""Runs at a rate, each with another seed; most of them decide."""

SEARCH_RUNS = VOTES * 9
"""Runs of a search: at `LOW`, at `HIGH`, and at 7 rates between these."""

_RAISED, _RAISES = 1.5, 4
"""Factor by which the upper end grows while it is sustained, and how often."""

Run = Callable[[float, int], WorkersOutcome]
"""A run at a rate of arrivals, by its number for a seed."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A run of the search."""

    workers: int
    rate: float  # rows per second
    capacity: float
    p99_s: float | None  # 99th percentile from arrival to output; None without timed rows
    keeps_up: bool
    is_sustained: bool  # whether the workers kept up, with at most the target latency, also in a longer run


@dataclass(frozen=True, slots=True)
class Search:
    """Result of a search."""

    found: Sustained  # the interval
    probes: tuple[Probe, ...]  # all runs, in their order


def searched(capacity: float, target: LatencyTarget, run: Run, *, is_steady: bool = True) -> Search:
    """Search the sustainable rate of a number of workers.

    Workers sustain a rate if they keep up, or have drained within the target after the last arrival, and the 99th
    percentile of the latency from arrival to output is at most the target, in most of `VOTES` runs with different
    seeds. At a steady rate it must also stay below the target in a longer run, growing on as it did (`later_s`): above
    the capacity, a queue grows slowly at first. At most `VOTES` runs each at `LOW`, at the upper end, and at 7 rates
    between these, more where the capacity was measured too low.

    Args:
        capacity: Saturated throughput of these workers, in rows/s.
        is_steady: Whether rows arrive at the same rate throughout; else a burst at the end would pass for growth.
    """
    low = [run(LOW * capacity, number) for number in range(VOTES)]
    target_s = target.seconds or target.times * median(_p99_s(one) for one in low)
    probes = [_probe(one, LOW * capacity, capacity, target_s, is_steady) for one in low]
    if not _most(probes):
        raise UsageError(
            f"no rate is sustained with a p99 latency of at most {duration(target_s)}: at {percent(LOW)} of the"
            f" capacity it is {duration(median(_p99_s(one) for one in low))}; give a longer target latency"
        )

    def is_sustained(rate: float) -> bool:
        votes: list[Probe] = []
        while not votes or (not _decided(votes) and len(votes) < VOTES):
            votes.append(_probe(run(rate, len(votes)), rate, capacity, target_s, is_steady))
        probes.extend(votes)
        return _most(votes)

    below, above = LOW * capacity, HIGH * capacity
    for _ in range(_RAISES):
        if not is_sustained(above):
            break
        below, above = above, _RAISED * above
    else:
        raise UsageError(
            f"every rate is sustained, since all rows pass within the target latency of {duration(target_s)}; give "
            "more rows or a shorter target latency"
        )
    while above - below > STEP * capacity:
        middle = (below + above) / 2
        if is_sustained(middle):
            below = middle
        else:
            above = middle
    return Search(Sustained(below, above, target_s), tuple(probes))


def _p99_s(one: WorkersOutcome) -> float:
    return inf if one.end_to_end is None else one.end_to_end.p99


def _probe(one: WorkersOutcome, rate: float, capacity: float, target_s: float, is_steady: bool) -> Probe:
    latency = one.end_to_end
    drains = one.keeps_up or (one.drain_s or 0.0) <= target_s
    lasts = not is_steady or one.later_s <= target_s
    is_sustained = drains and lasts and latency is not None and latency.p99 <= target_s
    return Probe(one.workers, rate, capacity, None if latency is None else latency.p99, one.keeps_up, is_sustained)


def _most(probes: Sequence[Probe]) -> bool:
    return 2 * sum(probe.is_sustained for probe in probes) > len(probes)


def _decided(votes: Sequence[Probe]) -> bool:
    """Whether further runs cannot change the majority."""
    sustained = sum(probe.is_sustained for probe in votes)
    return 2 * max(sustained, len(votes) - sustained) > VOTES


def search_table(probes: Sequence[Probe]) -> Table:
    """Runs of the searches for the sustainable rate."""
    columns = (
        column_named("workers"),
        Column("rate", Kind.NUMBER, "rows/s", "at which rows arrive"),
        Column("load", Kind.SHARE, about="rate over the throughput with all rows there at the start"),
        column_named("end_to_end_p99"),
        Column("keeps_up", about="whether outputs leave at the rate of the arrivals"),
        Column("sustained", about="whether it keeps up with at most the target latency, also in a longer run"),
    )
    rows = [
        [one.workers, one.rate, one.rate / one.capacity, one.p99_s, one.keeps_up, one.is_sustained] for one in probes
    ]
    return Table.from_rows("Search for the sustainable rate", columns, rows)


GAIN = 0.05
"""More workers are worth having if they add more than this share of throughput, and more than the noise of the runs."""

_MISSES = 2
"""Doublings without a gain after which a search has passed the peak."""

SEARCH_CASES = 20
"""About how many numbers of workers a search tries."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Throughput of a number of workers, in rows/s."""

    workers: int
    median: float  # of its runs
    low: float  # the lowest; the median if there is one run
    high: float  # the highest

    def is_worth_more_than(self, other: "Speed") -> bool:
        """Whether it is faster by more than `GAIN` and noise.

        Beyond noise, each median is outside the other's runs.
        """
        gains = self.median > (1 + GAIN) * other.median
        return gains and self.median > other.high and self.low > other.median


def speeds_of(outcomes: Sequence[WorkersOutcome]) -> list[Speed]:
    """Saturated throughput by ascending number of workers.

    Without those whose throughput was not measured.
    """
    found, by_workers = [], {one.workers: one for one in outcomes}
    for _, one in sorted(by_workers.items()):
        median = one.throughput if one.paced is None else one.paced.capacity
        if median and one.paced is None and one.repeats is not None:
            found.append(Speed(one.workers, median, one.repeats.lowest, one.repeats.highest))
        elif median:
            found.append(Speed(one.workers, median, median, median))
    return found


def break_even(speeds: Sequence[Speed]) -> Speed | None:
    """Number of workers beyond which more are not worth having.

    The last one if all are; None with fewer than two.
    """
    if len(speeds) < 2:
        return None
    return next(
        one for at, one in enumerate(speeds) if not any(more.is_worth_more_than(one) for more in speeds[at + 1 :])
    )


def searched_workers(run: Callable[[int], WorkersOutcome]) -> dict[int, WorkersOutcome]:
    """Runs of a search for the break-even, by ascending number of workers.

    Workers are doubled until that gains nothing twice. From the best number on, steps halve down to one worker. Then an
    interval is halved for the fewest workers within `GAIN` of the peak. So a peak after a longer plateau is not found.
    """
    tried: dict[int, WorkersOutcome] = {}

    def speed(workers: int) -> float:
        if workers not in tried:
            tried[workers] = run(workers)
        return tried[workers].throughput or 0.0

    best, workers, misses = 1, 2, 0
    while workers <= MOST_WORKERS and misses < _MISSES:
        if speed(workers) > (1 + GAIN) * speed(best):
            best, misses = workers, 0
        else:
            misses += 1
        workers *= 2
    step = best // 2
    while step:
        best = max((best, min(best + step, MOST_WORKERS), best - step), key=speed)
        step //= 2
    enough = max(map(speed, [*tried])) / (1 + GAIN)
    high = min(workers for workers in tried if speed(workers) >= enough)
    low = max((workers for workers in tried if workers < high), default=0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if speed(middle) >= enough else (middle, high)
    return dict(sorted(tried.items()))
