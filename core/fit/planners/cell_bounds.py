"""Proved loss of a plan table in every cell of rates."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.planners.plan_table import PlanTable
from adapt.core.fit.program.basis_pool import BasisPool
from adapt.core.fit.program.program import ROUNDING, Program

MAX_CELLS = 200_000
"""Maximum number of cells; with more, cells are made larger, and less is proved."""


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """A loss proved for all rates up to the highest."""

    most: Floats  # the highest rates, tuples/s, shape (inputs,)
    epsilon: float  # share of the best score

    def at(self, rates: Floats) -> Floats:
        """The bound at rates of shape (points, inputs), inf above the highest."""
        return np.where((rates <= self.most * (1 + ROUNDING)).all(axis=1), self.epsilon, np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class CellBounds:
    """The proved loss of a plan table, cell by cell.

    Both the best score and that of the best row at or below a point rise with the rates. So a point loses at most the
    best score at the top corner of its cell less the row's score at the bottom corner. If lines run through the rates
    of all rows, this is also what some point of the cell loses.
    """

    lines: tuple[Floats, ...]  # bottom of the cells along each input, from 0, tuples/s
    most: Floats  # top of the last cells, shape (inputs,)
    errors: Floats  # share of the best score, 0 where everything fits; shape (cells along input 0, along input 1, ..)
    overloaded: NDArray[np.bool_]  # whether some rates of a cell need drops; same shape

    @classmethod
    def from_tables(cls, program: Program, tables: Sequence[PlanTable], most: Floats) -> "CellBounds":
        """Check all cells up to the highest rates.

        Args:
            most: These rates, tuples/s, shape (inputs,).
        """
        lines = _lines(tables, most)
        shape = tuple(map(len, lines))
        bottom = _corners(lines)
        top = _corners([np.append(line[1:], end) for line, end in zip(lines, most, strict=True)])
        overloaded = np.flatnonzero(~program.feasible(top))
        free = np.where(program.free, program.weights, 0.0)
        _, scores = BasisPool(program).plan(top[overloaded])
        best = scores - program.unshed(top[overloaded]) @ free
        reached = sum((_reached(table, lines) for table in tables), np.zeros(shape)).reshape(-1)[overloaded]
        score = best + program.unshed(bottom[overloaded]) @ free
        errors = np.zeros(len(top))
        errors[overloaded] = np.where(score > 0, (best - reached) / np.where(score > 0, score, 1.0), 0.0)
        needs_drops = np.zeros(len(top), np.bool_)
        needs_drops[overloaded] = True
        return cls(lines, most, np.maximum(errors, 0.0).reshape(shape), needs_drops.reshape(shape))

    def at(self, rates: Floats) -> Floats:
        """The bounds at some rates, inf above the highest.

        Args:
            rates: Tuples/s, shape (points, inputs).
        """
        cells = [np.searchsorted(line, rates[:, axis], "right") - 1 for axis, line in enumerate(self.lines)]
        return np.where((rates <= self.most * (1 + ROUNDING)).all(axis=1), self.errors[tuple(cells)], np.inf)

    def share_above(self, epsilon: float) -> float:
        """Share of the overloaded rates that may lose more than this."""
        volume = np.ones(self.errors.shape)
        for axis, (line, end) in enumerate(zip(self.lines, self.most, strict=True)):
            width = np.diff(np.append(line, end)).reshape([-1 if other == axis else 1 for other in range(volume.ndim)])
            volume = volume * width
        whole = float(volume[self.overloaded].sum())
        return float(volume[self.errors > epsilon].sum()) / whole if whole else 0.0


def _lines(tables: Sequence[PlanTable], most: Floats) -> tuple[Floats, ...]:
    lines = []
    for axis, end in enumerate(most):
        rates = np.unique(np.concatenate([[0.0], *(table.low[:, axis] for table in tables)]))
        lines.append(rates[(rates < end) | (rates == 0)])
    while prod(map(len, lines)) > MAX_CELLS:
        longest = max(range(len(lines)), key=lambda axis: len(lines[axis]))
        lines[longest] = lines[longest][::2]
    return tuple(lines)


def _corners(lines: Sequence[Floats]) -> Floats:
    """Every combination of one rate of each input; shape (cells, inputs)."""
    return np.stack([axis.reshape(-1) for axis in np.meshgrid(*lines, indexing="ij")], axis=1)


def _reached(table: PlanTable, lines: Sequence[Floats]) -> Floats:
    """Score of the best row at or below the bottom of each cell, 0 without one."""
    scores = np.zeros([len(line) for line in lines])
    at = [np.searchsorted(line, table.low[:, axis], "left") for axis, line in enumerate(lines)]
    inside = np.all([place < len(line) for place, line in zip(at, lines, strict=True)], axis=0)
    np.maximum.at(scores, tuple(place[inside] for place in at), table.scores[inside])
    for axis in range(len(lines)):
        np.maximum.accumulate(scores, axis=axis, out=scores)
    return scores
