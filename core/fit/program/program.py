"""The linear program behind a network: how much to keep on each arc where dropping can pay."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.wiring import Indices, Wiring


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Maximise weights . f subject to rows . f <= limits, 0 <= f, and f[v] <= rate[input_of[v]] on arcs of inputs.

    The variables are flows that are kept, in tuples/s, on the arcs where dropping can pay: those of inputs, and those
    of operators with several consumers. What an arc of an operator keeps is at most what the operator gives, one row
    for each. Elsewhere flows follow. Rates stand in upper bounds of variables and nowhere else, so that the best
    score is a concave function of them, monotone and linear in pieces, whose dual polyhedron they do not move.

    For a split this is the paper's program with its prefix variables times rates; where branches meet again it goes
    on where the paper's stops.

    Attributes:
        drop_arcs: The arc of each variable; shape (variables,).
        input_of: The input that bounds a variable; -1, none does. Shape (variables,).
        flow: What flows on each arc for a unit of each variable; shape (arcs, variables).
        rows: One for each resource, then one for each variable that no input bounds; shape (rows, variables).
        limits: Right-hand sides: of resources, then 0; shape (rows,).
        weights: Score of a unit of each variable; shape (variables,).

    Source: FIT, section 3, Eqs. 1 to 11.
    """

    wiring: Wiring
    drop_arcs: Indices
    input_of: Indices
    flow: Floats
    rows: Floats
    limits: Floats
    weights: Floats

    @classmethod
    def from_network(cls, network: Network, headroom: float = 0.0) -> "Program":
        """The program of a network.

        Args:
            network: Any, splits that meet again included.
            headroom: Part of each resource that is left free, in [0, 1).
        """
        wiring = Wiring.from_network(network)
        fan_out = np.bincount(wiring.source, minlength=len(network.sources))
        of_input = wiring.source < wiring.inputs
        drop_arcs = np.flatnonzero(of_input | (fan_out[wiring.source] > 1))
        flow, offered = flow_by_variable(wiring, drop_arcs)
        splits = np.flatnonzero(~of_input[drop_arcs])
        kept = np.zeros((len(splits), len(drop_arcs)))
        kept[np.arange(len(splits)), splits] = 1.0
        return cls(
            wiring=wiring,
            drop_arcs=drop_arcs,
            input_of=np.where(of_input[drop_arcs], wiring.source[drop_arcs], -1),
            flow=flow,
            rows=np.concatenate((wiring.use @ flow, kept - offered[drop_arcs[splits]])),
            limits=np.concatenate((wiring.limits * (1 - headroom), np.zeros(len(splits)))),
            weights=wiring.worth @ flow,
        )

    @property
    def inputs(self) -> int:
        """D."""
        return self.wiring.inputs

    @property
    def resources(self) -> int:
        """How many of the rows limit a node or a link."""
        return len(self.wiring.limits)

    def upper(self, rates: Floats) -> Floats:
        """Upper bounds of the variables; shape (..., inputs) to (..., variables)."""
        return np.where(self.input_of >= 0, rates[..., self.input_of], np.inf)

    def unshed(self, rates: Floats) -> Floats:
        """The variables where nothing is dropped; shape (points, inputs) to (points, variables)."""
        return self.wiring.unshed(rates)[:, self.drop_arcs]

    def feasible(self, rates: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether all that is offered can be kept, up to rounding; shape (points, inputs) to (points,)."""
        loads = self.unshed(rates) @ self.rows[: self.resources].T
        return np.asarray((loads <= self.limits[: self.resources] * (1 + ROUNDING)).all(axis=1))

    def keeps(self, rates: Floats, flows: Floats) -> Floats:
        """The share kept on every arc, 1 where nothing is offered.

        Args:
            rates: Offered, shape (points, inputs).
            flows: The variables, shape (points, variables).

        Returns:
            In [0, 1], shape (points, arcs).
        """
        every = flows @ self.flow.T
        offered = self.wiring.given(rates, every)[:, self.wiring.source[self.drop_arcs]]
        keeps = np.ones_like(every)
        share = np.divide(flows, offered, out=np.ones_like(flows), where=offered > 0)
        keeps[:, self.drop_arcs] = np.clip(share, 0.0, 1.0)
        return keeps


ROUNDING = 1e-12
"""Loads are told from limits by this part of them, and no finer."""


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """A program in units in which limits, loads and weights are near 1: what solvers and their tolerances like.

    All units are powers of two, so that nothing is rounded.

    Attributes:
        unit: Tuples/s that each variable counts in, shape (variables,).
        score: What the objective counts in.
        rows: Shape (rows, variables).
        limits: Shape (rows,).
        weights: Shape (variables,).
    """

    unit: Floats
    score: float
    rows: Floats
    limits: Floats
    weights: Floats

    @classmethod
    def from_program(cls, program: Program) -> "Scaled":
        """The scaled form; a variable counts in about the most that the resources alone allow of it."""
        resources = slice(program.resources)
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.where(
                program.rows[resources] > 0, program.limits[resources, None] / program.rows[resources], np.inf
            )
        most = most.min(axis=0, initial=np.inf)
        unit = power_of_two(np.where(np.isfinite(most), most, 1.0))
        weights = program.weights * unit
        score = float(power_of_two(np.array(weights.max(initial=0.0) or 1.0)))
        limits, rows = program.limits, program.rows * unit
        height = np.where(limits > 0, limits, np.abs(rows).max(axis=1, initial=0.0))
        height = power_of_two(np.where(height > 0, height, 1.0))
        return cls(unit, score, rows / height[:, None], limits / height, weights / score)


def power_of_two(values: Floats) -> Floats:
    return np.asarray(np.exp2(np.floor(np.log2(values))))


def flow_by_variable(wiring: Wiring, drop_arcs: Indices) -> tuple[Floats, Floats]:
    """What flows on each arc, and what is offered there by operators, for a unit of each variable.

    Args:
        drop_arcs: The arc of each variable, in rising order; where nothing comes from but variables, nothing flows.

    Returns:
        Shape (arcs, variables) each.
    """
    variable = {int(arc): at for at, arc in enumerate(drop_arcs)}
    flow = np.zeros((len(wiring.arcs), len(drop_arcs)))
    offered, given = np.zeros_like(flow), np.zeros((len(wiring.network.sources), len(drop_arcs)))
    for arc, source, target in _walk(wiring):
        offered[arc] = given[source]
        flow[arc] = offered[arc]
        if arc in variable:
            flow[arc] = 0.0
            flow[arc, variable[arc]] = 1.0
        if target >= 0:
            given[target] += wiring.gain[arc] * flow[arc]
    return flow, offered


def _walk(wiring: Wiring) -> Iterator[tuple[int, int, int]]:
    """Arcs with sources and targets, each after all that its source depends on."""
    return ((arc, int(wiring.source[arc]), int(wiring.target[arc])) for arc in range(len(wiring.arcs)))
