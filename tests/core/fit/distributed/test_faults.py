"""D-FIT under faults: no node is ever overloaded, and once they end, plans are those without faults."""

import numpy as np
import pytest

from adapt.core.fit.distributed.distributed import DFit
from adapt.core.fit.distributed.distributed_cuts import DFitCuts
from adapt.core.fit.distributed.exchange import Transport
from adapt.core.fit.distributed.messages import Topic
from adapt.core.fit.distributed.peer import Peer
from adapt.core.fit.distributed.starting import Here
from adapt.core.fit.program.program import Program
from adapt.core.fit.tables.spacing import Spacing
from tests.core.fit.distributed.histories import ROUGH, fault, healed, made, network_of, planned
from tests.core.fit.networks import FIGURE_1
from tests.tiers import SOAK

HISTORIES = 600 if SOAK else 12


def test_without_faults_late_rates_that_take_no_time_are_not_late() -> None:
    for seed in range(60 if SOAK else 3):
        network = network_of(seed)
        program = Program.from_network(network)
        nodes, steady = made(network), DFit(program, np.full(program.inputs, 4.0), Spacing(0.3, max_rows=3_000))
        nodes.settle()
        steady.settle()
        rates = np.random.default_rng(seed).random((20, 2)) * 4
        one, other = nodes.plan(rates), steady.plan(rates)
        nodes.settle()
        assert np.array_equal(one.keeps, other.keeps), seed
        assert np.array_equal(one.ids, other.ids), seed
        assert nodes.traffic() == steady.traffic(), seed


def test_whatever_fails_no_node_is_overloaded_and_afterwards_plans_are_those_without_faults() -> None:
    crashes = lost = late = 0
    for seed in range(HISTORIES):
        random = np.random.default_rng(seed)
        network = network_of(seed)
        nodes, safe = made(network, transport=ROUGH, seed=seed), made(network)
        safe.settle()
        rates = random.random(2) * 4
        for _ in range(12):
            if random.random() < 0.5:
                rates = random.random(2) * 4
            if random.random() < 0.4:
                fault(nodes, random)
            crashes += bool(nodes.down)
            late += bool(planned(nodes, rates).scores[0] < planned(safe, rates).scores[0] * (1 - 1e-6))
            nodes.settle(nodes.now_s + random.exponential(0.4))
        healed(nodes)
        for _ in range(2):  # rates of nodes that had no table yet follow
            nodes.settle()
            planned(nodes, rates)
        nodes.settle()
        one, other = planned(nodes, rates), planned(safe, rates)
        assert one.scores == pytest.approx(other.scores, rel=1e-12), seed
        assert np.array_equal(one.keeps, other.keeps), seed
        assert nodes.epsilon == safe.epsilon
        lost += sum(traffic.lost for traffic in nodes.traffic().values())
    assert min(crashes, lost, late) > HISTORIES  # faults happened, and cost something


def test_groups_that_exchange_cuts_survive_the_same_faults_and_find_the_best_plans_again() -> None:
    crashes = lost = late = 0
    for seed in range(HISTORIES):
        random = np.random.default_rng(seed)
        program = Program.from_network(network_of(seed))
        nodes, safe = DFitCuts(program, ROUGH, seed, asks=False), DFitCuts(program)
        safe.settle()
        rates = random.random(2) * 4
        for _ in range(12):
            if random.random() < 0.5:
                rates = random.random(2) * 4
            if random.random() < 0.4:
                fault(nodes, random)
            crashes += bool(nodes.down)
            late += bool(planned(nodes, rates).scores[0] < planned(safe, rates).scores[0] * (1 - 1e-6))
            nodes.settle(nodes.now_s + random.exponential(0.4))
        healed(nodes)
        for _ in range(30):  # every plan may find a cut that a child has not sent yet
            nodes.settle()
            planned(nodes, rates)
        nodes.settle()
        assert planned(nodes, rates).scores == pytest.approx(planned(safe, rates).scores, rel=1e-9), seed
        lost += sum(traffic.lost for traffic in nodes.traffic().values())
    assert min(crashes, lost) > HISTORIES  # faults happened
    assert late  # and cost something


def test_rates_of_other_nodes_travel_as_messages() -> None:
    seen = set()
    for seed in range(4):
        nodes = made(network_of(seed), transport=Transport(delay_s=2.0))
        nodes.settle()
        before = nodes.now_s
        planned(nodes, np.array([3.0, 3.0]))
        told = {channel: sent for channel, sent in nodes.traffic().items() if channel.topic is Topic.RATES}
        assert {channel: sent.messages for channel, sent in told.items()} == dict.fromkeys(told, 1)
        assert {(channel.sender, channel.receiver) for channel in told} == {
            (other, node) for node, deployment in nodes.deployments.items() for other in deployment.places.watched
        }
        assert nodes.stale == bool(told)
        nodes.settle()
        assert nodes.now_s == before + 4.0 * bool(told)
        seen |= set(told)
    assert seen


class Ended(Peer):
    """A node that sends its first messages and ends."""

    @property
    def gone(self):
        return True

    def take(self, event):
        return []


class Ending(Here):
    """Starts the second node such that it ends by itself."""

    def peer(self, deployment, run):
        return (Ended if deployment.part.node == 1 else Peer)(deployment, run)


def test_nobody_waits_for_a_node_that_has_ended_by_itself() -> None:
    nodes = made(FIGURE_1, transport=ROUGH, start=Ending())
    nodes.settle()
    assert nodes.settled
