"""Flux, section 4 and Figure 3: a buffer that all destinations share keeps a stage going while load visits its workers.

The external process visits each of 32 workers for half a second, 16 s in all. The paper's rates are about 7e5 tuples/s
unloaded (its digits are damaged; 32 / 45.5 us is 7.03e5), and about half of that without a buffer.
"""

import pytest

from adapt.core.stage.conditions.names import Router
from paper.flux.scenarios import transient_skew, unloaded
from tests.tiers import SOAK

SPACES = (256, 512, 1024, 2048, 4096) if SOAK else (256,)


@pytest.fixture(scope="module")
def full():
    return unloaded(2).run().throughput


def visited(router, space=0):
    """Tuples a second with so much space for each producer beside the two packets of a connection."""
    return transient_skew(router, space).run().throughput


def test_the_unloaded_stage_does_about_7e5_tuples_a_second(full):
    assert 6.9e5 <= full <= 7.1e5


def test_without_a_buffer_one_loaded_worker_at_a_time_halves_the_stage(full):
    assert 0.45 <= visited(Router.EXCHANGE) / full <= 0.55


def test_with_2048_tuples_the_stage_is_nearly_unloaded(full):
    assert visited(Router.FLUX, 2048) >= 0.97 * full


@pytest.mark.parametrize("space", SPACES)
def test_flux_beats_exchange_with_the_same_space(space):
    assert visited(Router.FLUX, space) > visited(Router.EXCHANGE, space)
