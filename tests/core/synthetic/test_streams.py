"""Synthetic streams: calls, clicks, sales and bursts of packets."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.counting.zipf import zipf_shares
from adapt.core.errors import UsageError
from adapt.core.synthetic.calls import AREAS, CLONED_SHARE, SIDE_M, draw_calls, draw_phones
from adapt.core.synthetic.cascade import MOST_LEVELS, CascadePath
from adapt.core.synthetic.clicks import CART, CHECKOUT, SEARCH, Clicks, draw_clicks
from adapt.core.synthetic.popularity import ZipfKeys
from adapt.core.synthetic.sales import CATEGORIES, draw_sales, draw_shop
from adapt.core.synthetic.variation import Cascade, Lags, Variation
from adapt.traces.generators.keyed import packet_stream

HOUR_US = 3_600_000_000


def test_only_cloned_phones_are_ever_far_from_home_and_half_of_their_calls_are():
    random = np.random.default_rng(3)
    phones = draw_phones(random, ZipfKeys(50_000, 0.0))
    calls = draw_calls(random, 200_000, phones, 0, 24 * HOUR_US)
    assert (np.diff(calls.times_us) >= 0).all()
    assert (calls.callers != calls.callees).all()
    assert set(calls.areas) == set(range(AREAS))
    assert (calls.areas == phones.homes_m[0, calls.callers, 0] // (SIDE_M // AREAS)).all()
    assert abs(phones.cloned.mean() - CLONED_SHARE) < 0.001
    away_m = np.hypot(*(calls.caller_m - phones.homes_m[0, calls.callers]).T)
    cloned = phones.cloned[calls.callers]
    assert away_m[~cloned].max() <= 20_001
    assert 0.4 < (away_m[cloned] > 20_001).mean() < 0.6


def test_a_phone_moves_by_at_most_five_kilometers_in_an_hour():
    phones = draw_phones(np.random.default_rng(3), ZipfKeys(1_000, 0.0))
    everyone, first = np.arange(1, 1_001), np.zeros(1_000, np.bool_)
    places = [phones.places_m(everyone, first, np.full(1_000, hour * HOUR_US)) for hour in range(25)]
    moves_m = np.hypot(*np.moveaxis(np.diff(places, axis=0), 2, 0))
    assert moves_m.max() <= 2 * np.pi * 20_000 / 24 + 2
    assert (places[0] == places[24]).all()


USERS, ITEMS = ZipfKeys(500, 0.8), ZipfKeys(300, 1.0)
YEAR_US = 365 * 86_400_000_000


def clicks(count: int, begun_us: int = 0, ended_us: int = YEAR_US, seed: int = 1) -> Clicks:
    return draw_clicks(np.random.default_rng(seed), count, USERS, ITEMS, begun_us, ended_us)


@settings(max_examples=30)
@given(st.integers(1, 400), st.integers(0, YEAR_US), st.integers(0, YEAR_US), st.integers(0, 2**32))
def test_there_are_as_many_as_asked_for_in_their_span_in_time_order(
    count: int, begun_us: int, span_us: int, seed: int
) -> None:
    drawn = clicks(count, begun_us, begun_us + span_us, seed)
    assert len(drawn.times_us) == len(drawn.users) == len(drawn.items) == len(drawn.pages) == count
    assert (np.diff(drawn.times_us) >= 0).all()
    assert begun_us <= drawn.times_us[0]
    assert drawn.times_us[-1] <= max(begun_us + span_us - 1, begun_us)
    for session in np.unique(drawn.sessions):
        of = drawn.sessions == session
        assert len(np.unique(drawn.users[of])) == 1
        assert (np.diff(drawn.times_us[of]) <= 3_000_000_000).all()  # below any time-out of an hour


def test_sessions_and_pages_are_as_many_as_their_laws_say() -> None:
    drawn = clicks(200_000)
    sizes = np.bincount(drawn.sessions)
    assert sizes[:-1].min() == 2  # the last is cut
    assert sizes.mean() == pytest.approx(1 + 1 / 0.18, rel=0.02)
    assert (drawn.pages == SEARCH).mean() == pytest.approx(0.18, abs=0.02)
    assert (drawn.pages == CART).mean() == pytest.approx(0.12, abs=0.01)
    gaps = np.diff(drawn.times_us[np.argsort(drawn.sessions, kind="stable")])[np.diff(np.sort(drawn.sessions)) == 0]
    assert np.median(gaps) == pytest.approx(25e6, rel=0.02)


def test_a_checkout_is_the_last_page_of_a_session_with_a_cart_and_there_are_40_in_100_of_them() -> None:
    drawn = clicks(50_000)
    order = np.argsort(drawn.sessions, kind="stable")
    pages, sessions = drawn.pages[order], drawn.sessions[order]
    last = np.append(sessions[1:] != sessions[:-1], True)
    assert last[pages == CHECKOUT].all()
    filled = np.unique(sessions[(pages == CART) & ~last])
    bought = sessions[pages == CHECKOUT]
    assert np.isin(bought, filled).all()
    assert len(bought) / len(filled) == pytest.approx(0.4, abs=0.03)


def test_users_and_items_have_zipf_shares() -> None:
    drawn = clicks(200_000)
    assert (drawn.items == 1).mean() == pytest.approx(1 / sum(1 / rank for rank in range(1, 301)), rel=0.02)
    first_of = np.unique(drawn.sessions, return_index=True)[1]
    share = 1 / sum(rank**-0.8 for rank in range(1, 501))
    assert (drawn.users[first_of] == 1).mean() == pytest.approx(share, rel=0.1)


SOLD = ZipfKeys(200, 1.0)
DAY_US = 86_400_000_000


@settings(max_examples=30)
@given(st.integers(1, 400), st.integers(0, DAY_US), st.integers(0, DAY_US), st.integers(0, 2**32))
def test_there_are_as_many_as_asked_for_in_their_span_ticket_by_ticket(
    count: int, begun_us: int, span_us: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    shop = draw_shop(random, SOLD)
    sales = draw_sales(random, count, shop, begun_us, begun_us + span_us, 2 * DAY_US)
    assert len(sales.times_us) == len(sales.items) == len(sales.pieces) == count
    assert (np.diff(sales.times_us) >= 0).all()
    assert begun_us <= sales.times_us[0] <= sales.times_us[-1] <= begun_us + span_us
    starts = np.flatnonzero(np.diff(sales.tickets, prepend=-1))
    assert len(starts) == len(np.unique(sales.tickets))  # the lines of a ticket follow each other
    for lines in np.split(np.arange(count), starts[1:]):
        assert len(lines) <= 8
        assert len(np.unique(sales.times_us[lines])) == len(np.unique(sales.stores[lines])) == 1
    assert (sales.cents == shop.cents[sales.items]).all()
    assert (sales.categories == sales.items % CATEGORIES).all()
    assert ((sales.pieces >= 1) & (sales.pieces <= 5)).all()


@given(st.integers(1, 500), st.floats(0, 2), st.integers(0, 2**32))
def test_trends_go_both_ways_and_leave_the_whole_as_it_is(domain: int, exponent: float, seed: int) -> None:
    shop = draw_shop(np.random.default_rng(seed), ZipfKeys(domain, exponent))
    shares = np.zeros(CATEGORIES)
    np.add.at(shares, np.arange(1, domain + 1) % CATEGORIES, zipf_shares(domain, exponent))
    assert (shop.trends * shares).sum() == pytest.approx(0, abs=1e-9)
    assert (np.abs(shop.trends) <= 0.8).all()
    if domain >= CATEGORIES:
        assert (shop.trends < 0).sum() == (shop.trends > 0).sum() == CATEGORIES // 2


def test_a_category_sells_along_its_trend() -> None:
    random = np.random.default_rng(3)
    shop = draw_shop(random, ZipfKeys(200, 0.0))
    sales = draw_sales(random, 200_000, shop, 0, DAY_US, DAY_US)
    early = np.bincount(sales.categories[sales.times_us < DAY_US // 2], minlength=CATEGORIES)
    late = np.bincount(sales.categories[sales.times_us >= DAY_US // 2], minlength=CATEGORIES)
    # the mean over a half of the stream lies half way between its middle and its end
    assert (late - early) / (late + early) == pytest.approx(shop.trends / 2, abs=0.03)
    assert late.sum() == pytest.approx(early.sum(), rel=0.02)


def times_s(batch):
    return batch.column("ts").cast(pa.int64()).to_numpy() / 1e6


def shares_of(path, level):
    """Share of the rows in each of 2^level spans, from the times at which rows are expected."""
    asked = np.linspace(0, path.rows, 400_001)
    bounds = np.arange(2**level + 1) * (path.span_s / 2**level)
    return np.diff(np.interp(bounds, path.times_s(asked), asked)) / path.rows


def entropy_bits(counts):
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


@pytest.mark.parametrize("bias", [0.5, 0.65, 0.9])
@pytest.mark.parametrize("seed", [0, 7])
def test_spans_of_every_level_have_the_shares_of_the_b_model(bias, seed):
    path = CascadePath.of(Cascade(bias, 1.0), 64_000, 1000.0, 1, seed)
    assert path.levels == 6
    for level in range(1, 7):
        ones = np.array([bin(span).count("1") for span in range(2**level)])
        expected = bias**ones * (1 - bias) ** (level - ones)
        assert np.sort(shares_of(path, level)) == pytest.approx(np.sort(expected), abs=1e-5)


@given(st.floats(0.5, 0.95), st.integers(1, 5), st.integers(0, 2**64 - 1), st.floats(1e-3, 10))
def test_times_rise_with_the_rows_expected_and_stay_within_the_trace(bias, streams, seed, finest):
    path = CascadePath.of(Cascade(bias, finest), 5000, 100.0, streams, seed)
    times = path.times_s(np.linspace(0, 5000, 777))
    assert (np.diff(times) >= 0).all()
    assert (times[0], times[-1]) == (0, pytest.approx(50))


@pytest.mark.parametrize(("bias", "seed"), [(0.6, 1), (0.75, 2)])
def test_the_entropy_of_the_rows_grows_by_the_same_bits_at_every_scale(bias, seed):
    """The entropy plot from which Wang et al. read the bias: a line with the slope of the bias's entropy."""
    rows, streams = 400_000, 2
    batch = packet_stream(
        rows, seed=seed, start="1970-01-01", variation=Variation(lags=Lags(streams), cascade=Cascade(bias, 1.0))
    ).block(0)
    slope = entropy_bits(np.array([bias, 1 - bias]))
    names = batch.column("stream").to_numpy(zero_copy_only=False)
    for stream in ("s1", "s2"):
        at = times_s(batch)[names == stream]
        assert len(at) == pytest.approx(rows / streams, abs=5 * np.sqrt(rows) / 2)
        counts = np.bincount((at / (rows / 1000 / 2**7)).astype(int), minlength=2**7)
        bits = [entropy_bits(counts.reshape(2**level, -1).sum(axis=1)) for level in range(8)]
        assert np.diff(bits) == pytest.approx([slope] * 7, abs=0.01)
    one, other = (np.bincount((times_s(batch)[names == name] / 3.125).astype(int)) for name in ("s1", "s2"))
    assert (one[:128] != other[:128]).mean() > 0.9, "each stream bursts by itself"


def test_bursts_too_fine_for_64_bits_and_other_bursts_are_refused():
    with pytest.raises(UsageError, match="finest_s must be at least"):
        CascadePath.of(Cascade(0.6, 2.0**-MOST_LEVELS), 3, 1.0, 1, 0)
    with pytest.raises(UsageError, match="cannot be combined with"):
        Variation(lags=Lags(2, 5.0), cascade=Cascade())
