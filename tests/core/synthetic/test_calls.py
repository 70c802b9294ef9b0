"""Calls: phones move slowly, clones are elsewhere, and areas are those of the callers' homes."""

import numpy as np

from adapt.core.synthetic.calls import AREAS, CLONED_SHARE, SIDE_M, draw_calls, draw_phones
from adapt.core.synthetic.popularity import ZipfKeys

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
