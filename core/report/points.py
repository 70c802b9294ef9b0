"""Fewer points for a chart, without hiding a peak."""

from collections.abc import Iterable, Sequence
from math import isfinite, log10
from typing import TypeAlias, TypeGuard

from adapt.core.table import Cell

Real: TypeAlias = int | float


def is_real(cell: Cell) -> TypeGuard[Real]:
    """Whether the cell is a finite number, and so can be drawn."""
    return isinstance(cell, (int, float)) and not isinstance(cell, bool) and isfinite(cell)


def highest_of_neighbours(cells: Sequence[Cell], size: int) -> list[Real | None]:
    """The highest finite number in every `size` neighbours; null where there is none."""
    bins = (cells[start : start + size] for start in range(0, len(cells), size))
    return [max(filter(is_real, held), default=None) for held in bins]


def bin_size(count: int, most: int) -> int:
    """How many neighbours become one point so that at most `most` are left; 1 when all fit."""
    return max(1, -(-count // most))


def log_spaced(xs: Iterable[Real], most: int) -> list[int]:
    """Positions of at most about `most` ascending positive numbers, evenly spread over their logarithm."""
    kept: list[int] = []
    numbers = list(xs)
    if not numbers:
        return kept
    span = max(log10(numbers[-1] / numbers[0]), 1e-9)
    last_cell = -1
    for at, x in enumerate(numbers):
        cell = int(log10(x / numbers[0]) / span * (most - 1))
        if cell > last_cell:
            kept.append(at)
            last_cell = cell
    return kept
