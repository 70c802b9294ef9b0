"""Break-even of workers: how many are worth having.

Source: ordered streams, section 7.1: the number "beyond which the performance drops when the overheads of
parallelization outweigh its benefits"; existing techniques "identify this break-even point automatically", by adding
threads while throughput grows. The gain that counts and the search are ours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapt.core.ordered.engine.settings import MOST_WORKERS
from adapt.core.ordered.replay.outcome import WorkersOutcome
from adapt.core.phrases import counted
from adapt.core.values import share

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


def break_even_sentence(speeds: Sequence[Speed]) -> str:
    """Sentence on the break-even; empty with fewer than two speeds."""
    found, most = break_even(speeds), speeds[-1] if speeds else None
    if found is None or most is None:
        return ""
    if found == most:
        before = speeds[-2]
        times = f"{most.median / before.median:.2f} times as fast as {before.workers:,}"
        above = counted(most.workers, "worker")
        return f"Break-even is above {above}: {most.workers:,} are {times}."
    at = counted(found.workers, "worker")
    said = f"Break-even is at {at}: up to {most.workers:,}, more add less than {GAIN:.0%} of throughput"
    if any(more.median > (1 + GAIN) * found.median for more in speeds if more.workers > found.workers):
        said += " or less than the noise of the runs"
    if found.is_worth_more_than(most):
        said += f"; {most.workers:,} are {share(1 - most.median / found.median)} slower"
    return f"{said}."


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
