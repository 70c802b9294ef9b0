"""The linear program of a network: how much to keep where."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.wiring import Indices, Wiring


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The linear program: maximize weights . f within limits and rates.

    The constraints are rows . f <= limits, f >= 0, and f[v] <= rate[input_of[v]] on arcs of inputs. The variables are
    the flows kept, in tuples/s, on the arcs where dropping can pay: those of inputs, and those of operators with
    several consumers. An arc of an operator keeps at most what the operator emits, one row for each. All other flows
    follow. Rates appear only in upper bounds of variables, so the best score is a concave function of them, monotone
    and piecewise linear, and they do not change its dual polyhedron.

    For a split this is the paper's program with its prefix variables multiplied by rates; it also covers branches that
    meet again, which the paper does not.

    Source: FIT, section 3, Eqs. 1 to 11.
    """

    wiring: Wiring
    drop_arcs: Indices  # the arc of each variable; shape (variables,)
    input_of: Indices  # the input that bounds a variable, -1 if none does; shape (variables,)
    flow: Floats  # flow on each arc per unit of each variable; shape (arcs, variables)
    rows: Floats  # one per resource, then one per variable that no input bounds; shape (rows, variables)
    limits: Floats  # right-hand sides: of resources, then 0; shape (rows,)
    weights: Floats  # score per unit of each variable; shape (variables,)

    @classmethod
    def from_network(cls, network: Network, headroom: float = 0.0) -> "Program":
        """The program of a network.

        Args:
            network: Any, including splits that meet again.
            headroom: Share of each resource to leave free, in [0, 1).
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
        """Number of inputs, D."""
        return self.wiring.inputs

    @property
    def resources(self) -> int:
        """Number of rows that limit a node or a link."""
        return len(self.wiring.limits)

    @property
    def free(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which variables lead straight from inputs to outputs.

        Drops save nothing there. Shape (variables,).
        """
        return np.asarray((self.input_of >= 0) & (self.wiring.target[self.drop_arcs] < 0))

    def upper(self, rates: Floats) -> Floats:
        """Upper bounds of the variables; shape (..., inputs) to (..., variables)."""
        return np.where(self.input_of >= 0, rates[..., self.input_of], np.inf)

    def unshed(self, rates: Floats) -> Floats:
        """The variables without drops; shape (points, inputs) to (points, variables)."""
        return self.wiring.unshed(rates)[:, self.drop_arcs]

    def feasible(self, rates: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether everything fits, up to rounding; shape (points, inputs) to (points,)."""
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
"""Relative tolerance when loads are compared with limits."""


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """A program in units that bring limits, loads and weights near 1.

    All units are powers of two, so nothing is rounded.
    """

    unit: Floats  # Tuples/s per unit of each variable, shape (variables,)
    score: float  # unit of the objective
    rows: Floats  # shape (rows, variables)
    limits: Floats  # shape (rows,)
    weights: Floats  # shape (variables,)

    @classmethod
    def from_program(cls, program: Program) -> "Scaled":
        """The scaled form of a program.

        A variable's unit is near the highest flow that resources allow.
        """
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
    """Flow and offered flow on each arc per unit of each variable.

    Args:
        drop_arcs: The arc of each variable, ascending; sources without a variable upstream emit nothing.

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
    """Arcs with sources and targets, in topological order."""
    return ((arc, int(wiring.source[arc]), int(wiring.target[arc])) for arc in range(len(wiring.arcs)))


_ALIKE = 1e-12
"""Relative difference up to which inputs count as alike."""


@dataclass(frozen=True, slots=True, eq=False)
class AlikeInputs:
    """The inputs of a program by set of alike ones.

    Tuples of alike inputs load every node and link and score the same, up to a factor, on each of their arcs. So the
    best score depends only on the sum of their rates times factors: what any plan keeps of them is as well kept as the
    same share of each.
    """

    inputs: Indices  # numbers of the inputs with variables, shape (inputs,)
    first: Indices  # number of the first input of each set, ascending, shape (sets,)
    set_of: Indices  # the set of each input, shape (inputs,)
    factor: Floats  # tuples of the first input of the set that one tuple is like, shape (inputs,)
    arcs: tuple[Indices, ...]  # the arcs of each input, those that are alike at the same place; by input

    @classmethod
    def from_program(cls, program: Program) -> "AlikeInputs":
        """The alike inputs of a program."""
        scaled = Scaled.from_program(program)
        columns = (np.concatenate((scaled.rows, scaled.weights[None])) / scaled.unit).T
        inputs = np.unique(program.input_of[program.input_of >= 0])
        sets: dict[bytes, int] = {}
        set_of, sizes = np.zeros(len(inputs), np.int64), np.ones(len(inputs))
        first: list[int] = []
        arcs: list[Indices] = []
        for at, entering in enumerate(inputs):
            variables = np.flatnonzero(program.input_of == entering)
            mine = columns[variables]
            sizes[at] = np.abs(mine).max() or 1.0
            rounded = np.round(mine / sizes[at] / _ALIKE) + 0.0
            by_size = np.lexsort(rounded.T)
            arcs.append(program.drop_arcs[variables[by_size]])
            key = rounded[by_size].tobytes()
            if key not in sets:
                sets[key] = len(first)
                first.append(at)
            set_of[at] = sets[key]
        order = np.array(first, np.int64)
        return cls(inputs, inputs[order], set_of, sizes / sizes[order[set_of]], tuple(arcs))
