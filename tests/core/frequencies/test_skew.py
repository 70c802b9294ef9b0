"""The Zipf fit against streams whose law is known and an independent optimiser; the verdict by hand."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from adapt.core.errors import UsageError
from adapt.core.frequencies.frequencies import Frequencies
from adapt.core.frequencies.skew import Skew, fit_zipf, skew_table, skew_verdict, zipf_exponent, zipf_sentence
from adapt.core.frequencies.tracking import tracked_keys
from adapt.core.frequencies.zipf import zipf_shares
from adapt.core.resources.functions import Resources
from adapt.core.stream import Weight

EXPONENTS = [0.5, 0.8, 1.0, 1.3, 2.0]
DEFAULTS = Resources()


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
    """The z of greatest likelihood by Brent's method on the log likelihood."""
    logs = np.log(np.arange(first_rank, first_rank + len(weights)))

    def cost(z):
        return (z * weights @ logs / weights.sum()) + np.log(np.exp(-z * logs).sum())

    return minimize_scalar(cost, bounds=(0, 32), method="bounded", options={"xatol": 1e-10}).x


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=200), st.integers(1, 50))
def test_the_exponent_is_that_of_greatest_likelihood(counts, first_rank):
    falling = np.array(sorted(counts, reverse=True), dtype=float)
    found = zipf_exponent(falling, first_rank)
    assert found == pytest.approx(by_scipy(falling, first_rank), rel=1e-6, abs=1e-5)


@given(st.floats(0, 8), st.integers(2, 500), st.integers(1, 100))
def test_an_exact_law_is_found_exactly(exponent, ranks, first_rank):
    weights = np.arange(first_rank, first_rank + ranks, dtype=float) ** -exponent
    assert zipf_exponent(weights, first_rank) == pytest.approx(exponent, abs=1e-6)


def test_equal_weights_have_exponent_zero():
    assert zipf_exponent(np.full(1000, 7.0)) == pytest.approx(0, abs=1e-12)


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


def test_a_cut_off_tail_is_left_out():
    ranks = np.arange(1, 5001)
    counts = scaled(ranks**-1.0 * np.exp(-ranks / 300), 10**8)
    fit = fit_zipf(exact(counts))
    assert fit.first_rank <= 2
    assert 60 <= fit.last_rank <= 400
    assert fit.exponent == pytest.approx(1, abs=0.15)


def test_a_heavy_first_key_is_left_out():
    counts = scaled(zipf_shares(1000, 0.8))
    counts[0] *= 4
    fit = fit_zipf(exact(counts))
    assert (fit.first_rank, fit.last_rank) == (2, 1000)
    assert fit.exponent == pytest.approx(0.8, abs=0.01)
    assert fit.share == pytest.approx(counts[1:].sum() / counts.sum())


def test_shares_that_fall_geometrically_follow_no_power_law():
    stream = exact(scaled(0.8 ** np.arange(60)))
    assert fit_zipf(stream) is None
    assert zipf_sentence(stream, None).startswith("No power law")


def test_nine_keys_are_too_few():
    stream = exact([1000] * 9)
    assert fit_zipf(stream) is None
    assert "Too few keys" in zipf_sentence(stream, None)
    assert fit_zipf(exact([1000] * 10)).exponent == pytest.approx(0, abs=1e-12)


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


def test_one_wide_interval_hides_the_ranks_below_it():
    low = scaled(zipf_shares(1000, 1.0), 10**6)
    high = low.copy()
    high[700] = low[49] + 1
    assert fit_zipf(bounded(low, low, 10**6)).last_rank == 1000
    assert fit_zipf(bounded(low, high, 10**6)).last_rank == 49


def test_where_intervals_hide_the_law_exact_counting_may_find_it():
    stream = bounded([1000] * 20, [2000] * 20, 40_000, 1000)
    assert fit_zipf(stream) is None
    assert zipf_sentence(stream, None).endswith("counted well enough to rank; exact counting may find more.")


def test_the_heaviest_hundred_thousand_ranks_decide():
    fit = fit_zipf(exact(np.full(150_000, 200)))
    assert (fit.first_rank, fit.last_rank) == (1, 100_000)


def test_one_key_of_29_percent_at_10_channels():
    stream = exact([294, *[1] * 706])
    verdict = skew_verdict(stream, DEFAULTS, 10)
    assert verdict.skew is Skew.ONE_KEY
    assert verdict.top_share == (0.294, 0.294)
    assert verdict.imbalance_floor == pytest.approx((2.94, 2.94))
    assert verdict.useful_workers == pytest.approx((3.40136, 3.40136), rel=1e-4)
    assert verdict.sentence == (
        "One key carries 29.4 %: at 10 channels the fullest has at least 2.94 times the average load, whatever the"
        " placement; more than 3 channels cannot be levelled without splitting the key."
    )


def test_the_same_key_can_be_placed_at_3_channels():
    verdict = skew_verdict(exact([294, *[1] * 706]), DEFAULTS, 3)
    assert (verdict.skew, verdict.keys_to_place) == (Skew.CURABLE, (1, 1))
    assert verdict.their_share == pytest.approx((0.294, 0.294))
    assert verdict.imbalance_floor == (1.0, 1.0)
    assert verdict.placed_imbalance == (1, 1)
    assert verdict.sentence.startswith("1 key carries 29.4 % of the stream: at 3 channels hashing alone leaves")


