"""Observations for tests of policies."""

import numpy as np
from hypothesis import strategies as st

from adapt.core.stage.movement.controller import Observation


def observed(idle_s, owners, processed, **changes):
    """One second of statistics, with memory for everything."""
    partitions, workers = len(owners), len(idle_s)
    fields = {
        "collected_s": np.ones(workers),
        "idle_s": np.asarray(idle_s, float),
        "processed": np.asarray(processed, np.int64),
        "owners": np.asarray(owners, np.int32),
        "state_bytes": np.full(partitions, 800_000),
        "on_disk": np.zeros(partitions, bool),
        "unprocessed": np.zeros(partitions, np.int64),
        "available_bytes": np.full(workers, np.inf),
    }
    return Observation(**{**fields, **changes})


@st.composite
def observations(draw):
    """Any statistics of 2 to 8 workers, in steps that make ties likely."""
    workers = draw(st.integers(2, 8))
    partitions = draw(st.integers(1, 20))
    idle = draw(st.lists(st.integers(0, 8), min_size=workers, max_size=workers))
    owners = draw(st.lists(st.integers(0, workers - 1), min_size=partitions, max_size=partitions))
    tuples = draw(st.lists(st.integers(0, 6), min_size=partitions, max_size=partitions))
    return observed(np.array(idle) / 8, owners, np.array(tuples) * 10)
