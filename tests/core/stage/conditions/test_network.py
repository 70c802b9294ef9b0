"""The network and the disks of a stage, sentence by sentence of the paper."""

from dataclasses import replace

import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.arrivals import Drawn
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import Network
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.movement.spilling import Memory
from adapt.core.stage.simulate import Actors, simulate
from tests.core.stage.engine.test_running_stage import small

FULL = 4 / 45.5e-6


@pytest.mark.parametrize("router", Router)
def test_a_connection_holds_two_packets(router):
    """ "a fixed size queue that holds two 1K packets" (section 3): a packet's place is free once it is empty."""
    of = small(4, 2, router=router, buffer_tuples=200, network=Network(packet_tuples=12))
    stage = Stage(of, Drawn())
    seen = set()
    for step in range(1, 200):
        stage.run(step * 1e-4)
        connections = stage.arrays["connection"]
        assert (connections["count"] + connections["owed"]).max() <= 24
        assert connections["owed"].max() < 12
        seen |= set(connections["owed"].tolist())
        assert stage.census().whole
    assert len(seen) > 6
    assert stage.census().processed / stage.now_s == pytest.approx(FULL, rel=0.05)


@pytest.mark.parametrize(("share", "rate"), [(1.1, 1.0), (0.5, 0.5), (0.1, 0.1)])
def test_a_stage_needs_the_bandwidth_of_its_tuples(share, rate):
    """ "a cross-sectional communication bandwidth requirement of 450mbps" for the full rate (section 3)."""
    needed = FULL / 4 * 640
    run = simulate(small(4, 2, network=Network(link_bits_per_s=share * needed)), Drawn(), 0.5)
    assert run.throughput / FULL == pytest.approx(rate, rel=0.05)


def test_a_slow_link_slows_what_its_worker_sends():
    network = Network(link_bits_per_s=(None, None, None, FULL / 16 * 640))
    stage = Stage(small(4, 2, network=network), Drawn())
    stage.run(1.0)
    sent = stage.arrays["producer"]["generated"] - stage.arrays["producer"]["held"]
    assert sent[3] == pytest.approx(FULL / 16, rel=0.05)
    assert sent.sum() == pytest.approx(FULL, rel=0.05)
    with pytest.raises(BadInput, match="one value for all workers, or 4"):
        Stage(small(4, 2, network=Network(link_bits_per_s=(1e9, 1e9))), Drawn())


def test_a_slow_disk_is_that_of_its_worker():
    """ "disk read bandwidth performance can vary" (section 2.2)."""
    memory = Memory(8e5, seek_sd_s=0.0, disk_bytes_per_s=(20e6, 5e6))
    run = simulate(small(state_tuples=10_000), Drawn(), 4.0, Actors(memory=memory))
    fast, slow = run.intervals[-1].idle
    even = simulate(small(state_tuples=10_000), Drawn(), 4.0, Actors(memory=replace(memory, disk_bytes_per_s=20e6)))
    assert fast > slow
    assert run.throughput < 0.8 * even.throughput


@pytest.mark.parametrize("packet", [0, 25])
def test_a_packet_fits_into_its_connection(packet):
    with pytest.raises(UsageError, match="from 1 to 24 tuples"):
        Network(packet_tuples=packet)
