"""Flux, section 4 and Figure 3: a buffer that all destinations share keeps a stage going while load visits its sites.

32 sites; the external process visits each for half a second, 16 s in all. The paper's rates are about 7e5 tuples/s
unloaded (its digits are damaged; 32 / 45.5 us is 7.03e5), and about half of that without a buffer.
"""

from dataclasses import replace

import pytest

from adapt.core.stage.arrivals import Drawn
from adapt.core.stage.disturbances import ExternalLoad
from adapt.core.stage.names import Router
from adapt.core.stage.settings import Network, StageSettings, even_groups, even_owners
from adapt.core.stage.simulate import simulate

SITES = 32
STAGE = StageSettings(SITES, even_owners(SITES, 64), even_groups(16384, SITES * 64))
VISITS = tuple(ExternalLoad(site, site / 2, (site + 1) / 2) for site in range(SITES))
SECONDS = 16


def visited(router, space=0):
    """Tuples a second with so much space for each producer beside the two packets of a connection."""
    if router is Router.EXCHANGE:
        stage = replace(STAGE, router=router, network=Network(connection_tuples=24 + space // SITES))
    else:
        stage = replace(STAGE, router=router, buffer_tuples=space)
    return simulate(replace(stage, disturbances=VISITS), Drawn(), SECONDS).throughput


@pytest.fixture(scope="module")
def unloaded():
    return simulate(STAGE, Drawn(), 2).throughput


def test_the_unloaded_stage_does_about_7e5_tuples_a_second(unloaded):
    assert 6.9e5 <= unloaded <= 7.1e5


def test_without_a_buffer_one_loaded_site_at_a_time_halves_the_stage(unloaded):
    assert 0.45 <= visited(Router.EXCHANGE) / unloaded <= 0.55


def test_with_2048_tuples_the_stage_is_nearly_unloaded(unloaded):
    assert visited(Router.FLUX, 2048) >= 0.97 * unloaded


@pytest.mark.parametrize("space", [256, 1024])
def test_flux_beats_exchange_with_the_same_space(space):
    assert visited(Router.FLUX, space) > visited(Router.EXCHANGE, space)
