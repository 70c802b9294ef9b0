"""The point quadtree against a scan over rows sorted by score."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.fit.tables.rows import PointTree


def scanned(rates, scores, point):
    """The first row, by falling score, that lies at or below a point."""
    for row in np.argsort(-scores, kind="stable"):
        if (rates[row] <= point).all():
            return row
    return -1


@given(st.integers(0, 2**32), st.integers(0, 60), st.integers(1, 5), st.booleans())
def test_it_finds_what_a_scan_finds(seed: int, rows: int, inputs: int, prune: bool) -> None:
    random = np.random.default_rng(seed)
    rates = random.integers(0, 5, (rows, inputs)).astype(float)
    scores = random.integers(0, 8, rows).astype(float)
    tree = PointTree.from_table(rates, scores, prune)
    points = random.integers(0, 6, (40, inputs)) - random.choice([0.0, 0.5], (40, inputs))
    found = tree.find(points)
    for point, row in zip(points, found, strict=True):
        expected = scanned(rates, scores, point)
        assert (row < 0) == (expected < 0)
        if row >= 0:
            assert (rates[row] <= point).all()
            assert scores[row] == scores[expected]
            assert prune or row == expected


@given(st.integers(0, 2**32))
def test_pruned_rows_are_those_that_another_matches(seed: int) -> None:
    random = np.random.default_rng(seed)
    rates, scores = random.integers(0, 4, (30, 2)).astype(float), random.integers(0, 6, 30).astype(float)
    kept = set(PointTree.from_table(rates, scores, prune=True).order.tolist())
    for row in range(30):
        better = (rates <= rates[row]).all(axis=1) & (scores >= scores[row])
        better[row] = False
        assert row in kept or better.any()
        assert row not in kept or not (better & (scores > scores[row])).any()
