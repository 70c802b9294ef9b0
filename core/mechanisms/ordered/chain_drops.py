"""Drop plans of FIT planners for a chain of operators."""

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.control import Control
from adapt.core.fit.network.names import DropPlanner, OperatorKind
from adapt.core.fit.network.network import Input, Network, Node, Operator, Output
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.fit.planners.workload import Observed
from adapt.core.fit.registry import PlannerOptions
from adapt.core.ordered.replay.shedding import OfferedWork

_FREE_S = 1e-12
"""Cost of an operator without one."""


def kept_shares(planner: DropPlanner, work: OfferedWork) -> Floats:
    """The share of rows that a planner keeps in each tick.

    By the rates of the tick before; shape (ticks,). The workers are one node, all outputs are worth the same, and
    tables cover the highest rates of the stream. What the plan drops between operators is dropped at ingress too, where
    it costs least.

    Raises:
        UsageError: the planner cannot plan for this chain.
    """
    network = _network(work)
    settings = SheddingSettings(tick_us=max(1, round(work.tick_s * 1e6)))
    rates = work.rates[:, None]
    highest = np.maximum(rates.max(axis=0), 1.0)
    options = PlannerOptions(settings.headroom, settings.epsilon, highest, Observed(rates))
    control = Control(network, planner, settings, options, lambda: 0.0)
    control.announce(rates)
    return np.array([float(np.prod(control.decide(each).keeps)) for each in rates])


def _network(work: OfferedWork) -> Network:
    """One node, one input, and an operator after the other."""
    names = [f"operator {number}" for number in range(len(work.names))]
    sources = ["rows", *names]
    operators = [
        Operator(name, "workers", OperatorKind.MAP, (source,), max(float(cost), _FREE_S), max(float(gain), _FREE_S))
        for name, source, cost, gain in zip(names, sources, work.costs_s, work.selectivities, strict=False)
    ]
    return Network(
        (Node("workers", work.capacity),), (Input("rows"),), tuple(operators), (Output("output", names[-1]),)
    )
