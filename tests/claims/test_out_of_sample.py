"""Plans on windows that they have not seen: thirteen real columns, three engines, 8 and 12 channels, twelve windows."""

import numpy as np
import pytest

from adapt.core.out_of_sample.outcome import OutOfSample
from adapt.core.out_of_sample.windows import CountedPane
from tests.claims.real_columns import CASES, DECIDING, columns_of, held, over_today, walked


@pytest.fixture(scope="module")
def columns(real_traces) -> dict[str, list[CountedPane]]:
    """The windows of each column, in time order."""
    return columns_of(DECIDING, real_traces)


@pytest.fixture(scope="module")
def cases(columns) -> list[OutOfSample]:
    """Every column, engine and number of channels."""
    return [walked(panes, *case) for panes in columns.values() for case in CASES]


def test_a_kept_plan_lowers_the_imbalance_of_later_windows(cases):
    found = np.array([over_today(tested, "kept") for tested in cases])
    assert len(found) == 13 * 6
    assert np.exp(np.log(found).mean()) <= 0.81
    assert (found > 1.02).mean() <= 0.03


def test_a_refreshed_plan_lowers_it_further_and_harms_nobody(cases):
    found = np.array([over_today(tested, "rebuilt") for tested in cases])
    assert np.exp(np.log(found).mean()) <= 0.79
    assert not (found > 1.02).any()


def test_the_interval_for_the_next_window_holds(columns):
    found = {name: [each for case in CASES for each in held(panes, *case)] for name, panes in columns.items()}
    assert np.mean([each for column in found.values() for each in column]) >= 0.87
    assert {name: share for name in found if (share := np.mean(found[name])) < 0.75} == {}
