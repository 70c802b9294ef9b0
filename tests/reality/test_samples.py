"""What service times depend on, found from measurements with known laws."""

import numpy as np
import pytest

from adapt.core.costs.profile import ServiceBy
from reality.samples import LEAST_ROWS, MOST_KEYS, Samples, service_of_samples

ROWS = 20_000


def drawn(seed=0):
    return np.random.default_rng(seed)


def test_rows_that_depend_on_nothing_have_one_distribution():
    chance = drawn()
    seconds, keys = chance.exponential(1e-3, ROWS), [f"k{each}" for each in chance.integers(0, 50, ROWS)]
    service, means, sizes = service_of_samples(Samples(seconds, keys, chance.integers(1, 999, ROWS).astype(float)))
    assert (service.by, service.rows, means, sizes) == (ServiceBy.ALL, ROWS, (), ())
    assert service.mean_s == pytest.approx(seconds.mean())
    assert service.quantiles_s is not None
    assert np.quantile(service.quantiles_s, 0.99) == pytest.approx(np.quantile(seconds, 0.99), rel=0.03)


def test_keys_with_means_of_their_own_are_found_and_rare_ones_are_not_named():
    chance = drawn(1)
    places = np.where(chance.random(ROWS) < 0.001, 1000 + np.arange(ROWS), chance.integers(0, 20, ROWS))
    means = np.where(places < 20, 1e-3 * (1 + places % 20), 5e-3)
    keys = [None if place == 19 else f"k{place}" for place in places]
    seconds = means * chance.lognormal(-0.02, 0.2, ROWS)
    service, named, _ = service_of_samples(Samples(seconds, keys))
    assert service.by is ServiceBy.KEY
    assert {one.key for one in named} == {f"k{place}" for place in range(19)}
    assert all(one.rows >= LEAST_ROWS for one in named)
    for one in named:
        assert one.mean_s == pytest.approx(1e-3 * (1 + int(one.key[1:])), rel=0.05)
    assert service.within is not None
    assert np.std(service.within) < 0.5
    assert len(named) <= MOST_KEYS


def test_sizes_with_means_of_their_own_are_found():
    chance = drawn(2)
    sizes = chance.integers(10, 1000, ROWS).astype(float)
    service, _, classes = service_of_samples(Samples(sizes * 1e-6 * chance.lognormal(0, 0.1, ROWS), None, sizes))
    assert service.by is ServiceBy.SIZE
    assert [one.most_bytes for one in classes] == sorted(one.most_bytes for one in classes)
    assert classes[-1].most_bytes == sizes.max()
    assert sum(one.rows for one in classes) == ROWS
    for one, before in zip(classes[1:], classes[:-1], strict=True):
        assert before.most_bytes * 1e-6 < one.mean_s < one.most_bytes * 1.1e-6


@pytest.mark.parametrize(("factor", "fixed_s"), [(1.0, 2e-4), (1.5, 0.0), (3.0, 1e-3)])
def test_a_stated_cost_has_a_factor_and_a_fixed_part(factor, fixed_s):
    chance = drawn(3)
    stated = chance.lognormal(-6.5, 0.8, ROWS)
    service, _, _ = service_of_samples(
        Samples(fixed_s + factor * stated * chance.lognormal(0, 0.05, ROWS), costs=stated)
    )
    assert service.by is ServiceBy.COST
    assert service.cost_factor == pytest.approx(factor, rel=0.03)
    assert service.fixed_s == pytest.approx(fixed_s, abs=6e-5)
