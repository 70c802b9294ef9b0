"""Costs of the engine from runs, by least squares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from adapt.core.ordered.calibrate.line import middle_ns
from adapt.core.ordered.engine.costs import CONTENDED, TERMS, Cost, EngineProfile, Interval, Term

_LINE = Term(Cost.LINE)

_FAR = 2.0
"""Ratio of two times of a cache line from which on contention is not in proportion to them."""

_LEAST = 0.01
"""Least weight of a run."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A run of threads.

    Attributes:
        counts: How often it had each cost.
        cpu_ns: What they took in total, in nanoseconds of CPU.
        work_ns: Part of it that was asked for, as the time of functions.
        cores: CPU seconds per second.
        overlap: Share of the run, 0 to 1, in which the workers ran at the same time.
        share: Its weight, 0 to 1: the overlap or, with one worker, the share of the run in which it ran; less if the
            time of a cache line changed meanwhile.
        line_ns: Time in which a cache line moved between cores, before and after in the mean; None if that was not
            measured.
        speed: Speed of its cores before or after as a share of the highest yet, 0 to 1, the lower one.
    """

    counts: Mapping[Term, float]
    cpu_ns: float
    work_ns: float = 0.0
    cores: float = 1.0
    overlap: float = 1.0
    share: float = 1.0
    line_ns: float | None = None
    speed: float = 1.0


def line_of(runs: Sequence[Measured]) -> float | None:
    """Median time of a cache line's move; None if never measured."""
    return middle_ns(run.line_ns for run in runs)


def at_one_line(runs: Sequence[Measured], line_ns: float | None) -> list[Measured]:
    """Runs of one configuration at about one time of a cache line.

    Those at another time, to which a host that moves the cores may switch meanwhile, are replaced by the others in
    turn; all stay if there are no others.
    """
    there = [
        run
        for run in runs
        if not (run.line_ns and line_ns) or max(run.line_ns, line_ns) < _FAR * min(run.line_ns, line_ns)
    ]
    return (
        [run if run in there else there[number % len(there)] for number, run in enumerate(runs)] if there else [*runs]
    )


def contention_in(run: Measured, line_ns: float | None) -> float:
    """Contention of a run, relative to that of a free machine.

    There, workers always run at the same time, and a cache line moves in `line_ns`.
    """
    return run.overlap * (run.line_ns / line_ns if run.line_ns and line_ns else 1.0)


def fit(runs: Sequence[Measured], line_ns: float | None = None) -> dict[Term, float]:
    """The costs, at least 0, with the smallest squares of relative errors.

    A run counts by its share of the cores. Workers cost each other time only while they run at the same time, in
    proportion to the time in which a cache line moves between their cores.

    Without costs that no run had.

    Args:
        line_ns: Time of such a move at which costs of contention are given; default: the median of the runs.
    """
    line_ns = line_of(runs) if line_ns is None else line_ns

    def count(run: Measured, term: Term) -> float:
        if term.cost is Cost.HIDDEN:
            return -run.counts.get(term, 0.0)
        return run.counts.get(term, 0.0) * (contention_in(run, line_ns) if term.cost in CONTENDED else 1.0)

    weights = np.sqrt([max(run.share, _LEAST) for run in runs]) / [run.cpu_ns for run in runs]
    table = weights[:, None] * [[count(run, term) for term in TERMS] for run in runs]
    had = table.any(axis=0)
    # Scaled, since counts differ by orders of magnitude.
    scale = np.linalg.norm(table[:, had], axis=0)
    costs, _ = nnls(table[:, had] / scale, weights * [run.cpu_ns - run.work_ns for run in runs])
    known = [TERMS[at] for at in np.flatnonzero(had).tolist()]
    return dict(zip(known, (costs / scale).tolist(), strict=True))


def profile_of(repeats: Sequence[Sequence[Measured]], workers: int, measured: str) -> EngineProfile:
    """The fit to the fastest runs, with its interval.

    That is from the lowest to the highest of the fits to each repeat. The fastest runs count, as what else runs on the
    host only adds time.

    Args:
        repeats: The runs of all configurations, several times in the same order.
    """
    line_ns = line_of([run for runs in repeats for run in runs])
    alike = [at_one_line(runs, line_ns) for runs in zip(*repeats, strict=True)]
    fastest = [min(runs, key=lambda run: run.cpu_ns) for runs in alike]
    repeats = [*zip(*alike, strict=True)]
    fits = [fit(runs, line_ns) for runs in (fastest, *repeats)]
    of_each = {term: np.array([one[term] for one in fits]) for term in fits[0]}
    if line_ns is not None:
        of_each[_LINE] = np.array([line_ns, *(line_of(runs) or line_ns for runs in repeats)])
    return EngineProfile(
        measured,
        workers,
        {term: Interval(float(ns[0]), float(ns.min()), float(ns.max())) for term, ns in of_each.items()},
    )
