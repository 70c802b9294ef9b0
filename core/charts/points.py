"""Downsampling points of a chart without hiding peaks."""

from collections.abc import Iterable, Sequence
from math import isfinite, log10
from typing import Any, TypeAlias, TypeGuard

from adapt.core.table import Cell

Real: TypeAlias = int | float

MAGNITUDES = 1.3
"""Decades from which a linear scale hides most points."""

_LINE = 0.055
"""The share of a chart's height that a line of text takes."""


def is_real(cell: Cell) -> TypeGuard[Real]:
    """Whether the cell is a finite number."""
    return isinstance(cell, (int, float)) and not isinstance(cell, bool) and isfinite(cell)


def highest_of_neighbours(cells: Sequence[Cell], size: int) -> list[Real | None]:
    """The maximum of every `size` neighbors; null without finite numbers."""
    bins = (cells[start : start + size] for start in range(0, len(cells), size))
    return [max(filter(is_real, held), default=None) for held in bins]


def bin_size(count: int, most: int) -> int:
    """The neighbors per point that leave at most `most` points."""
    return max(1, -(-count // most))


def log_spaced(xs: Iterable[Real], most: int) -> list[int]:
    """Positions of about `most` ascending numbers, evenly spaced in logarithm."""
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


def set_apart(points: list[dict[str, Any]]) -> None:
    """Give each label `t` a height `at` where it overlaps no other."""
    heights = [point["y"] for point in points]
    is_log = bool(heights) and min(heights) > 0 and log10(max(heights) / min(heights)) > MAGNITUDES
    low, high = (
        (log10(min(heights)), log10(max(heights))) if is_log else (min(heights, default=0), max(heights, default=1))
    )
    taken: list[float] = []
    for point in sorted(points, key=lambda point: -float(point["y"])):
        at = ((log10(point["y"]) if is_log else point["y"]) - low) / ((high - low) or 1)
        if point["t"]:
            at = min([at, *(other - _LINE for other in taken[-1:])])
            taken.append(at)
        there = low + at * (high - low)
        point["at"] = 10**there if is_log else there
