"""The best score of a network without splits as the lowest of finitely many linear functions, all of them at once."""

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.planners.program import Program, Scaled

MOST_CROSSINGS = 200_000
"""Of hyperplanes that are looked at."""

_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class DualVertices:
    """S(r) = min over k of base[k] + slope[k] . r.

    The dual of a network without splits has a variable, a price, for each resource only. What an input is worth at
    prices is the positive part of its weight less what it uses. That is linear between the hyperplanes on which some
    input is worth 0 or some price is, so its least value lies where as many of them cross as there are prices,
    wherever the rates are.

    Attributes:
        base: Score, shape (vertices,).
        slope: Score a tuple/s, shape (vertices, inputs).
    """

    base: Floats
    slope: Floats

    @classmethod
    def from_program(cls, program: Program) -> "DualVertices | None":
        """All that are lowest for some rates, and few others; None if there are splits or too many crossings."""
        scaled = Scaled.from_program(program)
        used = (scaled.rows != 0).any(axis=1)
        rows, limits = scaled.rows[used], scaled.limits[used]
        if (program.input_of < 0).any() or comb(sum(rows.shape), len(rows)) > MOST_CROSSINGS:
            return None
        prices = _crossings(rows, scaled.weights)
        worth = np.maximum(scaled.weights - prices @ rows, 0.0)
        worth[worth < 1e-14] = 0.0
        per_input = np.zeros((len(program.input_of), program.inputs))
        per_input[np.arange(len(program.input_of)), program.input_of] = 1 / scaled.unit
        found = np.concatenate(((prices @ limits)[:, None], worth @ per_input), axis=1) * scaled.score
        kept = _undominated(found)
        return cls(kept[:, 0], kept[:, 1:])

    def __len__(self) -> int:
        return len(self.base)

    def scores(self, rates: Floats) -> Floats:
        """S at rates of shape (points, inputs); shape (points,)."""
        least = np.empty(len(rates))
        for start in range(0, len(rates), _BLOCK):
            block = slice(start, start + _BLOCK)
            least[block] = (rates[block] @ self.slope.T + self.base).min(axis=1)
        return least


def _crossings(rows: Floats, weights: Floats) -> Floats:
    """Where hyperplanes cross in points, no price below 0; shape (crossings, rows)."""
    height = len(rows)
    planes = np.concatenate((rows.T, np.eye(height)))
    sides = np.append(weights, np.zeros(height))
    chosen: NDArray[np.int64] = np.array(list(combinations(range(len(planes)), height)), dtype=np.int64)
    matrices = planes[chosen]
    crossing = np.abs(np.linalg.det(matrices)) > 1e-12 * np.prod(np.linalg.norm(matrices, axis=2), axis=1)
    prices = np.linalg.solve(matrices[crossing], sides[chosen[crossing]][:, :, None])[:, :, 0]
    size = np.abs(prices).max(axis=1, keepdims=True, initial=1.0)
    return np.asarray(np.maximum(prices[(prices >= -1e-12 * size).all(axis=1)], 0.0))


def _undominated(functions: Floats) -> Floats:
    """Linear functions of rates from 0 up without those that another is nowhere above; shape (functions, terms)."""
    size = np.abs(functions).max(axis=0, initial=0.0)
    size[size == 0] = 1.0
    _, first = np.unique(np.round(functions / size, 11), axis=0, return_index=True)
    distinct = functions[np.sort(first)]
    slack = 1e-12 * size
    kept = np.ones(len(distinct), dtype=np.bool_)
    for at, function in enumerate(distinct):
        below = (distinct <= function + slack).all(axis=1) & kept
        below[at] = False
        kept[at] = not below.any()
    return distinct[kept]
