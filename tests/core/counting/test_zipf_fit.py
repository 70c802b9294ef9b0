"""The Zipf fit against streams whose law is known and an independent optimiser."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.zipf import zipf_shares
from adapt.core.counting.zipf_fit import MOST_EXPONENT, fit_zipf, most_likely, zipf_sentence, zipf_table
from adapt.core.stream import Weight

EXPONENTS = [0.5, 0.8, 1.0, 1.3, 2.0]


def exact(counts, keys=None, weight=Weight.COUNT, rows=None):
    """Exact frequencies of the given counts, falling."""
    counts = np.sort(np.asarray(counts))[::-1]
    counts = counts[counts > 0]
    names = pa.array(range(len(counts)) if keys is None else keys)
    total = float(counts.sum())
    return Frequencies(names, counts, counts, total, int(total) if rows is None else rows, weight, distinct=len(counts))


def bounded(low, high, total, complete_above=0.0):
    """Lossy counts."""
    low, high = np.array(low), np.array(high)
    names, epsilon = pa.array(range(len(low))), complete_above / total
    return Frequencies(names, low, high, float(total), int(total), Weight.COUNT, epsilon, complete_above, 10 * total)


def scaled(shares, rows=10**9):
    return np.rint(shares * rows).astype(np.int64)


def by_scipy(weights, first_rank):
    """The z of greatest likelihood by Brent's method on its slope; the likelihood itself is too flat for six digits."""
    logs = np.log(np.arange(first_rank, first_rank + len(weights)))

    def slope(z):
        law = np.exp(-z * (logs - logs[0]))
        return law @ logs / law.sum() - weights @ logs / weights.sum()

    if slope(0) <= 1e-14:
        return 0.0
    return MOST_EXPONENT if slope(MOST_EXPONENT) > 0 else brentq(slope, 0, MOST_EXPONENT, xtol=1e-12)


def zipf_exponent(weights, first_rank=1):
    logs = np.log(np.arange(first_rank, first_rank + len(weights)))
    return most_likely(logs, np.ones((1, len(weights))), np.array([weights @ logs / weights.sum()]))[0][0]


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=200), st.integers(1, 50))
def test_the_exponent_is_that_of_greatest_likelihood(counts, first_rank):
    falling = np.array(sorted(counts, reverse=True), dtype=float)
    found = zipf_exponent(falling, first_rank)
    assert found == pytest.approx(by_scipy(falling, first_rank), rel=1e-6, abs=1e-5)


@given(st.floats(0, 8), st.integers(2, 500), st.integers(1, 100))
def test_an_exact_law_is_found_exactly(exponent, ranks, first_rank):
    weights = np.arange(first_rank, first_rank + ranks, dtype=float) ** -exponent
    assert zipf_exponent(weights, first_rank) == pytest.approx(exponent, abs=1e-6)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_exact_shares_give_their_exponent_over_all_ranks_with_enough_rows(exponent):
    counts = scaled(zipf_shares(20_000, exponent))
    fit = fit_zipf(exact(counts))
    assert fit.exponent == pytest.approx(exponent, abs=0.01)
    assert (fit.first_rank, fit.last_rank) == (1, np.count_nonzero(counts >= 100))
    assert fit.worst_deviation < 0.01


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_a_sampled_stream_gives_its_exponent(exponent, seed):
    counts = np.random.default_rng(seed).multinomial(3_000_000, zipf_shares(10_000, exponent))
    fit = fit_zipf(exact(counts))
    assert abs(fit.exponent - exponent) < max(0.03, 3 * fit.standard_error), (seed, fit)
    assert fit.first_rank == 1
    assert fit.last_rank >= 0.8 * np.count_nonzero(counts >= 100)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.5])
def test_the_standard_error_is_the_spread_over_samples(exponent):
    shares = zipf_shares(200, exponent)
    drawn = [np.random.default_rng(seed).multinomial(10**6, shares) for seed in range(60)]
    fits = [fit_zipf(exact(counts)) for counts in drawn]
    spread = np.std([fit.exponent for fit in fits], ddof=1)
    # the spread of 60 samples errs by 9 %
    assert spread == pytest.approx(np.mean([fit.standard_error for fit in fits]), rel=0.3)


