"""A trace on disk through a query network, and what is kept of it."""

from itertools import count

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.replay.fit import FitOptions
from adapt.core.shedding.names import DropPlanner
from adapt.core.shedding.settings import SheddingSettings
from adapt.traces.artefacts.runs import read_run
from adapt.traces.artefacts.trace import open_trace
from adapt.traces.fit_replaying import open_network, replay_fit_trace
from tests.traces.small_traces import write_trace

ROWS = 4_000
NETWORK = """
[[node]]
name = "edge"

[[input]]
name = "clicks"
stream = { column = "stream", equals = "s0" }

[[input]]
name = "orders"
stream = { column = "stream", equals = "s1" }

[[operator]]
name = "parse"
node = "edge"
kind = "map"
inputs = ["clicks"]
cost = 0.001

[[operator]]
name = "book"
node = "edge"
kind = "map"
inputs = ["orders"]
cost = 0.0005

[[output]]
name = "pages"
from = "parse"

[[output]]
name = "sales"
from = "book"
weight = 3.0
"""

TABLES = (DropPlanner.SOLVER, DropPlanner.C_FIT)
SETTINGS = SheddingSettings(tick_us=100_000, lag_ticks=0)


@pytest.fixture
def here(tmp_path):
    """A trace of four thousand rows in a second, and a network."""
    chance = np.random.default_rng(1)
    columns = {
        "ts": np.arange(ROWS) * 1_000_000 // ROWS,
        "key": pa.array([f"k{key}" for key in chance.integers(0, 9, ROWS)]),
        "stream": pa.array([f"s{side}" for side in chance.integers(0, 2, ROWS)]),
    }
    write_trace(tmp_path / "x.trace", columns)
    (tmp_path / "n.toml").write_text(NETWORK)
    return tmp_path


def replayed(here, out=None, step=1.0, planners=(DropPlanner.EXACT, *TABLES), **options):
    seconds = count(step=step)
    return replay_fit_trace(
        open_trace(here / "x.trace"),
        out and here / out,
        open_network(here / "n.toml"),
        FitOptions(planners, SETTINGS),
        clock=lambda: next(seconds),
        **options,
    )


def test_the_content_hash_of_a_run_is_of_what_was_measured_not_of_how_long_planning_took(here):
    fast, slow = replayed(here, "fast.fit"), replayed(here, "slow.fit", step=7.0)
    other = replayed(here, "other.fit", planners=TABLES)
    assert fast.outcomes[0].planned_s < slow.outcomes[0].planned_s
    hashes = {name: read_run(here / f"{name}.fit").manifest.content_hash for name in ("fast", "slow", "other")}
    assert hashes["fast"] == hashes["slow"] != hashes["other"]
    assert other.parameters != fast.parameters