def test_keys_that_do_not_divide_evenly_are_too_few():
    # (1/3 + 1/3) of the load on one of two channels
    verdict = skew_verdict(exact([100, 100, 100]), DEFAULTS, 2)
    assert verdict.skew is Skew.FEW_KEYS
    assert verdict.placed_imbalance == pytest.approx((4 / 3, 4 / 3))
    assert "1.33 times the average load" in verdict.sentence


def test_as_many_equal_keys_as_channels_are_curable():
    for channels in (2, 3, 7, 10, 49):
        verdict = skew_verdict(exact([1] * channels), DEFAULTS, channels)
        assert (verdict.skew, verdict.placed_imbalance) == (Skew.CURABLE, pytest.approx((1, 1))), channels


def test_light_keys_are_flat():
    # delta = 0.1 theta(1.2, 10) / 10 = 0.1765 %, and each key has 0.1 %
    verdict = skew_verdict(exact([1] * 1000), DEFAULTS, 10)
    assert (verdict.skew, verdict.keys_to_place) == (Skew.FLAT, (0, 0))
    assert verdict.sentence == (
        "No key reaches delta, 0.176 % of the stream at 10 channels (the heaviest carries 0.1 %): hashing alone will"
        " do."
    )


def test_one_channel_has_nothing_to_balance():
    verdict = skew_verdict(exact([5, 1]), DEFAULTS, 1)
    assert (verdict.skew, verdict.delta, verdict.keys_to_place) == (Skew.FLAT, None, (0, 0))
    assert "nothing to balance" in verdict.sentence
    assert skew_verdict(exact([5]), DEFAULTS, 1).skew is Skew.FLAT


@pytest.mark.parametrize("channels", [1, 4])
def test_without_weight_there_is_no_verdict(channels):
    nothing = exact(np.zeros(0, np.int64))
    weightless = Frequencies(pa.array(["a"]), np.zeros(1), np.zeros(1), 0.0, 3, Weight.COST, distinct=1)
    for stream in (nothing, weightless):
        verdict = skew_verdict(stream, DEFAULTS, channels)
        assert (verdict.skew, verdict.top_share, verdict.imbalance_floor) == (None, None, None)
        record = skew_table(stream, DEFAULTS, channels).records()[0]
        assert {name for name, cell in record.items() if cell is not None} == {"channels"}


def test_no_channels_are_refused():
    with pytest.raises(UsageError, match="0 channels"):
        skew_verdict(exact([1]), DEFAULTS, 0)


def test_a_heavy_null_key_can_be_spread():
    stream = exact([6, 2, 2], keys=[None, "a", "b"])
    verdict = skew_verdict(stream, DEFAULTS, 4)
    assert verdict.null_is_top
    assert verdict.sentence == (
        "The null key carries 60 %: at 4 channels the fullest has at least 2.4 times the average load, whatever the"
        " placement; not even two channels can be levelled without splitting the key. Rows without a key can be spread"
        " or left out, if they share no state."
    )


def test_others_that_are_too_heavy_are_counted():
    verdict = skew_verdict(exact([30, 20, 15, *[1] * 35]), DEFAULTS, 10)
    assert verdict.too_heavy == 3
    assert "One key carries 30 %, and 2 more exceed an average channel" in verdict.sentence


def test_an_interval_around_the_limit_is_uncertain():
    # f1 in [8 %, 13 %]: N f1 > 1 surely from 13 channels, possibly from 8
    stream = bounded([80], [130], 1000, 50)
    assert skew_verdict(stream, DEFAULTS, 13).skew is Skew.ONE_KEY
    verdict = skew_verdict(stream, DEFAULTS, 10)
    assert (verdict.skew, verdict.imbalance_floor) == (Skew.UNCERTAIN, pytest.approx((1.0, 1.3)))
    assert verdict.sentence == (
        "The heaviest key carries 8 % to 13 %: whether 10 channels can be levelled without splitting it, exact counting"
        " or a smaller epsilon tells; more than 12 surely cannot be; for 7 or fewer no key is too heavy."
    )
    assert skew_verdict(stream, DEFAULTS, 7).skew is Skew.CURABLE


def test_a_key_that_is_not_listed_may_be_the_heaviest():
    verdict = skew_verdict(bounded([20], [20], 1000, 30), DEFAULTS, 10)
    assert verdict.top_share == (0.02, 0.03)
    verdict = skew_verdict(bounded([], [], 1000, 30), DEFAULTS, 10)
    assert (verdict.skew, verdict.top_share, verdict.useful_workers) == (
        Skew.UNCERTAIN,
        (0, 0.03),
        (pytest.approx(1 / 0.03), None),
    )
    assert "none carries more than 3 %" in verdict.sentence


