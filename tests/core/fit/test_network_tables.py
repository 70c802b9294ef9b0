"""A network as tables, against loads worked out by hand."""

import numpy as np
import pytest

from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Input, Network, Node, Operator, Output
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.network_tables import NetworkLoad
from tests.core.fit.networks import SHAPES, random_network
from tests.tiers import SOAK

MAP, UNION = OperatorKind.MAP, OperatorKind.UNION


def figure_1(*rates):
    """Two chains over two nodes, costs (1, 2) on A and (3, 1) on B."""
    costs = {"A": (1.0, 2.0), "B": (3.0, 1.0)}
    return Network(
        (Node("A"), Node("B")),
        tuple(Input(f"in{at}", rate=rate) for at, rate in enumerate(rates)),
        tuple(
            Operator(f"{node}{at}", node, MAP, (f"in{at}" if node == "A" else f"A{at}",), costs[node][at])
            for at in range(2)
            for node in "AB"
        ),
        tuple(Output(f"out{at}", f"B{at}") for at in range(2)),
    )


def test_loads_and_the_best_score_are_those_of_the_paper() -> None:
    load = NetworkLoad.from_network(figure_1(1.0, 1.0))
    assert load.nodes().values("load") == [3.0, 4.0]
    assert load.nodes().values("load_best") == pytest.approx([1.0, 1.0])
    assert load.score == pytest.approx(3 / 5)
    assert "need 400.0% of the capacity of B; the best drop plan keeps 0.6 of 2 weighted" in load.sentences()[1]
    assert [row["load"] for row in load.elements().records() if row["kind"] == "map"] == [1.0, 3.0, 2.0, 1.0]


def test_what_fits_and_what_is_not_told_are_said() -> None:
    assert "rates fit. A is the busiest, at 50.0%" in NetworkLoad.from_network(figure_1(0.1, 0.2)).sentences()[1]
    untold = NetworkLoad.from_network(figure_1(1.0, None))
    assert untold.rates.tolist() == [0.25, 0.25]
    assert untold.nodes().values("load") == [0.75, 1.0]
    assert "where B is at capacity" in untold.sentences()[1]


def test_an_element_stands_below_what_it_reads_and_goes_on_where_it_was_first_met() -> None:
    network = Network(
        (Node("A"),),
        (Input("a"), Input("b")),
        (
            Operator("both", "A", UNION, ("a", "b"), 1.0),
            Operator("left", "A", MAP, ("both",), 1.0),
            Operator("right", "A", MAP, ("both",), 1.0),
        ),
        (Output("out", "left"), Output("off", "right")),
    )
    drawn = [
        str(cell).replace("\u00a0", " ") for cell in NetworkLoad.from_network(network).elements().values("element")
    ]
    assert drawn == [
        "a",
        "└─ both",
        "   ├─ left",
        "   │  └─ out",
        "   └─ right",
        "      └─ off",
        "b",
        "└─ both …",
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_elements_of_a_node_load_it_together(shape: str) -> None:
    for seed in range(20 if SOAK else 5):
        network = random_network(seed, shape)
        load = NetworkLoad.from_network(network)
        sums = {node.name: 0.0 for node in network.nodes}
        for row in load.elements().records():
            if row["node"] is not None:
                sums[str(row["node"])] += float(row["load"] or 0)
        nodes = [row for row in load.nodes().records() if row["operators"] is not None]
        assert [row["load"] for row in nodes] == pytest.approx(list(sums.values()))
        assert len(load.elements().rows) == len(Wiring.from_network(network).arcs) + len(network.inputs) - _met_again(
            network
        )
        assert np.max(load.best_loads) <= 1 + 1e-9


def _met_again(network):
    """Arcs below an element that is met again are drawn once; two arcs from a source to one operator are one line."""
    return sum(len(operator.inputs) - len(set(operator.inputs)) for operator in network.operators)
