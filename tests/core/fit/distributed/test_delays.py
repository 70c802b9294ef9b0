"""D-FIT with late messages: no node is overloaded, and once they have arrived, plans are those without delay."""

import numpy as np
import pytest

from adapt.core.fit.distributed.cuts import DFitCuts
from adapt.core.fit.distributed.distributed import DFit
from adapt.core.fit.distributed.messages import Topic
from adapt.core.fit.network.settings import Delivery
from adapt.core.fit.planners.program import Program
from adapt.core.fit.tables.rows import Spacing
from tests.core.fit.networks import SHAPES, random_network
from tests.tiers import SOAK

HISTORIES = 600 if SOAK else 12
DELAY_S = 0.4


def tables(network, delay_s=None):
    program = Program.from_network(network)
    return DFit(program, np.full(program.inputs, 4.0), Spacing(0.3, max_rows=3_000), Delivery(delay_s))


def cuts(network, delay_s=None):
    return DFitCuts(Program.from_network(network), Delivery(delay_s))


def network_of(seed):
    return random_network(seed, SHAPES[seed % 4], nodes=2 + seed % 3, inputs=2, size=6)


def planned(nodes, rates):
    """The plan of one tick, which overloads nothing."""
    wiring, plans = nodes.program.wiring, nodes.plan(rates[None])
    flows = wiring.flows(rates[None], plans.keeps)
    assert ((plans.keeps >= 0) & (plans.keeps <= 1)).all()
    assert (flows @ wiring.use.T <= nodes.program.limits[: nodes.program.resources] * (1 + 1e-9) + 1e-12).all()
    return plans


def test_late_rates_that_take_no_time_are_not_late() -> None:
    for seed in range(60 if SOAK else 3):
        nodes, steady = tables(network_of(seed), 0.0), tables(network_of(seed))
        nodes.settle()
        steady.settle()
        rates = np.random.default_rng(seed).random((20, 2)) * 4
        one, other = nodes.plan(rates), steady.plan(rates)
        assert np.array_equal(one.keeps, other.keeps), seed
        assert np.array_equal(one.ids, other.ids), seed
        assert nodes.exchange.traffic() == steady.exchange.traffic(), seed


@pytest.mark.parametrize("made", [tables, cuts])
def test_no_node_is_overloaded_and_afterwards_plans_are_those_without_delay(made) -> None:
    late = 0
    for seed in range(HISTORIES):
        random = np.random.default_rng(seed)
        nodes, safe = made(network_of(seed), DELAY_S), made(network_of(seed))
        safe.settle()
        rates = random.random(2) * 4
        for _ in range(12):
            if random.random() < 0.5:
                rates = random.random(2) * 4
            late += bool(planned(nodes, rates).scores[0] < planned(safe, rates).scores[0] * (1 - 1e-6))
            nodes.settle(nodes.exchange.now + random.exponential(0.4))
        for _ in range(30):  # every plan may find a cut that a child has not sent yet
            nodes.settle()
            planned(nodes, rates)
        nodes.settle()
        assert planned(nodes, rates).scores == pytest.approx(planned(safe, rates).scores, rel=1e-9), seed
    assert late  # delays cost something


def test_rates_of_other_nodes_travel_as_messages() -> None:
    seen = set()
    for seed in range(4):
        nodes = tables(network_of(seed), 2.0)
        nodes.settle()
        before = nodes.exchange.now
        planned(nodes, np.array([3.0, 3.0]))
        sent = {channel: sent for channel, sent in nodes.exchange.traffic().items() if channel.topic is Topic.RATES}
        assert {channel: each.messages for channel, each in sent.items()} == dict.fromkeys(sent, 1)
        assert {(channel.sender, channel.receiver) for channel in sent} == {
            (other, node) for node, member in nodes.members.items() for other in member.watched
        }
        assert nodes.stale == bool(sent)
        nodes.settle()
        assert nodes.exchange.now == before + 2.0 * bool(sent)
        seen |= set(sent)
    assert seen
