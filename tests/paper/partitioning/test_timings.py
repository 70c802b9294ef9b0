"""What is timed is what was asked for; how long it takes is no matter of tests."""

import pytest

from adapt.core.partitioning.schemes.names import Construction, Scheme
from paper.partitioning.chains import Recipe
from paper.partitioning.measured import hashed_parts
from paper.partitioning.timings import AgainstLiteral, Cold, ColdTimed, PlanSizes, RoutingTimed, StepsTimed

KEYS = 2000


@pytest.fixture(scope="module")
def ring():
    parts = hashed_parts(KEYS, 0, (1.0,), Scheme.CONSISTENT, (1, 2, 3, 4))
    return parts, [part.measure([]) for part in parts]


def test_steps_of_a_chain_track_more_and_more_keys(ring):
    parts, given = ring
    recipes = (Recipe(Construction.SCAN), Recipe(Construction.LEVEL, track=50))
    scan, level = StepsTimed(KEYS, 1.0, 0, (2, 4), recipes, parts).measure(given)
    assert scan[0]["tracked"] < scan[1]["tracked"]
    assert [step["tracked"] for step in level] == [50, 50]
    assert all(step["seconds"] > 0 for step in scan + level)


def test_cold_steps_track_what_they_are_told():
    steps = (Cold(Construction.REDIST, 30, 4), Cold(Construction.LEVEL, 60, 5, 50, "LQL"))
    assert [found["tracked"] for found in ColdTimed(KEYS, 0, steps).measure([])] == [30, 60]


@pytest.mark.parametrize("construction", [Construction.SCAN, Construction.READJ])
def test_the_literal_form_gives_the_same_mapping(ring, construction):
    parts, given = ring
    found = AgainstLiteral(KEYS, 0, Recipe(construction, sigma=0.5), 3, parts).measure(given)
    assert found["is_identical"]
    assert found["tracked"] > 0


def test_plans_grow_with_their_keys_alone():
    found = PlanSizes((100, 200), 4).measure([])
    for key_type in ("int64", "string"):
        none, some, twice = (each["bytes"] for each in found if each["key_type"] == key_type)
        assert none < some
        assert twice - none == pytest.approx(2 * (some - none), rel=0.05)


def test_routing_is_measured_for_every_channel_count():
    found = RoutingTimed(1000, 10, (2, 3)).measure([])
    assert len(found) == 2
    assert all(each["keys_a_second"] > 0 and each["loop_keys_a_second"] > 0 for each in found)
