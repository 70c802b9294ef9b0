"""Nodes of D-FIT as processes: the plans of the model in one process, and what follows a kill -9."""

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.fit.distributed.distributed import DFit, Messaging
from adapt.core.fit.distributed.distributed_cuts import DFitCuts
from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.program.program import Program
from adapt.core.fit.replay.replay import FitOptions
from adapt.core.fit.tables.spacing import Spacing
from adapt.traces.replay.fit_processes import Processes
from tests.core.fit.networks import FIGURE_1, SHAPES, random_network
from tests.tiers import SOAK


@pytest.fixture
def started() -> Iterator[Processes]:
    with Processes() as started:
        yield started
    assert all(peer.process.poll() is not None for peer in started.nodes)


def made(network, **options):
    program = Program.from_network(network)
    nodes = DFit(program, np.full(program.inputs, 4.0), Spacing(0.3, max_rows=3_000), Messaging(late=True, **options))
    nodes.settle()
    return nodes


NETWORKS = [random_network(seed, SHAPES[seed % 4], nodes=2 + seed % 3, inputs=2, size=6) for seed in range(8)]


@pytest.mark.parametrize("network", [FIGURE_1, *NETWORKS] if SOAK else [FIGURE_1])
def test_processes_agree_with_the_model_and_come_back_after_kill_9(network, started: Processes) -> None:
    apart, model = made(network, start=started), made(network)
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
