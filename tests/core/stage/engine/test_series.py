import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.settings import Costs, Network, StageSettings
from adapt.core.stage.simulate import simulate


def counted(costs):
    """What the stage counts for tuples that come one by one, each with its own cost."""
    due = np.concatenate([[0.0], np.cumsum(costs)[:-1]]) * 1.1 + np.arange(len(costs))
    of = StageSettings(
        2, np.zeros(1, np.int32), np.zeros(1, np.int32), costs=Costs(produce_s=0), network=Network(latency_s=0)
    )
    rows = Chunk(np.zeros(len(costs), int), np.zeros(len(costs), int), due, np.array(costs))
    return simulate(of, Rows(lambda: iter([rows])), interval_s=float(due[-1] + costs[-1] + 1)).intervals[0]


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=60), st.floats(0.01, 1))
def test_a_percentile_is_at_most_a_32nd_above_the_true_one(costs, share):
    interval = counted(costs)
    true = np.sort(costs)[max(0, int(np.ceil(share * len(costs) - 1e-9)) - 1)]
    for latencies in (interval.operator, interval.total):
        found = latencies.share_below_s(share)
        assert true * (1 - 1e-6) <= found <= true * (1 + 1 / 32) + 1e-9
        assert latencies.counts.sum() == len(costs)
