"""Distributions of input rates, for the workload-aware solver."""

from collections import deque
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

    Source: FIT, section 8.1; the paper's lambda behaves like a mean, not its inverse.
    """

    means: Floats  # Tuples/s, above 0; shape (inputs,)

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
    """The empirical distribution of observed rates."""

    rates: Floats  # shape (times, inputs), at least one time

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


WINDOW = 4096
"""Newest ticks that a learnt workload holds."""


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """The rates observed while a network runs.

    Before any, all rates up to the highest are equally likely; that counts as one more tick, so none is ruled out.
    """

    rates: Floats  # shape (times, inputs), perhaps none
    most: Floats  # the highest rates, above 0, shape (inputs,)

    def probability(self, low: Floats, high: Floats) -> Floats:
        """The share of times within each box."""
        prior = np.prod(np.clip(np.minimum(high, self.most) - low, 0.0, None) / self.most, axis=1)
        seen = Observed(self.rates).probability(low, high) if len(self.rates) else np.zeros(len(low))
        return np.asarray((len(self.rates) * seen + prior) / (len(self.rates) + 1))

    def for_inputs(self, inputs: Indices) -> "Learnt":
        """The marginal distribution of some inputs."""
        return Learnt(self.rates[:, inputs], self.most[inputs])


class Seen:
    """Rates as they are observed, and when to learn from them.

    That is after 1, 2, 4, 8 ... ticks, and, once the window is full, after each window.

    Attributes:
        workload: As last learnt; None: nothing is learnt.
    """

    def __init__(self, known: Learnt | None) -> None:
        self.workload = known
        self._rates: deque[Floats] = deque([] if known is None else known.rates, WINDOW)
        self._ticks, self._due = 0, 1

    @property
    def left(self) -> int:
        """Ticks until the next time, at least 1."""
        return WINDOW if self.workload is None else self._due - self._ticks

    def add(self, rates: Floats) -> bool:
        """Observe a tick's rates; returns whether the workload is new."""
        if self.workload is None:
            return False
        self._rates.append(rates)
        self._ticks += 1
        if self._ticks < self._due:
            return False
        self._due += min(self._due, WINDOW)
        self.workload = Learnt(np.array(self._rates), self.workload.most)
        return True
