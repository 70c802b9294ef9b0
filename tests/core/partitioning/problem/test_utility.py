"""Utility functions, by hand."""

import numpy as np
import pytest

from adapt.core.partitioning.problem.problem import UTILITIES, utility, weighed
from adapt.core.partitioning.schemes.names import UtilityName

RHO, GAMMA = 2.0, np.e - 1  # log(1 + gamma) is 1


def utility_of(name, rho, gamma):
    """By the parts of the kernels, uncompiled."""
    kind = UTILITIES[name]
    return utility.py_func(rho, weighed.py_func(gamma, kind.weighing), kind.times)


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
    assert utility_of(name, RHO, GAMMA) == pytest.approx(value)


def test_every_utility_has_its_function():
    assert list(UTILITIES) == list(UtilityName)


@pytest.mark.parametrize("name", UtilityName)
def test_more_of_either_penalty_is_never_better(name):
    assert utility_of(name, RHO + 1, GAMMA) > utility_of(name, RHO, GAMMA)
    assert utility_of(name, RHO, GAMMA + 1) >= utility_of(name, RHO, GAMMA)
