"""Groups of nodes of which each gets tuples from one other at most."""

import pytest

from adapt.core.fit.distributed.cuts import clusters
from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Input, Network, Node, Operator, Output
from adapt.core.fit.network.wiring import Wiring
from tests.core.fit.networks import DIAMOND, FIGURE_1, SHAPES, delay, random_network

UNION = OperatorKind.UNION


def of(network):
    return clusters(Wiring.from_network(network))


def test_in_a_tree_every_node_is_alone() -> None:
    assert of(FIGURE_1) == ((0,), (1,))
    assert of(DIAMOND) == ((0,), (1,))


def test_nodes_that_share_a_child_plan_together_and_so_do_nodes_in_a_circle() -> None:
    nodes = tuple(map(Node, "ABCD"))
    shared = Network(
        nodes,
        (Input("x"), Input("y")),
        (delay("a", "A", "x", 1.0), delay("b", "B", "y", 1.0), Operator("u", "C", UNION, ("a", "b"), 1.0)),
        (Output("o", "u"),),
    )
    assert of(shared) == ((0, 1), (2,))
    circle = Network(
        nodes,
        (Input("x"),),
        (delay("a", "A", "x", 1.0), delay("b", "B", "a", 1.0), delay("c", "A", "b", 1.0), delay("d", "D", "c", 1.0)),
        (Output("o", "d"),),
    )
    assert of(circle) == ((0, 1), (3,))


def test_joining_two_parents_may_make_a_circle_which_is_joined_too() -> None:
    nodes = tuple(map(Node, "ABC"))
    network = Network(
        nodes,
        (Input("x"),),
        (delay("a", "A", "x", 1.0), delay("b", "B", "a", 1.0), Operator("u", "C", UNION, ("a", "b"), 1.0)),
        (Output("o", "u"),),
    )
    assert of(network) == ((0, 1), (2,))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_node_is_in_one_group_and_every_group_has_one_parent(shape: str) -> None:
    for seed in range(40):
        network = random_network(seed, shape, nodes=5, size=9)
        groups = of(network)
        group_of = {f"n{node}": at for at, group in enumerate(groups) for node in group}
        assert sorted(group_of) == sorted({operator.node for operator in network.operators})
        node_of = {operator.name: operator.node for operator in network.operators}
        ties = {
            (group_of[node_of[read]], group_of[operator.node])
            for operator in network.operators
            for read in operator.inputs
            if read in node_of
        }
        ties = {(one, other) for one, other in ties if one != other}
        assert all(one < other for one, other in ties)
        assert len({other for _, other in ties}) == len(ties)
