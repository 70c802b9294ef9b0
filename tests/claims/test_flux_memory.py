"""Flux, section 6.2, Figures 9 and 10: a site that loses half of its memory, with and without moving partitions off it.

32 sites with 128 partitions of 6 MB each; at 5 s one site has 512 MB instead of 1 GB, so 43 partitions go to disk. The
paper: the stage stands still for about 14 s; the static one resumes far lower with latencies that grow; with Flux it
resumes earlier or together, and ends at the full rate with the latency of a tuple in memory, 45 us.
"""

import numpy as np
import pytest

from adapt.core.flux.names import FluxPolicy
from adapt.core.flux.registry import controller_of
from adapt.core.stage.arrivals import Drawn
from adapt.core.stage.memory import Memory, MemoryChange
from adapt.core.stage.settings import StageSettings, even_groups, even_owners
from adapt.core.stage.simulate import simulate

SITES = 32
FULL = SITES / 45.5e-6
STAGE = StageSettings(SITES, even_owners(SITES, 128), even_groups(16384, SITES * 128), state_tuples=75_000)
PRESSED = Memory(1e9, (MemoryChange(3, 5.0, 512e6),))


@pytest.fixture(scope="module")
def static():
    return simulate(STAGE, Drawn(), 40, None, PRESSED).intervals


@pytest.fixture(scope="module")
def adapted():
    return simulate(STAGE, Drawn(), 75, controller_of(FluxPolicy.MEMORY), PRESSED).intervals


def test_the_static_stage_stands_still_until_256_mb_are_written(static):
    """43 x (0.3 s + 5 ms) = 13.1 s after 5 s, but for what the buffers give."""
    rates = np.array([one.throughput for one in static])
    assert (rates[10:18] < 0.01 * FULL).all()
    assert rates[18] > 0.2 * FULL
    assert 43 <= max(one.on_disk for one in static) <= 44


def test_the_static_stage_goes_on_at_a_third_with_growing_latencies(static):
    assert np.mean([one.throughput for one in static[19:]]) / FULL == pytest.approx(1 / 3, abs=0.1)
    assert static[-1].operator.mean_s > 2e-2


def test_with_flux_the_stage_resumes_no_later_and_ends_as_if_nothing_had_been(static, adapted):
    resumed = [
        next(at for at, one in enumerate(run) if at > 9 and one.throughput > 0.2 * FULL) for run in (static, adapted)
    ]
    assert resumed[1] <= resumed[0]
    last = adapted[-3:]
    assert [one.on_disk for one in last] == [0, 0, 0]
    assert min(one.throughput for one in last) >= 0.95 * FULL
    assert max(one.operator.mean_s for one in last) <= 50e-6
