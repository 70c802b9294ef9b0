"""Distributions of input rates, for the workload-aware solver."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput
from adapt.core.fit.network.wiring import Indices


class Workload(Protocol):
    """A distribution of the rates of all inputs."""

    def probability(self, low: Floats, high: Floats) -> Floats:
        """The probability of each box, shape (boxes,).

        Args:
            low: Lower corners, inclusive, shape (boxes, inputs).
            high: Upper corners, exclusive, shape (boxes, inputs).
        """
        ...

    def for_inputs(self, inputs: Indices) -> "Workload":
        """The marginal distribution of some inputs."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Exponential:
    """Independent exponential rates.

    Attributes:
        means: Tuples/s, above 0; shape (inputs,).

    Source: FIT, section 8.1; the paper's lambda behaves like a mean, not its inverse.
    """

    means: Floats

    def __post_init__(self) -> None:
        if not ((self.means > 0) & (self.means < np.inf)).all():
            raise BadInput(f"mean rates must be finite numbers above 0 (got {self.means})")

    def probability(self, low: Floats, high: Floats) -> Floats:
        """The product over inputs of differences of exp(-rate / mean)."""
        return np.asarray(np.prod(np.exp(-low / self.means) - np.exp(-high / self.means), axis=1))

    def for_inputs(self, inputs: Indices) -> "Exponential":
        """The marginal distribution of some inputs."""
        return Exponential(self.means[inputs])


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """The empirical distribution of observed rates.

    Attributes:
        rates: Shape (times, inputs), at least one time.
    """

    rates: Floats

    def __post_init__(self) -> None:
        if not len(self.rates):
            raise BadInput("a workload needs at least one row of observed rates")

    def probability(self, low: Floats, high: Floats) -> Floats:
        """The share of times within each box."""
        return np.array(
            [
                np.mean(((self.rates >= least) & (self.rates < most)).all(axis=1))
                for least, most in zip(low, high, strict=True)
            ]
        )

    def for_inputs(self, inputs: Indices) -> "Observed":
        """The marginal distribution of some inputs."""
        return Observed(self.rates[:, inputs])
