"""Costs of the engine from runs, by least squares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from adapt.core.ordered.engine.costs import TERMS, EngineProfile, Interval, Term


@dataclass(frozen=True, slots=True)
class Measured:
    """A run of threads.

    Attributes:
        counts: How often it had each cost.
        cpu_ns: What they took in total, in nanoseconds of CPU.
    """

    counts: Mapping[Term, float]
    cpu_ns: float


def fit(runs: Sequence[Measured]) -> dict[Term, float]:
    """The costs, at least 0, with the smallest squares of relative errors.

    Without costs that no run had.
    """
    table = np.array([[run.counts.get(term, 0.0) for term in TERMS] for run in runs])
    table /= np.array([run.cpu_ns for run in runs])[:, None]
    had = table.any(axis=0)
    # Scaled, since counts differ by orders of magnitude.
    scale = np.linalg.norm(table[:, had], axis=0)
    costs, _ = nnls(table[:, had] / scale, np.ones(len(runs)))
    known = [TERMS[at] for at in np.flatnonzero(had).tolist()]
    return dict(zip(known, (costs / scale).tolist(), strict=True))


def profile_of(repeats: Sequence[Sequence[Measured]], workers: int, measured: str) -> EngineProfile:
    """Median, lowest and highest of the fits to each repeat.

    Args:
        repeats: The runs of all configurations, several times.
    """
    fits = [fit(runs) for runs in repeats]
    of_each = {term: np.array([one[term] for one in fits]) for term in fits[0]}
    return EngineProfile(
        measured,
        workers,
        {term: Interval(float(np.median(ns)), float(ns.min()), float(ns.max())) for term, ns in of_each.items()},
    )
