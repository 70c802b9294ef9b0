"""Decisions are watched: endless ones are stopped, and the second run has another clock and other random numbers."""

import random
import time

import numpy as np
import pytest

from adapt.core.elastic.policies.names import ScalingPolicy
from adapt.core.errors import UsageError
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.lab.suite import TooSlow
from adapt.traces.own.checks import Watch, check_policy
from tests.core.lab import policies as written
from tests.core.lab.policies import own


def test_an_endless_decision_is_stopped():
    with pytest.raises(TooSlow):
        Watch(0.02).timed(lambda: written.Endless().moves(None))
    found = check_policy(own(written.Endless), watch=Watch(0.02))
    assert [each.name for each in found.checks if each.passed is False] == ["decides in time"]


def test_elsewhere_has_another_clock_and_other_random_numbers():
    before, state = time.time(), random.getstate()
    np.random.seed(5)
    expected = np.random.random()
    np.random.seed(5)
    with Watch().elsewhere():
        assert time.time() > before + 1e7
        assert random.getstate() != state
        np.random.random()
    assert random.getstate() == state
    assert np.random.random() == expected
    assert time.time() < before + 1e6


def test_a_policy_by_the_clock_is_caught():
    found = {each.name: each for each in check_policy(own(written.ByTheClock), limit_s=60.0).checks}
    assert found["is deterministic"].passed is False


def test_a_class_with_both_methods_is_checked_for_both():
    found = check_policy(own(written.Both), limit_s=60.0)
    assert found.passed
    assert len(found.checks) == 11
    assert {each.name.partition(": ")[0] for each in found.checks} == {"moves", "workers"}
    assert found.as_data()["own"]["name"] == "Both"


def test_built_in_policies_are_checked_by_name():
    assert check_policy(ScalingPolicy.DS2, limit_s=60.0).passed
    for name in (FluxPolicy.NONE, FluxPolicy.OPTIMUM):
        with pytest.raises(UsageError, match="cannot be checked"):
            check_policy(name)
    with pytest.raises(UsageError, match="has neither a method moves"):
        check_policy(own(type("Empty", (), {})))
