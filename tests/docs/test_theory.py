"""The page of theory has every number by which placements are judged, and every planner that it tells of exists."""

import re

import pytest

from adapt.core.check.metrics import METRICS, Of
from adapt.core.mechanisms.scenarios import SCENARIOS
from tests.docs.pages import text_of

PLACED = [name for name, metric in METRICS.items() if Of.PLAN in metric.places and name != "channels"]


@pytest.mark.parametrize("name", PLACED)
def test_every_number_of_a_placement_is_explained(name):
    assert f"`{name}`" in text_of("docs/theory.md")


def test_mechanisms_that_are_advised_exist():
    named = re.findall(r"`((?:static|split|flux|elastic|shed|rebuild)-?[a-z-]*)`", text_of("docs/which.md"))
    assert named
    assert set(named) <= {scenario.name for scenario in SCENARIOS}
