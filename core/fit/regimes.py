"""Regimes: sets of rates where the best drop plan is linear."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.basis import Basis, BasisPool
from adapt.core.fit.planners.highs import Merged
from adapt.core.fit.planners.program import Program

MAX_REGIMES = 500
"""Maximum number of bases to look for."""

SAMPLES = 20_000
"""Random rates at which regimes are looked for, up to twice the highest of each input; as many again are mostly low."""

_LOW = 8
"""Power of evenly distributed numbers that are mostly low."""

TOLERANCE = 1e-9
"""By how much a condition may be broken, with limits scaled near 1."""

ALL, PART, NOTHING = 1, 0, -1
"""What a regime keeps of an arc."""


@dataclass(frozen=True, slots=True, eq=False)
class Regime:
    """Rates where one basis is optimal, and its plan.

    Linear functions of the rates are a constant, then a factor for each input: shape (1 + inputs,).
    """

    when: Floats  # functions that are at least 0 at these rates; shape (conditions, 1 + inputs)
    events: tuple[str, ...]  # what changes where each of them is 0
    keeps: Indices  # ALL, PART or NOTHING of each drop arc; shape (variables,)
    kept: Floats  # Tuples/s kept of arcs of which a part is; shape (variables, 1 + inputs)
    offered: Floats  # Tuples/s offered to these arcs, together with those that keep the same share; like `kept`
    prices: Floats  # score per unit of each resource, 0 where it is not a bottleneck; shape (resources,)

    @classmethod
    def from_basis(cls, program: Program, merged: Merged, basis: Basis) -> "Regime":
        """The regime of an optimal basis."""
        return _Reading(program, merged, basis).regime()

    def holds(self, rates: Floats) -> NDArray[np.bool_]:
        """Whether the plan is the best one; shape (points, inputs) to (points,)."""
        return np.asarray((_at(self.when, rates) >= -TOLERANCE).all(axis=1))

    def reach(self, rates: Floats) -> Floats:
        """The largest share of rates at which the plan is best.

        At most 1; 0 if at none. Shape (points, inputs) to (points,).
        """
        constant, slope = self.when[:, 0] + TOLERANCE, rates @ self.when[:, 1:].T
        with np.errstate(divide="ignore", invalid="ignore"):
            end = -constant / slope
        highest = np.where(slope < 0, end, 1.0).min(axis=1, initial=1.0)
        lowest = np.where(slope > 0, end, np.where((slope == 0) & (constant < 0), np.inf, 0.0)).max(axis=1, initial=0.0)
        return np.where(lowest <= highest, highest, 0.0)

    def shares(self, rates: Floats) -> Floats:
        """Share kept on each drop arc, shape (points, variables)."""
        kept, offered = _at(self.kept, rates), _at(self.offered, rates)
        part = np.clip(np.divide(kept, offered, out=np.ones_like(kept), where=offered > 0), 0.0, 1.0)
        return np.where(self.keeps == PART, part, np.where(self.keeps == ALL, 1.0, 0.0))

    def growth(self, rates: Floats) -> tuple[float, str]:
        """Growth of all rates that ends the regime, and its end.

        Args:
            rates: Rates of the regime, shape (inputs,).

        Returns:
            The factor, inf if the regime never ends; and the event.
        """
        constant, slope = self.when[:, 0], self.when[:, 1:] @ rates
        until = np.divide(-constant, slope, out=np.full(len(slope), np.inf), where=slope < 0)
        until = np.where(until > 1 + TOLERANCE, until, np.inf)
        first = int(np.argmin(until)) if len(until) else 0
        return (float(until[first]), self.events[first]) if len(until) else (np.inf, "")


def regimes_of(program: Program, rates: Floats, random: np.random.Generator) -> tuple[Regime, ...]:
    """The regimes of a program, those of most rates first.

    Args:
        rates: Known rates, tuples/s, shape (points, inputs); regimes between them are found at random ones.
    """
    most = rates.max(axis=0, initial=0.0)
    drawn = random.uniform(0, 1, (2 * SAMPLES, program.inputs))
    drawn[SAMPLES:] **= _LOW
    points = np.concatenate((rates, 2 * drawn * np.where(most > 0, most, 1.0)))
    over = ~program.feasible(points)
    known, points = int(over[: len(rates)].sum()), points[over]
    pool = BasisPool(program, MAX_REGIMES)
    pool.plan(points)
    found = [Regime.from_basis(program, pool.merged, basis) for basis in pool.known]
    holds = np.array([regime.holds(points) for regime in found]).reshape(len(found), len(points))
    order = np.lexsort((-holds.sum(axis=1), -holds[:, :known].sum(axis=1)))
    chosen, left = [], np.ones(len(points), np.bool_)
    for number in order:
        if (holds[number] & left).any():
            chosen.append(found[number])
            left &= ~holds[number]
    return tuple(chosen)


def arc_names(program: Program) -> tuple[str, ...]:
    """Names of drop arcs: those of inputs with a single arc."""
    wiring = program.wiring
    fan_out = np.bincount(wiring.source, minlength=len(wiring.network.sources))
    arcs = program.drop_arcs
    return tuple(wiring.arcs[arc].source if fan_out[wiring.source[arc]] == 1 else wiring.arcs[arc].name for arc in arcs)


def _at(functions: Floats, rates: Floats) -> Floats:
    return functions[:, 0] + rates @ functions[:, 1:].T


class _Reading:
    """Reads a basis of the presolved program as functions of the original rates."""

    def __init__(self, program: Program, merged: Merged, basis: Basis) -> None:
        self._program, self._merged, self._basis = program, merged, basis
        self._names = arc_names(program)
        self._columns = len(basis.upper)
        self._bounds = np.zeros((self._columns, 1 + program.inputs))
        bounded = merged.dimension_of >= 0
        self._bounds[bounded, 1:] = merged.height[bounded, None] * merged.rays[merged.dimension_of[bounded]]
        self._values = self._of_rates(basis.values(merged))
        self._splits = np.flatnonzero(program.input_of < 0)

    def regime(self) -> Regime:
        program, merged, basis = self._program, self._merged, self._basis
        kept, offered = self._flows()
        resources = merged.scaled.limits[: program.resources]
        unit = merged.scaled.score * resources / program.limits[: program.resources]
        when = list(self._conditions())
        return Regime(
            np.array([function for function, _ in when]).reshape(len(when), 1 + program.inputs),
            tuple(event for _, event in when),
            self._keeps(),
            kept,
            offered,
            np.maximum(basis.prices[: program.resources], 0.0) * unit,
        )

    def _of_rates(self, functions: Floats) -> Floats:
        return np.concatenate((functions[:, :1], functions[:, 1:] @ self._merged.rays), axis=1)

    def _keeps(self) -> Indices:
        basis, merged = self._basis, self._merged
        whole = basis.upper[merged.column_of]
        tight = ~np.isin(self._columns + self._program.resources + np.arange(len(self._splits)), basis.inside)
        whole[self._splits] = tight
        part = np.isin(merged.column_of, basis.inside)
        return np.where(whole, ALL, np.where(part, PART, NOTHING))

    def _flows(self) -> tuple[Floats, Floats]:
        """Kept and offered tuples/s of each drop arc."""
        program, merged = self._program, self._merged
        kept, offered = self._values[merged.column_of], self._bounds[merged.column_of]
        for variable, entering in enumerate(program.input_of):
            if entering >= 0:
                own = offered[variable, 1 + entering]
                kept[variable] /= own
                offered[variable] /= own
        for at, variable in enumerate(self._splits.tolist()):
            row, column = merged.scaled.rows[program.resources + at], merged.column_of[variable]
            offered[variable] = kept[variable] - (row @ self._values) / row[column]
            kept[variable] *= merged.unit[variable]
            offered[variable] *= merged.unit[variable]
        return kept, offered

    def _conditions(self) -> list[tuple[Floats, str]]:
        """Functions that are at least 0, and what changes where they are 0."""
        found = []
        for line, inside in zip(self._of_rates(self._basis.lines), self._basis.inside, strict=True):
            if inside < self._columns:
                arcs = " and ".join(np.array(self._names)[self._merged.column_of == inside])
                found.append((line, f"{arcs} dropped completely"))
                if self._merged.dimension_of[inside] >= 0:
                    found.append((self._bounds[inside] - line, f"{arcs} kept whole"))
            elif inside - self._columns < self._program.resources:
                name = self._program.wiring.resources[inside - self._columns]
                found.append((line, f"{name} becomes a bottleneck"))
            else:
                split = self._splits[inside - self._columns - self._program.resources]
                found.append((line, f"{self._names[split]} kept whole"))
        return [(function, event) for function, event in found if (function < 0).any()]
