"""Bytes of tuples and states in the model, against sums by hand."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.engine.cache_costs import CacheCosts, StateCost, TupleCost
from adapt.core.ordered.engine.contention import Contention
from adapt.core.ordered.engine.costs import EngineCosts
from adapt.core.ordered.engine.outcome import WorkersRun
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.model.model import run_model
from adapt.core.ordered.model.operator_costs import given_costs, is_given
from tests.core.ordered.chains import PARTITIONED, stateful, stateless

ROWS, KEYS = 4000, 250
CACHES = CacheCosts((StateCost(64, 64, 100.0, 700.0),), (TupleCost(64, 1.0, 20.0, 300.0, 4000.0, 50_000.0),))


def chain(*operators: Operator) -> BoundChain:
    keys = np.random.default_rng(0).integers(0, KEYS, ROWS)
    return bind(Chain(operators), {"key": pa.array(keys)})


def run(of: BoundChain, settings: RunSettings) -> WorkersRun:
    return run_model(of, settings, Contention(), np.random.default_rng(0), engine=EngineCosts({}, CACHES)).run


def keyed(state_bytes: int) -> Operator:
    return Operator("keyed", PARTITIONED, "key", 50, cost=1.0, state_bytes=state_bytes)


@pytest.mark.parametrize("operator", [keyed(64), replace(stateful("one"), cost=1.0, state_bytes=64)])
def test_one_worker_finds_each_state_in_its_own_caches(operator: Operator) -> None:
    assert run(chain(operator), RunSettings()).elapsed_s == pytest.approx(ROWS * 1.1e-6)


def test_a_state_that_another_worker_had_last_is_moved() -> None:
    workers = 4
    (tally,) = run(chain(keyed(64)), RunSettings(workers)).operators
    (free,) = run(chain(keyed(0)), RunSettings(workers)).operators
    moved = ((tally.busy_ns - free.busy_ns) / ROWS - 100.0) / 600.0
    assert moved == pytest.approx(1 - 1 / workers, abs=0.1)  # any worker may have had it last


def test_a_payload_costs_where_it_is_fed_read_copied_sent_and_leaves() -> None:
    first = replace(stateless("first", 2.0), tuple_bytes=64)
    first_tally, last_tally = run(chain(first, stateless("last")), RunSettings()).operators
    assert first_tally.busy_ns == pytest.approx(ROWS * (1 + 20 + 2 * 300 + 2 * 4000))
    assert last_tally.busy_ns == pytest.approx(2 * ROWS * (20 + 300 + 50_000))


def test_a_cost_of_0_beside_sizes_is_a_cost() -> None:
    sized = chain(replace(stateless("a"), tuple_bytes=64))
    assert is_given(sized)
    assert not is_given(chain(stateless("a")))
    assert given_costs(sized).us == (0.0,)
