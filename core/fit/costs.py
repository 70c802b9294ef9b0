"""Costs of operators, fitted to measured rates and utilization."""

from dataclasses import dataclass, replace

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.wiring import Wiring
from adapt.core.table import Column, Kind, Table

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