@pytest.mark.parametrize("mean", [80, 90, 100, 120, 1000])
@pytest.mark.parametrize("domain", [50, 1000, 20_000])
@pytest.mark.parametrize("seed", range(3))
def test_equally_likely_keys_are_not_given_a_law(domain, mean, seed):
    counts = np.random.default_rng(seed).multinomial(domain * mean, np.full(domain, 1 / domain))
    stream = exact(counts)
    fit = fit_zipf(stream)
    assert fit is None or fit.exponent < 0.1, (seed, fit)
    assert "Weights fall" not in zipf_sentence(stream, fit)


def test_a_flat_head_is_left_out():
    ranks = np.arange(1, 5001)
    fit = fit_zipf(exact(scaled(np.maximum(ranks, 20.0) ** -1.0, 10**8)))
    assert 15 <= fit.first_rank <= 25
    assert fit.last_rank == 5000
    assert fit.exponent == pytest.approx(1, abs=0.02)


def test_shares_that_fall_geometrically_follow_no_power_law():
    stream = exact(scaled(0.8 ** np.arange(60)))
    assert fit_zipf(stream) is None
    assert zipf_sentence(stream, None).startswith("No power law")


@given(st.lists(st.integers(1, 10**7), max_size=300))
def test_a_fit_holds_within_what_it_says(counts):
    stream = exact(np.array(counts, dtype=np.int64))
    fit = fit_zipf(stream)
    if fit is None:
        return
    assert fit.last_rank >= 10 * fit.first_rank
    held = stream.count_low[fit.first_rank - 1 : fit.last_rank]
    assert held.min() >= 100
    assert fit.share == pytest.approx(held.sum() / stream.total)
    assert fit.exponent == pytest.approx(by_scipy(held.astype(float), fit.first_rank), abs=1e-5)
    law = np.arange(fit.first_rank, fit.last_rank + 1) ** -fit.exponent
    ratio = held / (law * held.sum() / law.sum())
    # the ends are single ranks where ranks are few
    if fit.first_rank < 20:
        assert abs(ratio[0] - 1) < 0.201


@given(st.lists(st.integers(100, 10**6), min_size=10, max_size=200), st.integers(2, 1000))
def test_a_law_does_not_depend_on_the_unit_of_costs(counts, unit):
    costs = np.array(counts, dtype=float)
    fits = [fit_zipf(exact(costs * by, weight=Weight.COST, rows=10_000)) for by in (1, unit)]
    assert (fits[0] is None) == (fits[1] is None)
    if fits[0]:
        assert fits[1].exponent == pytest.approx(fits[0].exponent, abs=1e-6)
        assert fits[0].standard_error is None


def test_bytes_need_the_weight_of_enough_average_rows():
    sizes = scaled(zipf_shares(100, 1.0), 10**6)
    assert fit_zipf(exact(sizes, weight=Weight.BYTES, rows=10**6)).last_rank == 100
    # a row weighs 1000 on average, so only ranks from 100,000 up take part: one key
    assert fit_zipf(exact(sizes, weight=Weight.BYTES, rows=1000)) is None


@given(st.integers(0, 60_000), st.lists(st.integers(0, 3000), min_size=200, max_size=200))
def test_ranks_that_intervals_leave_open_take_no_part(complete_above, errors):
    low = scaled(zipf_shares(200, 1.0), 10**6)
    high = low + np.array(errors)
    stream = bounded(low, high, 2 * 10**6, complete_above)
    wide = high - low > 0.1 * high
    limit = max(complete_above, high[wide].max(initial=0))
    fit = fit_zipf(stream)
    if fit:
        assert low[: fit.last_rank].min() > limit
        assert not wide[: fit.last_rank].any()
        assert fit.exponent == pytest.approx(1, abs=0.1)


def test_the_table_holds_the_law():
    counts = scaled(zipf_shares(1000, 1.0), 10**6)
    table = zipf_table(exact(counts))
    (record,) = table.records()
    assert (record["zipf_first_rank"], record["zipf_last_rank"]) == (1, 1000)
    assert record["zipf_exponent"] == pytest.approx(1, abs=0.01)
    assert table.note.endswith("over ranks 1 to 1,000, with 100 % of the total.")
    assert all(cell is None or type(cell) in (str, int, float) for cell in record.values())
