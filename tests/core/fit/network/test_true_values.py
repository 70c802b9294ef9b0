"""True values over time: drawn, or from a file."""

import numpy as np
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Input, Network, Node, Operator, Output
from adapt.core.fit.network.network_file import read_true
from adapt.core.fit.network.true_values import Drawn, Given

NETWORK = Network(
    (Node("A"),),
    (Input("in"),),
    (
        Operator("keep", "A", OperatorKind.FILTER, ("in",), 0.5, 0.9),
        Operator("both", "A", OperatorKind.UNION, ("keep",), 0.25),
        Operator("split", "A", OperatorKind.MAP, ("both",), 1.0, 2.0),
    ),
    (Output("out", "split"),),
)
TICKS = np.arange(400) * 1_000_000


def factors(drawn):
    values = drawn.over(NETWORK, TICKS)
    return values, values.costs / [0.5, 0.25, 1.0], values.selectivities / [0.9, 1.0, 2.0]


@pytest.mark.parametrize("kind", ["drift", "jump"])
def test_drawn_values_start_as_in_the_network_and_stay_within_their_ratio(kind) -> None:
    for seed in range(20):
        values, costs, selectivities = factors(Drawn(**{kind: 0.5}, seed=seed))
        assert costs[0] == pytest.approx(1.0, abs=0.02)
        both = np.concatenate((costs, selectivities), axis=1)
        assert both.max() <= 1.5 + 1e-9
        assert both.min() >= 1 / 1.5 - 1e-9
        assert (selectivities[:, 1] == 1).all(), "a union passes every tuple on"
        assert values.selectivities[:, 0].max() <= 1
        steps = np.abs(np.diff(np.log(costs), axis=0)).max(axis=1)
        if kind == "jump":
            assert np.flatnonzero(steps).tolist() == [40 * leg - 1 for leg in range(1, 10)]
        else:
            assert steps.max() <= 2 * np.log(1.5) / 40 + 1e-9


def test_noise_fluctuates_around_the_values_as_far_as_it_says() -> None:
    values, costs, _ = factors(Drawn(noise=0.1, seed=3))
    assert (values.mean_costs == [0.5, 0.25, 1.0]).all()
    assert costs.mean() == pytest.approx(1.0, abs=4 * 0.1 / np.sqrt(1200))
    assert costs.std() == pytest.approx(0.1, rel=0.1)


def test_what_is_drawn_is_read_from_its_text_or_refused() -> None:
    assert Drawn.from_text("drift:0.5,noise:0.1@7") == Drawn(drift=0.5, noise=0.1, seed=7)
    assert Drawn.from_text("jump:2") == Drawn(jump=2.0)
    assert Drawn.from_text("true.toml") is None
    for text in ("drift:x", "drift:0@1", "drift:0.5,jmp:1@1", "drift:0.5@-1", "drift:0.5@x", "drift:0.5,drift:0.6"):
        with pytest.raises(UsageError, match="true values are a file, or drift:RATIO"):
            Drawn.from_text(text)


def test_a_file_changes_values_at_once_or_along_a_line() -> None:
    text = """
    [[change]]
    at = "100s"
    operator = "split"
    selectivity = 4.0
    over = "100s"
    [[change]]
    at = "50s"
    operator = "keep"
    cost = 2.0
    """
    values = read_true(text, NETWORK).over(NETWORK, TICKS)
    assert values.costs[[0, 49, 50, 399], 0].tolist() == [0.5, 0.5, 2.0, 2.0]
    assert values.selectivities[[100, 125, 150, 200, 300], 2].tolist() == [2.0, 2.5, 3.0, 4.0, 4.0]
    assert (values.costs[:, 1:] == [0.25, 1.0]).all()
    stretches = list(values.constant())
    assert [stretch.stop - stretch.start for stretch, _ in stretches][:2] == [50, 51]
    assert sum(stretch.stop - stretch.start for stretch, _ in stretches) == len(TICKS)
    assert stretches[1][1].network.operators[0].cost == 2.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("change = 3", "change must be a list"),
        ("[[change]]\nat = '1s'\noperator = 'kep'\ncost = 1.0", "did you mean 'keep'"),
        ("[[change]]\nat = '1s'\noperator = 'keep'", "change 1 changes nothing"),
        ("[[change]]\nat = '1s'\noperator = 'keep'\nselectivity = 1.5", "at most 1"),
        ("[[change]]\nat = '1s'\noperator = 'keep'\ncost = -1.0", "at least 0"),
        ("[[change]]\nat = 'soon'\noperator = 'keep'\ncost = 1.0", "change 1: at"),
        ("[[change]]\noperator = 'keep'\ncost = 1.0", "has no at"),
        ("[[change]]\nat = '1s'\noperator = 'keep'\ncost = 0.0\nselectivity = 0.0", "does nothing"),
        ("[[changes]]\nat = '1s'", "unknown field"),
        ("noise = -0.1", "at least 0"),
        ("noise = ", "not valid TOML"),
    ],
)
def test_mistakes_in_the_file_are_named(text, said) -> None:
    with pytest.raises(BadInput, match=said):
        read_true(text, NETWORK)


def test_given_values_are_those_of_the_network_at_its_scale() -> None:
    values = Given(1.5).over(NETWORK, TICKS[:3])
    assert values.costs.tolist() == [[0.75, 0.375, 1.5]] * 3
    assert values.wiring(0) is values.wiring(2)
