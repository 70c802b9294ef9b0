"""Loads of units from real key columns whose keys are hidden: hot keys or luck, and assignments of units."""

import numpy as np
import pytest

from adapt.core.unit_loads.assigning import best_assignment, imbalances
from adapt.core.unit_loads.cause import Cause
from tests.claims.real_columns import CASES, DECIDING, columns_of, flights
from tests.claims.unit_cases import Score, real_cases
from tests.core.unit_loads.test_assigning import optimum
from tests.tiers import soak


@pytest.fixture(scope="module")
def cases(real_traces):
    """Fourteen columns by three engines, on 8 and 12 units."""
    columns = columns_of(DECIDING, real_traces)
    columns |= columns_of({"flights/flights.csv.gz": (flights, ("route",))}, real_traces)
    return list(real_cases(columns, CASES))


@soak
@pytest.mark.parametrize("knows_keys", [False, True])
def test_loads_alone_say_why(cases, knows_keys):
    score = Score.of(cases, knows_keys=knows_keys)
    assert score.answers.total() == 84
    assert score.right >= 0.95
    assert score.share(Cause.UNKNOWN) <= 0.2
    assert score.coverage >= 0.9


@soak
def test_later_windows_are_balanced_nearly_as_by_the_optimum(cases):
    """Against the best placement of the past's totals, and that of the later windows themselves."""
    ours, past, later = [], [], []
    for case in cases:
        if len(case.loads) < 12:
            continue
        before, after = case.loads[:, :6], case.loads[:, 6:]
        for workers in (3, 4, 5):
            whole = after.sum(axis=1, keepdims=True)
            ours.append(imbalances(whole, best_assignment(before, workers), workers)[0])
            past.append(imbalances(whole, optimum(before.sum(axis=1), workers)[1], workers)[0])
            later.append(optimum(whole[:, 0], workers)[0])
    assert np.mean(ours) <= np.mean(past)
    assert np.median(np.array(ours) / later) <= 1.06
