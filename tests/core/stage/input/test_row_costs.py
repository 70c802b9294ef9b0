"""CPU time of each row: by column, by key, with a spread."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput
from adapt.core.stage.conditions.service_times import Spread, SpreadKind
from adapt.core.stage.input.row_costs import KeyCosts, RowCosts

MEANS = KeyCosts(pa.array(["a", "b"]), np.array([1e-3, 3e-3]))
KEYS = pa.array(["b", "a", None, "z", "a"])
OF_KEYS = [3e-3, 1e-3, 2e-3, 2e-3, 1e-3]
WIDE = Spread(SpreadKind.LOGNORMAL, 1.0)


@pytest.mark.parametrize("keys", [KEYS, pa.DictionaryArray.from_arrays([0, 1, None, 2, 1], ["b", "a", "z"])])
def test_a_key_costs_its_mean_and_others_the_mean_of_those_named(keys):
    assert RowCosts("key", MEANS).reader()(keys, 0).tolist() == pytest.approx(OF_KEYS)


def test_a_column_has_microseconds_and_a_missing_one_counts_0():
    assert RowCosts("cost_us").reader()(pa.array([1.5, None, 3.0]), 9).tolist() == pytest.approx([1.5e-6, 0.0, 3e-6])


def test_a_spread_keeps_the_mean_and_depends_on_seed_and_row_alone():
    ones = pa.array(np.full(50_000, 1e6))
    read = RowCosts("cost_us", spread=WIDE, seed=3).reader()
    whole = read(ones, 0)
    assert whole.mean() == pytest.approx(1.0, rel=0.02)
    assert whole.std() == pytest.approx(1.0, rel=0.1)
    assert np.concatenate([read(ones[:777], 0), read(ones[777:], 777)]).tolist() == whole.tolist()
    assert RowCosts("cost_us", spread=WIDE, seed=4).reader()(ones, 0).tolist() != whole.tolist()


@pytest.mark.parametrize(
    ("keys", "means", "message"),
    [
        ([], [], "has no keys; add a row"),
        (["a", "a"], [1.0, 2.0], "name a key twice"),
        (["a", "b"], [1.0, np.inf], "negative or infinite"),
    ],
)
def test_means_that_cannot_be_used_are_refused(keys, means, message):
    with pytest.raises(BadInput, match=message):
        KeyCosts(pa.array(keys, pa.string()), np.array(means))


def test_keys_of_another_type_are_refused():
    with pytest.raises(BadInput, match="have string keys, the trace int64"):
        MEANS.of(pa.array([1, 2]))
