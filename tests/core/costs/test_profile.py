"""Cost profiles: their numbers, their file, and what is wrong with one."""

import numpy as np
import pytest

from adapt.core.costs.profile import (
    MOST_QUANTILES,
    CostSource,
    KeyMean,
    Pause,
    Profile,
    Restart,
    Service,
    ServiceBy,
    SizeMean,
    StateCosts,
    Transport,
    quantiles_of,
)
from adapt.core.costs.profile_file import read_profile, write_profile
from adapt.core.errors import BadInput

BARE = Profile(CostSource.CSV, "times.csv: 3 rows")
WHOLE = Profile(
    CostSource.STAGE,
    'web.trace: "3" rows',
    Service(3, ServiceBy.KEY, 2e-3, (1e-3, 2e-3, 3e-3), (0.5, 1.0, 1.5), 1.25, 1e-6),
    (KeyMean("a\\b", 1e-3, 2), KeyMean("ö", 3e-3)),
    (SizeMean(100, 1e-3), SizeMean(1000, 2e-3, 7)),
    Transport(66e-6, 1e-9, 0.0, 4e-4),
    StateCosts(1e-7, 1e-9, 2e-7, 2e-9, 3e-8, 1e-3, 1e-5, 2e-5, 3e-5, True),
    Restart(1.5, 2.5, 1e-8),
    (Pause("gc", 1.0, (0.01, 0.02)), Pause("checkpoint", 10.0, (0.1,), True)),
)


def test_what_is_missing_is_named_in_the_file_with_its_default():
    text = write_profile(BARE)
    missing = BARE.missing()
    assert "restart.stop_s" in missing
    assert "pause" in missing
    assert all(f"# {name.partition('.')[2]}: not found" in text for name in missing if "." in name)
    assert not WHOLE.missing()
    assert "not found" not in write_profile(WHOLE)


@pytest.mark.parametrize("count", [1, 7, MOST_QUANTILES, 1500, 12_345])
def test_quantiles_keep_the_mean_and_the_order(count):
    sample = np.random.default_rng(count).pareto(1.5, count)
    found = np.array(quantiles_of(sample))
    assert len(found) == min(count, MOST_QUANTILES)
    assert found.mean() == pytest.approx(sample.mean())
    assert (np.diff(found) >= 0).all()
    assert sample.min() <= found[0]
    assert found[-1] <= sample.max()


HEAD = 'schema = "adapt.costs/1"\nsource = "csv"\nmeasured = "here"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schema =", "it is not valid TOML"),
        ('schema = "adapt.costs/2"', "it must begin with schema"),
        ('schema = "adapt.costs/1"\nsource = "csv"', "the profile has no measured"),
        (HEAD.replace("csv", "cvs"), "there is no source 'cvs'; did you mean 'csv'"),
        (HEAD + "[servise]\n", "the profile has an unknown field 'servise'; did you mean 'service'"),
        (HEAD + "[transport]\nrow_us = 1\n", "line 5: [transport] has an unknown field 'row_us'"),
        (HEAD + "[transport]\nrow_s = -1\n", "line 5: [transport]: row_s must be at least 0 (got -1.0)"),
        (HEAD + "[service]\nmean_s = 0\n", "line 5: [service]: mean_s must be above 0"),
        (HEAD + "[service]\nquantiles_s = [2, 1]\n", "line 5: [service]: quantiles_s must be ascending"),
        (HEAD + "[service]\nquantiles_s = [true]\n", "line 5: [service]: quantiles_s must be a list of numbers"),
        (HEAD + '[service]\nby = "key"\n', 'line 5: [service]: by = "key" needs [[key]]'),
        (HEAD + '[[key]]\nkey = "a"\n', "line 4: one [[key]] has no mean_s; add mean_s = ..."),
        (HEAD + '[[key]]\nkey = "a"\nmean_s = nan\n', "a mean_s of [[key]] is negative or infinite"),
        (HEAD + '[[pause]]\nkind = "gc"\ninterval_s = 0\ndurations_s = [1]\n', "needs an interval_s above 0"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text, said):
    with pytest.raises(BadInput) as raised:
        read_profile(text)
    assert said in str(raised.value)
