"""The sums of hashing and the chains built on them, against routing every key of the domain at every step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.counting.frequencies import key_order
from adapt.core.partitioning.build import Recipe as BuildRecipe
from adapt.core.partitioning.compare import compare_schemes
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.schemes.names import Construction, Scheme
from paper.partitioning.chains import Recipe, Step, hashed_chain, hybrid_chain
from paper.partitioning.domain import Domain
from paper.partitioning.hashing import Sums, hashed_sums
from paper.partitioning.rings import ring_of


def sums_of(domain: Domain, scheme: Scheme, channels: range, first: int = 0, last: int | None = None) -> Sums:
    last = domain.keys if last is None else last
    return hashed_sums(domain.keys, domain.seed, [domain.skew], scheme, channels, first, last)[0]


def compared_on(domain: Domain, channels: range, **asked):
    with ring_of(domain.seed):
        return compare_schemes(domain.whole(), channels, **asked)


def agree(step: Step, metrics, resources: Resources) -> None:
    by_letter = dict(zip(resources.text, (metrics.r_s, metrics.r_c, metrics.r_n), strict=True))
    assert {letter: step.r[letter] for letter in by_letter} == pytest.approx(by_letter, rel=1e-9)
    assert step.b(resources.text, resources.tolerance[0]) == pytest.approx(metrics.b, rel=1e-9)
    assert (step.m is None) == (metrics.m is None)
    if step.m is not None:
        assert step.m[resources.text[0]] == pytest.approx(metrics.m, rel=1e-9)
    for name in ("imbalance", "r_best", "pinned_keys"):
        assert getattr(step, name) == pytest.approx(getattr(metrics, name), rel=1e-9)


@pytest.mark.parametrize("letters", ["LCL", "LLL", "CCL", "LQL", "QLL"])
@pytest.mark.parametrize("construction", Construction)
def test_a_hybrid_chain_has_the_numbers_of_a_comparison_of_every_key(construction, letters):
    domain = Domain(2000, 1.0, 3)
    recipe = Recipe(construction, letters, track=100 if construction is Construction.LEVEL else None)
    steps = hybrid_chain(domain, sums_of(domain, Scheme.CONSISTENT, range(1, 8)), recipe, 7)
    compared = compared_on(
        domain,
        range(1, 8),
        schemes=[Scheme.HYBRID],
        constructions=[construction],
        recipe=BuildRecipe(resources=recipe.resources, max_pins=recipe.track),
    )
    for step, row in zip(steps, compared.rows, strict=True):
        agree(step, row.metrics, recipe.resources)
        assert step.r_best_pinned == pytest.approx(row.metrics.r_best_pinned, rel=1e-9)


@pytest.mark.parametrize("scheme", [Scheme.UNIFORM, Scheme.CONSISTENT, Scheme.JUMP, Scheme.MAGLEV])
def test_a_scheme_that_hashes_all_keys_has_the_numbers_of_a_comparison(scheme):
    domain, resources = Domain(5000, 0.7, 2), Resources.parse("LQL")
    steps = hashed_chain(sums_of(domain, scheme, range(2, 6)), domain.counts(0, 5))
    for step, row in zip(steps, compared_on(domain, range(2, 6), schemes=[scheme]).rows, strict=True):
        assert step.channels == row.channels
        assert step.r["L"] == pytest.approx(row.metrics.r_n, rel=1e-9)
    rows = compared_on(domain, range(2, 6), schemes=[scheme], recipe=BuildRecipe(resources=resources)).rows
    for step, row in zip(steps, rows, strict=True):
        agree(step, row.metrics, resources)


@settings(max_examples=20)
@given(st.integers(1, 3000), st.integers(1, 2999), st.integers(0, 3), st.sampled_from([0.1, 0.7, 1.0]))
def test_sums_of_parts_are_to_the_last_digit_those_of_the_whole(keys, cut, seed, skew):
    domain, channels = Domain(keys, skew, seed), range(1, 4)
    cut = min(cut, keys)
    parts = [sums_of(domain, Scheme.CONSISTENT, channels, *part) for part in ((0, cut), (cut, keys))]
    assert (parts[0] + parts[1]).as_data() == sums_of(domain, Scheme.CONSISTENT, channels).as_data()


def test_counts_follow_the_law_and_are_whole():
    counts = Domain(1000, 1.0, 0).counts(0, 1000)
    shares = (1 / np.arange(1, 1001)) / (1 / np.arange(1, 1001)).sum()
    assert np.abs(counts - 10_000 * shares).max() <= 0.5
    assert (counts == counts.round()).all()
    assert (np.diff(counts) <= 0).all()


@pytest.mark.parametrize(("skew", "most"), [(1.0, 10), (1.0, 150), (0.1, 10), (0.3, 200)])
def test_the_heaviest_keys_are_the_first_of_all_in_their_order(skew, most):
    domain = Domain(200, skew, 4)
    whole = domain.whole()
    heaviest = domain.heaviest(most, whole.total)
    assert most <= len(heaviest.keys)
    assert heaviest.keys.to_pylist() == whole.keys.to_pylist()[: len(heaviest.keys)]
    assert (heaviest.total, heaviest.distinct) == (whole.total, whole.distinct)
    # Whoever ties with the last of them is among them.
    assert len(heaviest.keys) == 200 or whole.count_low[len(heaviest.keys)] < heaviest.count_low[-1]
    assert key_order(heaviest.keys, heaviest.count_low).tolist() == list(range(len(heaviest.keys)))
