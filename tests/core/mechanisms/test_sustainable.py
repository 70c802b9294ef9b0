"""Sustainable throughput: the search, when lag is bounded, and what is found against bounds that are computed here."""

from dataclasses import replace

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.mechanisms.cost_model import Wanted
from adapt.core.mechanisms.recommendation import is_sustained, largest_sustained
from adapt.core.mechanisms.scenario import Stream, simulated, staged
from adapt.core.mechanisms.scenarios import SCENARIOS
from adapt.core.stage.conditions.settings import Costs
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stage.input.offered_load import Demand

CHANNELS, ROWS, SERVICE_S, PRODUCE_S = 4, 12_000, 1e-3, 0.5e-6


@given(st.floats(1e-3, 1e3), st.floats(1 / 60, 60))
def test_the_search_finds_the_largest_speed_to_one_percent(limit, off):
    found = largest_sustained(lambda speed: speed <= limit, limit * off)
    assert found.speedup is not None
    assert limit / 1.0101 <= found.speedup <= limit
    assert found.probes <= 20


@pytest.mark.parametrize(("sustains", "speedup"), [(False, None), (True, 64.0)])
def test_the_search_ends_where_there_is_no_limit(sustains, speedup):
    found = largest_sustained(lambda _: sustains, 1.0)
    assert found.speedup == (None if speedup is None else pytest.approx(speedup, rel=0.6))


def keys_for_channels(shares, rows, channels=CHANNELS):
    """Keys with these shares, each on the channel of its number by the hash of the uniform scheme; in turn, evenly."""
    names = []
    for at in range(len(shares)):
        number = 0
        while True:
            high, low = mmh3.hash64(f"k{at}-{number}", signed=False)
            partition = (high * 2**64 + low) % (channels * 64)
            if partition // 64 == at % channels:
                break
            number += 1
        names.append(f"k{at}-{number}")
    # the key whose share is the furthest behind comes next
    behind = np.zeros(len(shares))
    order = []
    for _ in range(rows):
        behind += shares
        next_one = int(behind.argmax())
        behind[next_one] -= 1
        order.append(names[next_one])
    return order


def sustainable(name, keys):
    """Rows a second that a scenario sustains on a steady stream of keys."""
    batch = pa.record_batch({"ts": pa.array(np.arange(len(keys)) * 1000), "key": pa.array(keys)})

    def rows(reading):
        return reading.rows(lambda: iter([batch]))

    wanted = Wanted(CHANNELS, costs=Costs(SERVICE_S, 0.0, PRODUCE_S), state=10)
    placed = MiniPartitions(CHANNELS, 64)
    terms = wanted.terms(Demand.from_chunks(rows(Reading(placed)).chunks(), wanted.uniform))
    scenario = next(one for one in SCENARIOS if one.name == name)
    stream = Stream(rows, lambda: pytest.fail("nothing is counted"), lambda _: None)

    def sustains(speedup):
        stage = staged(scenario, replace(terms, speedup=speedup), stream)
        last_s = stage.demand.last_s
        return is_sustained(simulated(scenario, terms, stage, last_s).intervals, last_s)

    found = largest_sustained(sustains, terms.speedup)
    assert found.speedup is not None
    return found.speedup * 1000


@pytest.mark.parametrize("name", ["static-uniform", "flux-load"])
def test_of_a_uniform_stream_it_is_the_workers_over_the_cost_of_a_row(name):
    keys = keys_for_channels(np.full(8, 1 / 8), ROWS)
    assert sustainable(name, keys) == pytest.approx(CHANNELS / (SERVICE_S + PRODUCE_S), rel=0.03)


def test_of_a_skewed_stream_it_is_what_the_hottest_channel_can_do():
    """Its channel has 0.4 + 0.1 of the rows, and a quarter of the making of all."""
    keys = keys_for_channels(np.array([0.4, 0.2, 0.1, 0.1, 0.1, 0.1]), ROWS)
    bound = 1 / (0.5 * SERVICE_S + PRODUCE_S / CHANNELS)
    assert sustainable("static-uniform", keys) == pytest.approx(bound, rel=0.05)


def test_shedding_sustains_no_more_than_it_may_drop():
    """One that drops what comes above tau2 does not sustain what it could only do by dropping."""
    keys = keys_for_channels(np.full(8, 1 / 8), ROWS)
    assert sustainable("shed", keys) <= 1.02 * CHANNELS / (SERVICE_S + PRODUCE_S)
