"""Timing of two functions in turns in one process."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Any


@dataclass(frozen=True, slots=True)
class Ratio:
    """Speed-up over the reference by repeat, and the best times."""

    ratios: tuple[float, ...]
    ours_s: float
    reference_s: float


def measured(ours: Callable[[], Any], reference: Callable[[], Any], repeats: int = 7) -> Ratio:
    """Time both in turns, after a warm-up run of each."""
    return _measured(ours, reference, repeats, perf_counter)


def cpu_measured(ours: Callable[[], Any], reference: Callable[[], Any], repeats: int = 7) -> Ratio:
    """As `measured`, by CPU time of all threads, for shared machines."""
    return _measured(ours, reference, repeats, process_time)


def holds(claim: str, ratio: Ratio, at_least: float) -> bool:
    """Print the claim with its ratio; True if the median meets it."""
    middle = median(ratio.ratios)
    met = middle >= at_least
    print(
        f"{claim}: {middle:.2f}x (min {min(ratio.ratios):.2f}, max {max(ratio.ratios):.2f}, "
        f"{len(ratio.ratios)} repeats), claimed at least {at_least:.3g}x: {'met' if met else 'NOT MET'}; "
        f"best times {ratio.ours_s:.4f} s and {ratio.reference_s:.4f} s"
    )
    return met


def best_of(work: Callable[[], Any], repeats: int) -> float:
    """Best time of some runs in seconds, after a warm-up run."""
    work()
    return min(_seconds(work, perf_counter) for _ in range(repeats))


def _measured(ours: Callable[[], Any], reference: Callable[[], Any], repeats: int, clock: Callable[[], float]) -> Ratio:
    ours()
    reference()
    pairs = [(_seconds(ours, clock), _seconds(reference, clock)) for _ in range(repeats)]
    best = (min(times) for times in zip(*pairs, strict=True))
    return Ratio(tuple(theirs / own for own, theirs in pairs), *best)


def _seconds(work: Callable[[], Any], clock: Callable[[], float]) -> float:
    start = clock()
    work()
    return clock() - start
