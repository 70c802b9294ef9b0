"""Lengths of replays: what is too long is refused with its numbers."""

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.settings import Network, StageSettings, even_groups
from adapt.core.stage.input.offered_load import Demand, bounds_of
from adapt.traces.replay.length import Length, stage_length


@pytest.mark.parametrize(
    ("network", "least_s"),
    [
        (Network(latency_s=3600.0), 14_400),
        (Network(link_bits_per_s=1.0), 200 / 4 * 640),
        (Network(link_bits_per_s=(None, None, 1.0, None)), 200 / 4 * 640),
        (Network(state_bits_per_s=1.0), 10_000 * 640),
    ],
)
def test_waiting_for_the_network_counts_in_the_length_of_a_replay(network, least_s):
    stage = StageSettings(4, np.repeat(np.arange(4, dtype=np.int32), 2), even_groups(8, 8), network=network)
    demand = Demand(np.full(8, 25), None, 1.0, 0.0)
    length = stage_length(bounds_of(demand, stage), stage, 0.01, 1, None)
    assert least_s < length.periods * 0.01 < 1.01 * least_s
    with pytest.raises(UsageError, match="simulated; shorter"):
        length.check("shorter")


def test_a_replay_of_too_many_rows_or_control_periods_is_refused_with_the_number():
    Length(3_000_000, 3_000_000, 12).check("choose fewer")
    with pytest.raises(UsageError, match=r"3 cases of 4,000,000,000 rows, and at most 10,000,000,000 rows .*; fewer"):
        Length(4_000_000_000, cases=3).check("fewer")
    with pytest.raises(UsageError, match=r"2 cases of 300,000 control periods, and at most 500,000 .*; longer"):
        Length(10, 3e5, cases=2).check("longer")
