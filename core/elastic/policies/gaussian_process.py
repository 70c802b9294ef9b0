"""Gaussian process over numbers of workers: how much they process."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LENGTH, LENGTHS = 2.5, np.geomspace(0.5, 50, 41)
"""Length scale with one observation, and those whose likelihood is compared with more, in workers."""

JITTER = 1e-8
"""Added to the diagonal of the correlations."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class WorkersProcess:
    """Gaussian process with mean zero and a squared-exponential kernel.

    Attributes:
        at: Numbers of workers that were observed, shape (observations,).
        weights: Inverse correlations times observations, shape (observations,).
        length: Length scale of the kernel, in workers.
    """

    at: Floats
    weights: Floats
    length: float

    @classmethod
    def fitted(cls, observed: Mapping[int, float]) -> "WorkersProcess":
        """Fit it to observations by marginal likelihood.

        The variance that maximizes the likelihood cancels out of the mean.

        Args:
            observed: What a number of workers processes; at least one.

        Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, equations 2.25 and 2.30.
        """
        at, rates = (np.array(each, np.float64) for each in (list(observed), list(observed.values())))
        lengths = [LENGTH] if len(at) == 1 else LENGTHS.tolist()
        found = max((cls._likelihood(at, rates, one), one) for one in lengths)[1]
        shape = _correlations(at, at, found) + JITTER * np.eye(len(at))
        return cls(at, np.asarray(np.linalg.solve(shape, rates), np.float64), found)

    def mean(self, workers: Floats) -> Floats:
        """Expected rates, shape (numbers,)."""
        return np.asarray(_correlations(workers, self.at, self.length) @ self.weights)

    @staticmethod
    def _likelihood(at: Floats, rates: Floats, length: float) -> float:
        """Logarithm of the marginal likelihood at the best variance, up to a constant."""
        lower = np.linalg.cholesky(_correlations(at, at, length) + JITTER * np.eye(len(at)))
        variance = float(np.sum(np.linalg.solve(lower, rates) ** 2)) / len(at)
        return -0.5 * len(at) * float(np.log(variance)) - float(np.log(np.diag(lower)).sum())


def _correlations(one: Floats, other: Floats, length: float) -> Floats:
    return np.asarray(np.exp(-0.5 * ((one[:, None] - other[None, :]) / length) ** 2))
