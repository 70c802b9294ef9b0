"""Networks of the paper, and reconstructions of lost ones."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Input, Network, Node, Operator, Output

PAIRS: tuple[tuple[float, float], ...] = ((48, 48), (64, 32), (72, 24), (80, 16), (88, 8))
"""Costs of the two chains of Figure 9, milliseconds; only the second pair is given, the others are reconstructions."""

SHARED_MS, BRANCHES_MS = 8.0, 88.0
"""Costs of the tree of Figure 13, milliseconds: the shared operator, and all branches together."""


class Reading(StrEnum):
    """Readings of the costs in Figure 9."""

    PARALLEL = "parallel"
    """A chain costs the same on both servers: imbalance is between the chains."""

    CROSSED = "crossed"
    """An operator that is expensive on one server is cheap on the other."""


def chains(costs_ms: Sequence[Sequence[float]], weights: Sequence[float] = ()) -> Network:
    """A chain per row of costs, an operator per column.

    Each operator of a chain is on its own server.
    """
    servers = "ABCDEFGH"[: len(costs_ms[0])]
    operators = [
        _piece(f"{servers[at]}{row}", servers[at], f"{servers[at - 1]}{row}" if at else f"in{row}", cost)
        for row, along in enumerate(costs_ms)
        for at, cost in enumerate(along)
    ]
    return Network(
        tuple(map(Node, servers)),
        tuple(Input(f"in{row}") for row in range(len(costs_ms))),
        tuple(operators),
        tuple(
            Output(f"out{row}", f"{servers[-1]}{row}", weight)
            for row, weight in enumerate(weights or [1.0] * len(costs_ms))
        ),
    )


def two_servers(reading: str, heavy_ms: float, light_ms: float, inputs: int = 2) -> Network:
    """Figure 9, by one of its readings.

    With more inputs, costs are lower in proportion (section 8.2.4).
    """
    heavy, light = 2 * heavy_ms / inputs, 2 * light_ms / inputs
    pair = {
        Reading.PARALLEL: [(heavy, heavy), (light, light)],
        Reading.CROSSED: [(heavy, light), (light, heavy)],
    }[Reading(reading)]
    return chains(pair * (inputs // 2))


def two_chains(a0: float, b0: float, a1: float, b1: float, selectivity: float = 1.0) -> Network:
    """Two chains from server A to B, costs in milliseconds.

    The last operator of the first has a selectivity.
    """
    network = chains([(a0, b0), (a1, b1)])
    operators = [
        _piece(each.name, each.node, each.inputs[0], 1000 * each.cost, selectivity) if each.name == "B0" else each
        for each in network.operators
    ]
    return Network(network.nodes, network.inputs, tuple(operators), network.outputs)


def fan_out(branches: int) -> Network:
    """Figure 13: a shared operator and branches on one server.

    The costs of the branches rise linearly.

    The paper does not give its costs. Equal branches could all be represented by one.
    """
    unit = BRANCHES_MS / (branches * (branches + 1) / 2)
    return Network(
        (Node("A"),),
        (Input("in"),),
        (
            _piece("shared", "A", "in", SHARED_MS),
            *(_piece(f"branch{at}", "A", "shared", unit * (at + 1)) for at in range(branches)),
        ),
        tuple(Output(f"out{at}", f"branch{at}") for at in range(branches)),
    )


def figure_1() -> Network:
    """Costs as Table 1 implies them, in seconds; selectivities 1."""
    return chains([(1000, 3000), (2000, 1000)])


def figure_7() -> Network:
    """A root and two branches on one server."""
    return Network(
        (Node("A"),),
        (Input("in"),),
        (
            _piece("root", "A", "in", 1000),
            _piece("top", "A", "root", 2000),
            _piece("bottom", "A", "root", 5000),
        ),
        (Output("upper", "top"), Output("lower", "bottom")),
    )


def diamond() -> Network:
    """Beyond the paper: a split whose branches join again, on two servers."""
    return Network(
        (Node("A"), Node("B")),
        (Input("in"),),
        (
            _piece("a", "A", "in", 1000),
            _piece("b", "A", "a", 2000, 0.5),
            _piece("c", "B", "a", 4000, 0.5),
            Operator("u", "B", OperatorKind.UNION, ("b", "c"), 1.0),
        ),
        (Output("out", "u"),),
    )


NETWORKS: Mapping[str, Callable[..., Network]] = {each.__name__: each for each in (two_servers, two_chains, fan_out)}
"""Networks by the names that experiments use."""


def _piece(name: str, node: str, source: str, cost_ms: float, selectivity: float = 1.0) -> Operator:
    """A delay operator, the paper's building block of queries."""
    return Operator(name, node, OperatorKind.DELAY, (source,), cost_ms / 1000, selectivity)
