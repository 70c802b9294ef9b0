"""The sums of hashing and the chains built on them, against routing every key of the domain at every step."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.counting.frequencies import key_order
from adapt.core.errors import UsageError
from adapt.core.partitioning.build import Recipe as BuildRecipe
from adapt.core.partitioning.compare import compare_schemes
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.schemes.names import Construction, Scheme, UtilityName
from paper.partitioning import chains
from paper.partitioning.chains import Recipe, Step, hashed_chain, hybrid_chain
from paper.partitioning.domain import Domain, blocks
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


@pytest.mark.parametrize("construction", Construction)
def test_so_it_has_where_most_keys_are_not_listed(construction):
    domain = Domain(100_000, 0.9, 1)
    track = 1000 if construction is Construction.LEVEL else None
    recipe = Recipe(construction, "LLL", sigma=0.05, utility=UtilityName.ATLM, track=track)
    steps = hybrid_chain(domain, sums_of(domain, Scheme.CONSISTENT, range(1, 6)), recipe, 5)
    compared = compared_on(
        domain,
        range(1, 6),
        schemes=[Scheme.HYBRID],
        constructions=[construction],
        recipe=BuildRecipe(
            resources=recipe.resources,
            utility=None if construction is Construction.LEVEL else recipe.utility,
            max_pins=track,
        ),
    )
    assert steps[-1].pinned_keys > 10
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


def test_sums_survive_being_written():
    sums = sums_of(Domain(500, 1.0, 0), Scheme.UNIFORM, range(1, 4))
    assert Sums.from_data(sums.as_data()).as_data() == sums.as_data()


def test_one_routing_serves_domains_of_every_skew():
    together = hashed_sums(1000, 1, [0.5, 1.0], Scheme.CONSISTENT, range(1, 4), 0, 1000)
    for skew, sums in zip([0.5, 1.0], together, strict=True):
        assert sums.as_data() == sums_of(Domain(1000, skew, 1), Scheme.CONSISTENT, range(1, 4)).as_data()


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


def test_seeds_are_other_keys():
    assert not set(Domain(100, 1.0, 0).names(0, 100).to_pylist()) & set(Domain(100, 0.5, 1).names(0, 100).to_pylist())
    assert Domain(100, 1.0, 2).names(10, 12).equals(pa.array([210, 211]))


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 7))
def test_blocks_cover_a_range_once(first, length, size):
    ranks = [rank for start, end in blocks(first, first + length, size) for rank in range(start, end)]
    assert ranks == list(range(first, first + length))


def test_tracking_more_keys_than_are_looked_at_is_refused(monkeypatch):
    monkeypatch.setattr(chains, "MOST_LISTED", 10)
    domain = Domain(1000, 1.0, 0)
    with pytest.raises(UsageError, match="raise sigma"):
        hybrid_chain(domain, sums_of(domain, Scheme.CONSISTENT, range(1, 4)), Recipe(Construction.SCAN), 3)
