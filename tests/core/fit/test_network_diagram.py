"""The diagram of a network: everything is on it, nothing on top of anything else."""

from dataclasses import replace
from itertools import combinations

import pytest

from adapt.core.fit.network.network import Link
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.network_diagram import MAX_DRAWN, network_charts
from adapt.core.fit.network_tables import NetworkLoad
from adapt.core.report.svg import render_svg
from tests.core.fit.networks import SHAPES, chains, random_network


def drawn(network):
    (chart,) = network_charts(network, NetworkLoad.from_network(network).nodes())
    return chart


def parts(chart, *kinds):
    return [point for point in chart.spec["data"]["values"] if point["part"] in kinds]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_element_has_its_own_place_and_every_arc_a_line(shape: str) -> None:
    for seed in range(10):
        network = random_network(seed, shape)
        chart = drawn(network)
        boxes = parts(chart, "input", "operator", "output")
        assert len(boxes) == len(network.sources) + len(network.outputs)
        for one, other in combinations(boxes, 2):
            apart = one["x2"] <= other["x"] or other["x2"] <= one["x"] or one["y2"] <= other["y"]
            assert apart or other["y2"] <= one["y"]
        arrows = parts(chart, "arrow")
        assert len(arrows) == len(Wiring.from_network(network).arcs)
        assert all(arrow["x"] < arrow["x2"] for arrow in arrows)


def test_bars_are_as_long_as_loads_and_beyond_what_a_node_can_do_in_another_colour() -> None:
    network = chains([(0.5, 0.25), (1.0, 0.25)])
    chart = drawn(network)
    loads = NetworkLoad.from_network(network).nodes().values("load")
    for band, bar, load in zip(parts(chart, "band"), parts(chart, "load"), loads, strict=True):
        half = (band["x2"] - band["x"]) / 2
        assert bar["x2"] - bar["x"] == pytest.approx(half * min(load, 1.0))
        assert f"load {100 * load:.2f}%" in band["name"]


def test_bottlenecks_are_outlined_nodes_and_links_alike() -> None:
    network = chains([(0.5, 1.0), (1.0, 0.25)])
    network = replace(network, inputs=tuple(replace(entering, rate=2.0) for entering in network.inputs))
    load = NetworkLoad.from_network(network)
    tight = [str(row["node"]) for row in load.nodes().records() if row["price"] > 0]
    assert tight
    assert [band["name"].split(",")[0] for band in parts(drawn(network), "tight")] == tight
    assert load.sentences()[-1].startswith(f"Bottleneck: {', '.join(tight)}. 10% more capacity of ")
    linked = replace(
        network,
        operators=tuple(replace(operator, out_bytes=1.0) for operator in network.operators),
        links=(Link("A", "B", 0.25),),
    )
    assert len(parts(drawn(linked), "tight arrow")) == 2
    assert parts(drawn(linked), "tight") == []


def test_it_is_drawn_wide_and_narrow_and_not_at_all_if_too_large() -> None:
    chart = drawn(random_network(3, "dag"))
    for width in (330, 540):
        assert "<svg" in render_svg(chart.spec, width)
    large = chains([(1.0,)] * MAX_DRAWN)
    assert network_charts(large, NetworkLoad.from_network(large).nodes()) == ()
