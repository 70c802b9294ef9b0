"""Nodes of D-FIT as processes: the plans of the model in one process, and what follows a kill -9."""

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.fit.distributed.distributed_cuts import DFitCuts
from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.program.program import Program
from adapt.core.fit.replay.replay import FitOptions
from adapt.traces.replay import fit_processes
from adapt.traces.replay.fit_processes import Processes
from tests.core.fit.distributed.histories import ROUGH, fault, healed, made, network_of, planned
from tests.core.fit.networks import FIGURE_1
from tests.tiers import SOAK, soak


@pytest.fixture
def started() -> Iterator[Processes]:
    with Processes() as started:
        yield started
    assert all(peer.process.poll() is not None for peer in started.nodes)


NETWORKS = [network_of(seed) for seed in range(8)]
HISTORIES = 500
TICKS = 5


@pytest.mark.parametrize("network", [FIGURE_1, *NETWORKS] if SOAK else [FIGURE_1])
def test_processes_agree_with_the_model_and_come_back_after_kill_9(network, started: Processes) -> None:
    apart, model = made(network, start=started), made(network)
    apart.settle()
    model.settle()
    rates = np.random.default_rng(0).random((12, 2)) * 4
    assert np.array_equal(apart.plan(rates).keeps, model.plan(rates).keeps)
    assert apart.traffic() == model.traffic()
    victim = started.nodes[-1]
    os.kill(victim.process.pid, signal.SIGKILL)
    victim.process.wait()
    without, whole = apart.plan(rates[:1]), model.plan(rates[:1])
    mine = victim.deployment.part.arcs
    assert not without.keeps[:, mine].any()
    assert without.scores <= whole.scores
    apart.plan(rates[:1])  # starts it again
    assert started.nodes[-1] is not victim
    apart.settle()
    assert np.array_equal(apart.plan(rates).keeps, model.plan(rates).keeps)
    assert started.sentence.startswith(f"nodes ran in {len(started.nodes)} processes: ")


def test_an_interrupt_ends_all_processes() -> None:
    started = Processes()

    def interrupted():
        with started:
            started.peer(made(FIGURE_1).deployments[0], 1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [peer.process.poll() is not None for peer in started.nodes] == [True]


def test_processes_without_nodes_that_exchange_messages_are_refused() -> None:
    with pytest.raises(UsageError, match="--nodes processes needs --planner d-fit or d-fit-cuts"):
        FitOptions((DropPlanner.EXACT,), start=Processes())


@pytest.mark.parametrize("network", [*NETWORKS, FIGURE_1] if SOAK else [NETWORKS[2]])
def test_groups_in_processes_agree_with_the_model_and_come_back_after_kill_9(network, started: Processes) -> None:
    program = Program.from_network(network)
    apart, model = DFitCuts(program, start=started), DFitCuts(program)
    apart.settle()
    model.settle()
    rates = np.random.default_rng(0).random((6, program.inputs)) * 4
    assert np.array_equal(apart.plan(rates).keeps, model.plan(rates).keeps)
    assert apart.traffic() == model.traffic()
    victim = started.nodes[-1]
    os.kill(victim.process.pid, signal.SIGKILL)
    victim.process.wait()
    assert apart.plan(rates[:1]).scores <= model.plan(rates[:1]).scores
    apart.plan(rates[:1])  # starts it again
    apart.settle()
    assert apart.plan(rates).scores == pytest.approx(model.plan(rates).scores, rel=1e-9)


@soak
@pytest.mark.parametrize("cuts", [False, True])
@pytest.mark.parametrize("seed", range(HISTORIES // 2))
def test_whatever_is_killed_no_node_is_overloaded_and_plans_come_back(
    cuts: bool, seed: int, started: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, network = np.random.default_rng(seed), network_of(seed)
    program = Program.from_network(network)
    nodes = (
        DFitCuts(program, ROUGH, seed, asks=False, start=started)
        if cuts
        else made(network, transport=ROUGH, seed=seed, start=started)
    )
    safe = DFitCuts(program) if cuts else made(network)
    safe.settle()
    encoded, rates, kills, wait = fit_processes.encoded, random.random(2) * 4, 0, -1

    def encoded_or_killed(request: object) -> bytes:
        """A request, before which a node may be killed: whichever, and whatever it was doing."""
        nonlocal kills, wait
        wait -= 1
        running = [peer.process for peer in started.nodes if peer.process.poll() is None]
        if wait == 0 and running:
            victim = running[random.integers(len(running))]
            os.kill(victim.pid, signal.SIGKILL)
            victim.wait()
            kills += 1
        return encoded(request)

    monkeypatch.setattr(fit_processes, "encoded", encoded_or_killed)
    for _ in range(TICKS):
        if random.random() < 0.5:
            rates = random.random(2) * 4
        if random.random() < 0.4:
            fault(nodes, random)
        if random.random() < 0.4:
            wait = random.integers(1, 30)
        planned(nodes, rates)
        nodes.settle(nodes.now_s + random.exponential(0.4))
    wait = -1
    healed(nodes)
    for _ in range(30 if cuts else 4):  # a node killed last is missed by one plan, started by the next
        nodes.settle()
        planned(nodes, rates)
    nodes.settle()
    one, other = planned(nodes, rates), planned(safe, rates)
    assert one.scores == pytest.approx(other.scores, rel=1e-9)
    assert cuts or np.array_equal(one.keeps, other.keeps)
    print(f"{kills} killed; {started.sentence}")
