"""Clicks: sessions are as they are said to be, wherever the span begins and however short it is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.synthetic.clicks import CART, CHECKOUT, SEARCH, Clicks, draw_clicks
from adapt.core.synthetic.popularity import ZipfKeys

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
