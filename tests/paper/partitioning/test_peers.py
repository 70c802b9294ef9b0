"""Other schemes as they are compared by the program itself."""

import pytest

from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.compare import compare_schemes
from adapt.core.partitioning.schemes.names import Scheme
from paper.partitioning.domain import Domain
from paper.partitioning.peers import SPLITTINGS, SplitKeys, WholeMaps
from paper.partitioning.rings import ring_of

KEYS = 3000


@pytest.mark.parametrize("cap", [1.25, 1.05])
def test_whole_maps_have_the_numbers_of_a_comparison(cap):
    found = WholeMaps(KEYS, 1, cap, (4, 6)).measure([])
    with ring_of(1):
        rows = compare_schemes(
            Domain(KEYS, 1.0, 1).whole(), range(3, 7), Recipe(cap=cap), schemes=[Scheme.BOUNDED]
        ).rows
    for told, row in zip(found, (rows[1], rows[3]), strict=True):
        assert told == {"r": row.metrics.r_n, "m": row.metrics.m, "pinned_keys": row.metrics.pinned_keys}


def test_splitting_is_better_balanced_than_any_placement_and_has_keys_on_several_channels():
    found = SplitKeys(KEYS, 0, 10_000, (8,)).measure([])
    assert set(found) == {f"{way} 8" for way in SPLITTINGS}
    for way in found.values():
        assert 1 <= way["r"] < 1.2
        assert 1 < way["channels_per_key"] <= 8
