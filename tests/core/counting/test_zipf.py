"""Zipf shares and the indexed draw of ranks, against the plain formula and numpy's binary search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.zipf import RankTable, zipf_shares, zipf_table

domains = st.integers(1, 5000)
exponents = st.floats(0, 4)
uniforms = st.lists(st.floats(0, 1, exclude_max=True), max_size=50).map(np.array)


def test_shares_are_those_of_the_formula():
    assert zipf_shares(3, 1) == pytest.approx(np.array([6, 3, 2]) / 11)


@given(domains, exponents)
def test_the_table_accumulates_the_shares(domain, exponent):
    cumulative = zipf_table(domain, exponent).cumulative
    assert cumulative == pytest.approx(np.cumsum(zipf_shares(domain, exponent)), rel=1e-12)
    assert cumulative[-1] == 1
    assert (np.diff(cumulative) >= 0).all()


def test_a_domain_of_several_runs_accumulates_without_a_seam():
    domain = 200_000
    exact = np.cumsum(zipf_shares(domain, 0.7).astype(np.longdouble))
    cumulative = zipf_table(domain, 0.7).cumulative
    assert np.abs(cumulative - exact).max() < 1e-13
    assert (np.diff(cumulative) > 0).all()


@given(domains, exponents, uniforms)
def test_a_rank_is_the_one_binary_search_finds(domain, exponent, uniforms):
    table = zipf_table(domain, exponent)
    uniforms = uniforms.astype(float)
    assert (table.ranks(uniforms) == np.searchsorted(table.cumulative, uniforms, side="right") + 1).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), uniforms)
def test_any_cumulative_distribution_can_be_drawn_from(weights, uniforms):
    cumulative = np.cumsum([*weights, 1.0])
    table = RankTable.from_cumulative(cumulative / cumulative[-1])
    uniforms = uniforms.astype(float)
    assert (table.ranks(uniforms) == np.searchsorted(table.cumulative, uniforms, side="right") + 1).all()


@given(domains, exponents)
def test_a_number_on_a_step_belongs_to_the_rank_above_it(domain, exponent):
    table = zipf_table(domain, exponent)
    steps = table.cumulative[table.cumulative < 1]
    below = np.nextafter(steps, 0)
    assert (table.ranks(steps) == np.searchsorted(table.cumulative, steps, side="right") + 1).all()
    assert (table.ranks(below) == np.searchsorted(table.cumulative, below, side="right") + 1).all()
