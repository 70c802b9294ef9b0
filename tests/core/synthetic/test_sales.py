"""Sales: tickets stand together, prices stay, and categories follow their trends without changing the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.counting.zipf import zipf_shares
from adapt.core.synthetic.popularity import ZipfKeys
from adapt.core.synthetic.sales import CATEGORIES, draw_sales, draw_shop

ITEMS = ZipfKeys(200, 1.0)
DAY_US = 86_400_000_000


@settings(max_examples=30)
@given(st.integers(1, 400), st.integers(0, DAY_US), st.integers(0, DAY_US), st.integers(0, 2**32))
def test_there_are_as_many_as_asked_for_in_their_span_ticket_by_ticket(
    count: int, begun_us: int, span_us: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    shop = draw_shop(random, ITEMS)
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
