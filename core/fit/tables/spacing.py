"""Spacing of the rates in a feasible input table."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.names import Grid, RateSteps
from adapt.core.fit.tables.rows import TooManyRows

_ROUNDING = 1e-9
"""Share of a step below which two grid lines count as one."""


@dataclass(frozen=True, slots=True, eq=False)
class GridLines:
    """The rates of each arc that a table is made of."""

    rates: tuple[Floats, ...]  # by arc, ascending from 0, tuples/s; shape (lines,) each
    widths: Floats  # the largest distance between lines of each arc, shape (arcs,)

    @classmethod
    def fixed(cls, most: Floats, steps: Floats, max_rows: int = 1_000_000) -> "GridLines":
        """Lines at equal distances, counted down from the highest rates.

        Args:
            most: The highest rates, tuples/s, shape (arcs,).
            steps: Distances, shape (arcs,). 0: only rate 0.
        """
        rates = []
        for highest, step in zip(most.tolist(), steps.tolist(), strict=True):
            count = int(np.ceil(highest / step - _ROUNDING)) if step > 0 else 0
            if count > max_rows:
                raise TooManyRows
            rates.append(np.append(0.0, (highest - step * np.arange(count))[::-1]))
        return cls(tuple(rates), steps)

    @classmethod
    def relative(cls, most: Floats, ratio: float, least: Floats, max_rows: int = 1_000_000) -> "GridLines":
        """Lines at equal ratios, from the highest rates down.

        Args:
            most: The highest rates, tuples/s, shape (arcs,).
            ratio: Distance between two lines / the upper one, in (0, 1).
            least: Rates below which no lines are needed, at least 0; shape (arcs,). inf: only rate 0.
        """
        rates = []
        for highest, low in zip(most.tolist(), least.tolist(), strict=True):
            with np.errstate(divide="ignore"):
                count = 1 + np.ceil(np.log(low / highest) / np.log1p(-ratio) - _ROUNDING) if highest > 0 else 0.0
            if low > highest:
                count = 0.0
            if count > max_rows:
                raise TooManyRows
            rates.append(np.append(0.0, highest * (1 - ratio) ** np.arange(int(count))[::-1]))
        widths = np.array([np.diff(lines).max(initial=0.0) for lines in rates])
        return cls(tuple(rates), widths)


@dataclass(frozen=True, slots=True, eq=False)
class Spacing:
    """How tables are spaced, and how large they may be."""

    epsilon: float  # distance between grid lines, as a share of an arc's highest rate, or of the upper line
    grid: Grid = Grid.SAFE  # whether rates in the feasibility triangle are omitted, and with which margin
    # of the guaranteed grid: score between grid lines, or below the lowest one; None: `epsilon` applies
    quantum: float | None = None
    max_rows: int = 1_000_000  # maximum rows of a table
    steps: RateSteps = RateSteps.FIXED  # whether lines are at equal distances or at equal ratios
    # share of its score that a row may lose to be represented by another, at each node that merges tables
    similar: float = 0.0
    sent_bytes: int | None = None  # largest table that a node of d-fit sends another; None: unlimited

    def lines(self, most: Floats, worth: Floats) -> GridLines:
        """The rates on each arc; only 0 without value.

        Args:
            most: The highest rates, tuples/s, shape (arcs,).
            worth: Value of a tuple, shape (arcs,).

        Source: FIT, sections 6.2 and 8.2.5.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            width = self.epsilon * most if self.quantum is None else self.quantum / worth
        if self.steps is RateSteps.RELATIVE:
            return GridLines.relative(most, self.epsilon, np.where(worth > 0, width, np.inf), self.max_rows)
        return GridLines.fixed(most, np.where(worth > 0, width, 0.0), self.max_rows)