def test_keys_below_delta_that_may_reach_it_are_uncertain():
    # delta is 0.1765 %
    verdict = skew_verdict(bounded([1000], [2000], 10**6, 1000), DEFAULTS, 10)
    assert (verdict.skew, verdict.keys_to_place) == (Skew.UNCERTAIN, (0, 1))
    assert skew_verdict(bounded([1000], [1700], 10**6, 1000), DEFAULTS, 10).skew is Skew.FLAT


def test_wide_intervals_do_not_tell_whether_keys_divide_evenly():
    # four keys of 10 % to 40 % on two channels: at most two on each, so between 20 % and 80 % of the load
    stream = bounded([100, 100, 100, 100], [400, 400, 400, 400], 1000, 50)
    verdict = skew_verdict(stream, DEFAULTS, 2)
    assert (verdict.skew, verdict.placed_imbalance) == (Skew.UNCERTAIN, pytest.approx((1.0, 1.6)))
    assert "whether they divide evenly, exact counting or a smaller epsilon tells" in verdict.sentence


counts = st.lists(st.integers(1, 1000), min_size=1, max_size=60)


@given(counts, st.integers(1, 40))
def test_numbers_agree_with_their_definitions(values, channels):
    stream = exact(values)
    verdict = skew_verdict(stream, DEFAULTS, channels)
    top = max(values) / sum(values)
    assert verdict.top_share == (pytest.approx(top), pytest.approx(top))
    assert verdict.imbalance_floor[0] == pytest.approx(max(1, channels * top))
    assert verdict.keys_to_place[1] == len(tracked_keys(stream, DEFAULTS, channels))
    assert verdict.placed_imbalance[0] >= verdict.imbalance_floor[0] * (1 - 1e-9)
    assert (verdict.skew is Skew.ONE_KEY) == (max(values) * channels > sum(values))
    assert verdict.skew is not Skew.UNCERTAIN
    assert verdict.sentence


@given(counts, st.integers(1, 39))
def test_more_channels_never_lower_the_floor_or_what_must_be_placed(values, channels):
    stream = exact(values)
    fewer, more = (skew_verdict(stream, DEFAULTS, at) for at in (channels, channels + 1))
    assert more.imbalance_floor[0] >= fewer.imbalance_floor[0]
    assert more.too_heavy >= fewer.too_heavy
    if channels > 1:
        assert more.keys_to_place[1] >= fewer.keys_to_place[1]
    assert not (fewer.skew is Skew.ONE_KEY and more.skew is not Skew.ONE_KEY)


@given(counts, st.data(), st.integers(2, 40))
def test_a_verdict_on_intervals_is_never_wrong(values, data, channels):
    """Whatever the true counts within the intervals, a verdict other than uncertain agrees with exact counting."""
    true = np.sort(np.array(values))[::-1]
    below = np.array(data.draw(st.lists(st.integers(0, 50), min_size=len(true), max_size=len(true))))
    low = np.maximum(true - below, 0)
    order = np.argsort(-low, kind="stable")
    listed = low[order] > 0
    missed = float(true[order][~listed].max(initial=0))
    high = (true + 10)[order][listed]
    stream = bounded(low[order][listed], high, int(true.sum()), missed)
    told, truth = skew_verdict(stream, DEFAULTS, channels), skew_verdict(exact(true), DEFAULTS, channels)
    assert told.top_share[0] <= truth.top_share[0] <= told.top_share[1] + 1e-12
    assert told.imbalance_floor[0] <= truth.imbalance_floor[0] <= told.imbalance_floor[1] + 1e-12
    # placing heaviest first need not find the best placement, so these two may differ
    by_placing = {Skew.CURABLE, Skew.FEW_KEYS}
    assert told.skew in (Skew.UNCERTAIN, truth.skew) or {told.skew, truth.skew} == by_placing
    assert told.sentence


def test_the_table_holds_the_verdict_and_the_law():
    counts = scaled(zipf_shares(1000, 1.0), 10**6)
    table = skew_table(exact(counts), DEFAULTS, 10)
    record = table.records()[0]
    assert (record["verdict"], record["zipf_first_rank"], record["zipf_last_rank"]) == ("one_key", 1, 1000)
    assert record["zipf_exponent"] == pytest.approx(1, abs=0.01)
    assert record["imbalance_floor"] == pytest.approx(10 * counts[0] / counts.sum())
    assert record["useful_workers"] == pytest.approx(counts.sum() / counts[0])
    assert table.note.endswith("over ranks 1 to 1,000, which carry 100 %.")
    assert all(cell is None or type(cell) in (str, int, float) for cell in record.values())


def test_certain_ends_stand_in_the_table():
    record = skew_table(bounded([500, 1], [600, 2], 1000, 10), DEFAULTS, 10).records()[0]
    assert (record["top_share_low"], record["top_share_high"]) == (0.5, 0.6)
    assert (record["imbalance_floor"], record["useful_workers"]) == (5, 2)
    assert record["zipf_exponent"] is record["zipf_last_rank"] is None


def test_words_do_not_round_up_to_all():
    table = skew_table(exact([999_999, 1]), DEFAULTS, 4)
    assert table.note.startswith("One key carries over 99.9 %")
    assert math.isclose(table.records()[0]["top_share_low"], 0.999999)
