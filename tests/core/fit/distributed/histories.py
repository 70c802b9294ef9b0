"""Histories of nodes that exchange messages: what goes wrong, and what must hold all the same."""

import numpy as np

from adapt.core.fit.distributed.distributed import DFit, Messaging
from adapt.core.fit.distributed.exchange import Transport
from adapt.core.fit.program.program import Program
from adapt.core.fit.tables.spacing import Spacing
from tests.core.fit.networks import SHAPES, random_network

ROUGH = Transport(delay_s=0.1, jitter_s=0.4, loss=0.3, resend_s=0.7)


def made(network, **options):
    program = Program.from_network(network)
    spacing = Spacing(0.3, max_rows=3_000)
    return DFit(program, np.full(program.inputs, 4.0), spacing, Messaging(late=True, **options))


def network_of(seed):
    return random_network(seed, SHAPES[seed % 4], nodes=2 + seed % 3, inputs=2, size=6)


def planned(nodes, rates):
    """The plan of one tick, which overloads nothing."""
    wiring, plans = nodes.program.wiring, nodes.plan(rates[None])
    flows = wiring.flows(rates[None], plans.keeps)
    assert ((plans.keeps >= 0) & (plans.keeps <= 1)).all()
    assert (flows @ wiring.use.T <= nodes.program.limits[: nodes.program.resources] * (1 + 1e-9) + 1e-12).all()
    return plans


def fault(nodes, random):
    """Something goes wrong, or right again."""
    names = list(nodes.deployments)
    node = int(random.choice(names))
    match random.integers(4):
        case 0:
            nodes.crash(node)
        case 1 if node in nodes.down:
            nodes.restart(node)
        case 2:
            nodes.part(node, int(random.choice(names)))
        case _:
            nodes.join(node, int(random.choice(names)))


def healed(nodes):
    names = list(nodes.deployments)
    for node in nodes.down:
        nodes.restart(node)
    for node in names:
        for other in names:
            nodes.join(node, other)
