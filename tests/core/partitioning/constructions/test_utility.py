"""Utility functions, by hand."""

import numpy as np
import pytest

from adapt.core.partitioning.constructions.utility import UTILITIES
from adapt.core.partitioning.schemes.names import UtilityName

RHO, GAMMA = np.array([2.0]), np.array([np.e - 1])  # log(1 + gamma) is 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (UtilityName.A, 2),
        (UtilityName.APM, 2 + np.e - 1),
        (UtilityName.APLM, 2 + 1),
        (UtilityName.ATM, 2 * np.e),
        (UtilityName.ATLM, 2 * (1 + 1)),
    ],
)
def test_utility_by_hand(name, value):
    assert UTILITIES[name](RHO, GAMMA).tolist() == pytest.approx([value])


def test_every_utility_has_its_function():
    assert list(UTILITIES) == list(UtilityName)


@pytest.mark.parametrize("name", UtilityName)
def test_more_of_either_penalty_is_never_better(name):
    utility = UTILITIES[name]
    assert utility(RHO + 1, GAMMA)[0] > utility(RHO, GAMMA)[0]
    assert utility(RHO, GAMMA + 1)[0] >= utility(RHO, GAMMA)[0]
