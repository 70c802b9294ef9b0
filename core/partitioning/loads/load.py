"""Loads of keys: functions of counts, measured columns, sums."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError


class ResourceFunction(StrEnum):
    """Beta: the load of a key by its count.

    Source: partitioning functions, sections 3.1 and 4.4.
    """

    CONSTANT = "C"
    LINEAR = "L"
    QUADRATIC = "Q"

    def costs(self, counts: ArrayLike) -> Floats:
        """The cost of each count, same shape.

        A constant function costs 1 even for a count of 0: the window over a key's last tuples stays in state when the
        key no longer occurs.
        """
        values = np.asarray(counts, dtype=np.float64)
        if self is ResourceFunction.CONSTANT:
            return np.ones_like(values)
        return values * values if self is ResourceFunction.QUADRATIC else values


@dataclass(frozen=True, slots=True)
class Growth:
    """Beta of another form: n^p, n log n, or either capped.

    Source: partitioning functions, section 3.1: beta depends on the processing.
    """

    power: float = 1.0  # p, above 0
    logarithm: bool = False  # whether n^p is multiplied by log2(1 + n), which is 1 for a single row
    most: float = math.inf  # the cap; infinite without one

    def costs(self, counts: ArrayLike) -> Floats:
        """The cost of each count, same shape."""
        values = np.asarray(counts, dtype=np.float64)
        grown = values**self.power * (np.log2(1 + values) if self.logarithm else 1.0)
        return np.asarray(np.minimum(grown, self.most))


CountFunction: TypeAlias = ResourceFunction | Growth
"""A load by count alone; it never falls as the count grows."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured load: the sum of a column per key."""

    source: str


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum of loads, such as those of a region's operators."""

    terms: tuple[tuple[float, CountFunction | Measured], ...]  # each load with its factor, above 0


Load: TypeAlias = CountFunction | Measured | Sum
"""The load of a key on its channel."""


def _not_measured(source: str) -> ArrayLike:
    raise UsageError(f"column {source!r} was not measured")


def load_of(load: Load, counts: ArrayLike, column: Callable[[str], ArrayLike] = _not_measured) -> Floats:
    """The load of keys by their counts and columns; same shape.

    Args:
        column: The values of these keys in a measured column.
    """
    if isinstance(load, Sum):
        return np.asarray(sum(factor * load_of(term, counts, column) for factor, term in load.terms))
    return np.asarray(column(load.source), np.float64) if isinstance(load, Measured) else load.costs(counts)


def sources_of(load: Load) -> tuple[str, ...]:
    """The measured columns in a load, each once."""
    terms = [term for _, term in load.terms] if isinstance(load, Sum) else [load]
    return tuple(dict.fromkeys(term.source for term in terms if isinstance(term, Measured)))


def by_count(load: Load) -> CountFunction | Sum:
    """The load without its measured columns; linear if nothing else is left."""
    if isinstance(load, Measured):
        return ResourceFunction.LINEAR
    if not isinstance(load, Sum):
        return load
    terms = tuple((factor, term) for factor, term in load.terms if not isinstance(term, Measured))
    return Sum(terms) if terms else ResourceFunction.LINEAR


def is_additive(load: Load) -> bool:
    """Whether sums of counts and columns give the load of several keys."""
    if isinstance(load, Sum):
        return all(is_additive(term) for _, term in load.terms)
    return load is ResourceFunction.LINEAR or isinstance(load, Measured)


def steepness(load: Load) -> float:
    """How fast a load grows with the count: its power, roughly.

    A capped load counts as flat, a measured one as between linear and quadratic, a sum as its steepest term.
    """
    match load:
        case Sum(terms):
            return max(steepness(term) for _, term in terms)
        case Growth(power, logarithm, most):
            return (power + 0.1 * logarithm) if most == math.inf else 0.0
        case Measured():
            return 1.5
    return float("CLQ".index(load))
