"""A query network as tables, and its operators' costs fitted."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput
from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.network.network import Input, Network, Operator, Output
from adapt.core.fit.network.wiring import Wiring, doubts
from adapt.core.fit.registry import planner_of
from adapt.core.fit.rules import MORE, Rules
from adapt.core.phrases import counted
from adapt.core.table import Cell, Column, Kind, Table

_BLANK = "\u00a0"
"""A space that neither a page nor a terminal collapses."""

ELEMENT_COLUMNS = (
    Column("element", about="indented below what it reads; … repeats one from above"),
    Column("kind"),
    Column("node"),
    Column("cost", Kind.SECONDS, "s", "CPU per arriving tuple"),
    Column("selectivity", Kind.NUMBER, about="tuples out / tuples in; of a join, per pair"),
    Column("weight", Kind.NUMBER, about="value of a tuple at an output"),
    Column("arriving", Kind.NUMBER, "tuples/s", "without drops"),
    Column("load", Kind.SHARE, about="of its node's capacity"),
)

NODE_COLUMNS = (
    Column("node", about="or link"),
    Column("capacity", Kind.NUMBER, "per s", "CPU seconds, or bytes of a link"),
    Column("operators", Kind.COUNT),
    Column("load", Kind.SHARE, about="without drops"),
    Column("load_best", Kind.SHARE, about="with the best drop plan"),
    Column("price", Kind.NUMBER, about="score per unit of capacity; above 0 at a bottleneck"),
    Column("gain", Kind.SHARE, about=f"of the best score, by {MORE:.0%} more capacity"),
)


@dataclass(frozen=True, slots=True, eq=False)
class NetworkLoad:
    """The load of a network at given rates."""

    wiring: Wiring
    rates: Floats  # Tuples/s of each input, shape (inputs,)
    are_given: bool  # whether the network gives its rates; if not, they are equal and just fit
    flows: Floats  # on each arc without drops, shape (arcs,)
    loads: Floats  # utilization of nodes and links without drops; shape (resources,)
    best_loads: Floats  # the same with the best drop plan
    score: float  # of the best drop plan, weighted tuples/s
    rules: Rules  # of these rates; of slightly higher ones where they just fit

    @classmethod
    def from_network(cls, network: Network) -> "NetworkLoad":
        """The load at the inputs' rates, or at equal rates.

        Rates are equal, and just fit, if the network lacks the rate of any input.
        """
        wiring = Wiring.from_network(network)
        known = [entering.rate for entering in network.inputs]
        are_given = None not in known
        rates = np.array([rate if are_given and rate is not None else 1.0 for rate in known])
        if not are_given:
            fullest = float(wiring.uses(wiring.unshed(rates[None]))[0].max(initial=0.0))
            rates = rates / fullest if fullest > 0 else rates
        flows = wiring.unshed(rates[None])
        best = planner_of(DropPlanner.EXACT, network).plan(rates[None])
        kept = wiring.flows(rates[None], best.keeps)
        loads, best_loads = wiring.uses(flows)[0], wiring.uses(kept)[0]
        rules = Rules.from_network(network, rates[None] * (1 if are_given else 1 + 1e-6), 0.0, 0)
        return cls(wiring, rates, are_given, flows[0], loads, best_loads, float(best.scores[0]), rules)

    def sentences(self) -> list[str]:
        """A summary of the load and the best possible output."""
        network = self.wiring.network
        kinds = ("node", "input", "operator", "output")
        said = [f"{', '.join(counted(len(getattr(network, f'{kind}s')), kind) for kind in kinds)}."]
        busiest = int(np.argmax(self.loads))
        name, load = self.wiring.resources[busiest], self.loads[busiest]
        unshed = float(self.flows @ self.wiring.worth)
        if not self.are_given:
            said.append(
                f"No input rates are given; loads are at equal rates that just fit,"
                f" {_figures(self.rates[0])} tuples/s each, where {name} is at capacity."
                if load > 0
                else "No operator has a cost, so nothing ever needs to be dropped."
            )
        elif load > 1 + 1e-9:
            said.append(
                f"Shed load: the given input rates need {load:.1%} of the capacity of {name}; the best drop plan keeps"
                f" {_figures(self.score)} of {_figures(unshed)} weighted tuples/s."
            )
        else:
            said.append(f"Nothing to do: the given input rates fit. {name} is the busiest, at {load:.1%}.")
        if self.are_given:
            said += [f"Warning: {doubt}." for doubt in doubts(self.wiring, self.rates[None])]
        if self.rules.gains.any():
            tight = [name for name, price in zip(self.wiring.resources, self._prices(), strict=True) if price > 0]
            best = int(np.argmax(self.rules.gains))
            said.append(
                f"Bottleneck: {', '.join(tight)}. {MORE:.0%} more capacity of {self.wiring.resources[best]} is worth"
                f" {self.rules.gains[best]:.1%} of the score."
            )
        return said

    def elements(self) -> Table:
        """The elements as a tree that expands each element once."""
        loads = self.wiring.use * self.flows
        rows = [
            (f"{drawn}{element.name}", *self._cells(element, loads))
            if first
            else (f"{drawn}{element.name} …", *[None] * (len(ELEMENT_COLUMNS) - 1))
            for drawn, element, first in _tree(self.wiring.network)
        ]
        return Table.from_rows("The network", ELEMENT_COLUMNS, rows)

    def nodes(self) -> Table:
        """One row per node, then per link."""
        network = self.wiring.network
        on = [operator.node for operator in network.operators]
        numbers = [*(on.count(node.name) for node in network.nodes), *(None for _ in network.links)]
        limits, loads, best_loads = (map(float, each) for each in (self.wiring.limits, self.loads, self.best_loads))
        worth = (self._prices(), map(float, self.rules.gains))
        columns = zip(self.wiring.resources, limits, numbers, loads, best_loads, *worth, strict=True)
        return Table.from_rows("Load of the nodes", NODE_COLUMNS, columns)

    def _prices(self) -> list[float]:
        """Score per unit of each node and link."""
        prices = self.rules.prices()
        return [float(prices[name].sum()) if name in prices else 0.0 for name in self.wiring.resources]

    def _cells(self, element: Input | Operator | Output, loads: Floats) -> tuple[Cell, ...]:
        wiring = self.wiring
        if isinstance(element, Input):
            at = wiring.network.inputs.index(element)
            return "input", None, None, None, None, float(self.rates[at]), None
        port_of_output = isinstance(element, Output)
        mine = [
            at for at, arc in enumerate(wiring.arcs) if arc.target == element.name and (arc.port < 0) == port_of_output
        ]
        arriving = float(self.flows[mine].sum())
        if isinstance(element, Output):
            return "output", None, None, None, element.weight, arriving, None
        node = [each.name for each in wiring.network.nodes].index(element.node)
        load = float(loads[node, mine].sum() / wiring.limits[node])
        return element.kind.value, element.node, element.cost, element.selectivity, None, arriving, load


def _figures(amount: float) -> str:
    """Four significant digits, without an exponent above 1,000."""
    return f"{amount:,.0f}" if amount >= 1000 else f"{amount:.4g}"


def _tree(network: Network) -> Iterator[tuple[str, Input | Operator | Output, bool]]:
    """Elements below what they read, with their branch symbols and whether they are new."""
    readers: dict[str, list[Operator | Output]] = {source.name: [] for source in network.sources}
    for operator in network.operators:
        for name in dict.fromkeys(operator.inputs):
            readers[name].append(operator)
    for output in network.outputs:
        readers[output.source].append(output)
    seen: set[str] = set()
    stack: list[tuple[str, str, Input | Operator | Output]] = [("", "", each) for each in reversed(network.inputs)]
    while stack:
        drawn, below, element = stack.pop()
        first = isinstance(element, Output) or element.name not in seen
        yield drawn, element, first
        if isinstance(element, Output) or not first:
            continue
        seen.add(element.name)
        behind = readers[element.name]
        for at in reversed(range(len(behind))):
            corner, bar = ("└", _BLANK) if at == len(behind) - 1 else ("├", "│")
            stack.append((f"{below}{corner}─{_BLANK}", f"{below}{bar}{_BLANK * 2}", behind[at]))


_SEPARATE = 1e-6
"""Relative singular value below which costs are not separable."""

COLUMNS = (
    Column("operator"),
    Column("node"),
    Column("cost_given", Kind.SECONDS, "s", "in the network file"),
    Column("cost", Kind.SECONDS, "s", "fitted: CPU per arriving tuple"),
    Column("residual", Kind.SHARE, about="of its node: measured less fitted utilization, root mean square"),
    Column("separate", about="whether rates vary enough; if not, operators of a node keep the ratio of their costs"),
)


@dataclass(frozen=True, slots=True, eq=False)
class FittedCosts:
    """A network with fitted costs, and how well they fit."""

    network: Network
    table: Table


def fitted_costs(network: Network, rates: Floats, utilization: Floats) -> FittedCosts:
    """Costs of operators by least squares, from utilization at known rates.

    Costs are at least 0. What the rates do not separate keeps the ratio of the given costs.

    Args:
        rates: Tuples/s of each input without drops, shape (times, inputs).
        utilization: Of each node, shape (times, nodes).
    """
    wiring = Wiring.from_network(network)
    flows, targets = wiring.unshed(rates), np.array([arc.target if arc.port >= 0 else "" for arc in wiring.arcs])
    costs, rows = {}, []
    for number, node in enumerate(network.nodes):
        mine = [operator for operator in network.operators if operator.node == node.name]
        if not mine:
            continue
        given = np.array([operator.cost for operator in mine])
        arriving = np.stack([flows[:, targets == operator.name].sum(axis=1) for operator in mine], axis=1)
        used = utilization[:, number] * node.capacity
        if not (arriving @ given).any() or not used.any():
            raise BadInput(f"node {node.name!r} has no utilization, or its operators no cost; costs cannot be fitted")
        factors, rank = _least_squares(arriving * given, used)
        residual = float(np.sqrt(np.mean((arriving @ (given * factors) - used) ** 2)) / node.capacity)
        separate = "yes" if rank == np.count_nonzero(given) else "no"
        for operator, factor in zip(mine, factors, strict=True):
            costs[operator.name] = operator.cost * float(factor)
            rows.append((operator.name, node.name, operator.cost, costs[operator.name], residual, separate))
    fitted = tuple(replace(operator, cost=costs[operator.name]) for operator in network.operators)
    return FittedCosts(replace(network, operators=fitted), Table.from_rows("Fitted costs", COLUMNS, rows))


def _least_squares(loads: Floats, used: Floats) -> tuple[Floats, int]:
    """Factors of the given costs that fit best, at least 0 and as equal as can be; and the rank of the loads.

    Args:
        loads: By the given costs, shape (times, operators).
        used: CPU seconds per second, shape (times,).
    """
    whole = float((loads.sum(axis=1) @ used) / (loads.sum(axis=1) @ loads.sum(axis=1)))
    free = np.ones(loads.shape[1], np.bool_)
    rank = 0
    while True:
        factors = np.where(free, whole, 0.0)
        change, _, found, _ = np.linalg.lstsq(loads[:, free], used - loads @ factors, rcond=_SEPARATE)
        rank = max(rank, int(found))
        factors[free] += change
        if (factors >= 0).all():
            return factors, rank
        free &= factors > 0
