"""A user's function pins keys; the rest is hashed, and the plan is one as any other."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.errors import BadInput, UsageError
from adapt.core.own.own_code import OwnCode
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.compare import compare_schemes
from adapt.core.partitioning.plans.plan import plan_from_data, plan_to_data
from adapt.core.partitioning.problem.constraints import Constraints
from adapt.core.partitioning.schemes.names import Scheme

COUNTED = frequencies_of(KeyCounts(pa.array(["a", "b", "c", "d", "e", None]), np.array([9, 7, 5, 3, 1, 1]), 26))


def in_turn(view):
    """The hottest keys, one after another."""
    return {key: at % view.channels for at, key in enumerate(view.keys[:4])}


def own(call):
    return OwnCode("scheme", f"mine:{call.__name__}", __file__, "5" * 64, call)


def test_the_function_sees_the_hottest_keys_with_their_hashed_and_present_channels():
    views = []

    def looks(view):
        views.append(view)
        return {}

    first = build_plan(COUNTED, Recipe(own=own(in_turn)), 2)
    build_plan(COUNTED, Recipe(own=own(looks), max_pins=3), 3, previous=first)
    (view,) = views
    assert (view.channels, view.keys, view.counts.tolist(), view.total) == (3, ("a", "b", "c"), [9, 7, 5], 26)
    assert view.today.tolist() == [0, 1, 0]
    assert view.hashed.shape == (3,)
    with pytest.raises(ValueError, match="read-only"):
        view.counts[0] = 1


def test_its_plan_pins_what_it_says_and_records_it():
    plan = build_plan(COUNTED, Recipe(own=own(in_turn)), 2)
    assert dict(plan.explicit) == {"a": 0, "b": 1, "c": 0, "d": 1}
    assert (plan.scheme, plan.construction, plan.built_by) == (Scheme.HYBRID, None, "mine:in_turn")
    assert plan.parameters["own_scheme"]["source"] == "5" * 64
    assert plan_from_data(plan_to_data(plan)) == plan


def test_it_is_compared_with_the_others():
    compared = compare_schemes(COUNTED, [2, 3], schemes=[Scheme.UNIFORM, own(in_turn)])
    assert [(row.scheme, row.built_by) for row in compared.rows] == [
        (Scheme.UNIFORM, None),
        (Scheme.UNIFORM, None),
        (Scheme.HYBRID, "mine:in_turn"),
        (Scheme.HYBRID, "mine:in_turn"),
    ]
    with pytest.raises(UsageError, match="scheme mine:in_turn does not support"):
        compare_schemes(COUNTED, [2], Recipe(constraints=Constraints(capacities=(1.0, 2.0))), schemes=[own(in_turn)])


WRONG = {
    "a channel": (lambda view: {"a": view.channels}, "pins the key a to worker 2, but workers are 0 to 1"),
    "no number": (lambda view: {"a": "0"}, "pins the key a to worker '0'"),
    "a key": (lambda view: {"z": 0}, "pins the key 'z', which is not among view.keys"),
    "no mapping": (lambda view: [0], "must return a mapping of key to worker (got list)"),
    "an exception": (lambda view: view.counts[99], "failed in the assignment to 2 channels: IndexError"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_answer_is_a_sentence(case):
    call, sentence = WRONG[case]
    with pytest.raises(BadInput) as raised:
        build_plan(COUNTED, Recipe(own=own(call)), 2)
    assert sentence in str(raised.value)
