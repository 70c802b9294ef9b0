"""Networks for tests: those of the paper, and random ones whose numbers are exact in binary."""

from dataclasses import replace

import numpy as np

from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Input, Link, Network, Node, Operator, Output

DELAY, UNION, JOIN = OperatorKind.DELAY, OperatorKind.UNION, OperatorKind.JOIN
SHAPES = ("chains", "tree", "merges", "dag")


def delay(name, node, source, cost, selectivity=1.0):
    """A piece of a query with one input."""
    return Operator(name, node, DELAY, (source,), cost, selectivity)


def chains(costs, weights=None):
    """A chain for each row of costs, an operator on each node for each column; figures 1 and 9."""
    names = "ABCDEFGH"
    operators = [
        delay(f"{names[node]}{row}", names[node], f"{names[node - 1]}{row}" if node else f"in{row}", cost)
        for row, along in enumerate(costs)
        for node, cost in enumerate(along)
    ]
    last = names[len(costs[0]) - 1]
    weights = weights or [1.0] * len(costs)
    return Network(
        tuple(Node(names[node]) for node in range(len(costs[0]))),
        tuple(Input(f"in{row}") for row in range(len(costs))),
        tuple(operators),
        tuple(Output(f"out{row}", f"{last}{row}", weight) for row, weight in enumerate(weights)),
    )


FIGURE_1 = chains([(1.0, 3.0), (2.0, 1.0)])

FIGURE_7 = Network(
    (Node("A"),),
    (Input("in"),),
    (delay("root", "A", "in", 1.0), delay("top", "A", "root", 2.0), delay("bottom", "A", "root", 5.0)),
    (Output("upper", "top"), Output("lower", "bottom")),
)

DIAMOND = Network(
    (Node("A"), Node("B")),
    (Input("in"),),
    (
        delay("a", "A", "in", 1.0),
        delay("b", "A", "a", 2.0, 0.5),
        delay("c", "B", "a", 4.0, 0.5),
        Operator("u", "B", UNION, ("b", "c"), 1.0),
    ),
    (Output("out", "u"),),
)


def random_network(seed, shape="dag", nodes=None, inputs=None, size=None):
    """One of a shape: chains (no split, no merge), tree (splits), merges (no split), dag (all, splits that meet again).

    Tuples go from nodes to nodes of the same or a higher number.
    """
    random = np.random.default_rng([seed, SHAPES.index(shape)])
    nodes = nodes or int(random.integers(1, 4))
    inputs = inputs or int(random.integers(1, 4))
    size = size or int(random.integers(1, 7))
    at = {f"in{number}": 0 for number in range(inputs)}
    unread, operators = list(at), []
    for number in range(size):
        splits = shape in ("tree", "dag")
        pool = list(at) if splits and random.random() < 0.6 else unread
        merges = shape in ("merges", "dag") and random.random() < 0.4 and len(pool) > 1
        sources = [str(source) for source in random.choice(pool, 2 if merges else 1, replace=False)]
        kind = (JOIN if random.random() < 0.5 else UNION) if merges else DELAY
        node = int(random.integers(max(at[source] for source in sources), nodes))
        operators.append(
            Operator(
                f"op{number}",
                f"n{node}",
                kind,
                tuple(sources),
                cost=float(random.integers(1, 17)) / 8,
                selectivity=1.0 if kind is UNION else float(random.choice([0.25, 0.5, 1.0, 1.5])),
                join_windows=(float(random.integers(1, 4)), float(random.integers(1, 4))) if kind is JOIN else None,
            )
        )
        unread = [source for source in unread if source not in sources] + [f"op{number}"]
        at[f"op{number}"] = node
    extra = [name for name in at if name not in unread and shape in ("tree", "dag") and random.random() < 0.2]
    return Network(
        tuple(Node(f"n{node}", float(random.choice([0.5, 1.0, 2.0]))) for node in range(nodes)),
        tuple(Input(f"in{number}") for number in range(inputs)),
        tuple(operators),
        tuple(Output(f"out {name}", name, float(random.integers(1, 4))) for name in unread + extra),
    )


def random_rates(seed, inputs, points):
    """Rates from far below to far above what networks of `random_network` can take, exact in binary."""
    random = np.random.default_rng([seed, 99])
    sizes = random.choice([0.0, 1 / 16, 0.25, 1.0, 4.0], size=(points, inputs), p=[0.1, 0.2, 0.3, 0.3, 0.1])
    return sizes * random.integers(1, 17, (points, inputs)) / 16


def any_network(seed):
    """A network of any shape, with links, selectivities, costs and weights of 0, costs in other units, node cycles."""
    random = np.random.default_rng([seed, 7])
    network = random_network(seed, SHAPES[seed % len(SHAPES)], size=int(random.integers(2, 9)))
    names = [node.name for node in network.nodes]
    unit = float(random.choice([1.0, 1.0, 1000.0]))
    operators = []
    for operator in network.operators:
        selectivity = 0.0 if random.random() < 0.08 else operator.selectivity
        cost = 0.0 if selectivity and random.random() < 0.1 else operator.cost * unit
        node = str(random.choice(names)) if random.random() < 0.1 else operator.node
        operators.append(replace(operator, selectivity=selectivity, cost=cost, node=node, out_bytes=8.0))
    ways = [(one, other) for one in names for other in names if one != other and random.random() < 0.4]
    return replace(
        network,
        inputs=tuple(replace(entering, out_bytes=8.0, node=str(random.choice(names))) for entering in network.inputs),
        operators=tuple(operators),
        outputs=tuple(replace(o, weight=0.0 if random.random() < 0.1 else o.weight) for o in network.outputs),
        links=tuple(Link(*way, float(random.choice([1.0, 4.0, 16.0])) / unit) for way in ways),
    )


def doubled(seed):
    """A tree with its first stream doubled, at another scale: input and operators named again, one input more."""
    network = random_network(seed, "tree", inputs=2, size=5)
    factor = 2.0 ** np.random.default_rng(seed).integers(-2, 3)
    again = {network.inputs[0].name: "again"}
    for operator in network.operators:
        if operator.inputs[0] in again:
            again[operator.name] = f"{operator.name} again"
    copies = (
        replace(each, name=again[each.name], inputs=(again[each.inputs[0]],), cost=each.cost * factor)
        for each in network.operators
        if each.name in again
    )
    outputs = (
        Output(f"{each.name} again", again[each.source], each.weight * factor)
        for each in network.outputs
        if each.source in again
    )
    return replace(
        network,
        inputs=(*network.inputs, Input("again")),
        operators=(*network.operators, *copies),
        outputs=(*network.outputs, *outputs),
    )
