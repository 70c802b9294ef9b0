import json

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import UsageError
from adapt.core.frequencies.exact import count_keys, frequencies_of
from adapt.core.partitioners.splitting.compare import COLUMNS, SHARED, compare_splitting, split_loads
from adapt.core.partitioners.splitting.messages import Messages
from adapt.core.partitioners.splitting.names import Splitting
from adapt.core.partitioners.splitting.split import split
from adapt.core.partitioners.uniform import UniformPartitioner
from adapt.core.resources.functions import Resources
from adapt.core.resources.metrics import METRIC_COLUMNS, evaluate

COLUMN = pa.array([f"key{int(at)}" for at in np.random.default_rng(0).zipf(1.5, 20_000) % 500])
MESSAGES = Messages.of_column(COLUMN, periods=np.arange(20_000) // 5000)


def test_whole_keys_are_judged_as_their_partitioner_is():
    resources = Resources.parse("LCQ")
    row = compare_splitting(MESSAGES, [7], splittings=[Splitting.ONE_CHOICE], resources=resources).rows[0]
    judged = evaluate(UniformPartitioner(7), frequencies_of(count_keys(COLUMN)), resources).as_data()
    assert {name: row.data[name] for name in SHARED} == pytest.approx({name: judged[name] for name in SHARED})


def test_a_split_key_counts_on_each_of_its_channels():
    done = split(Messages.of_column(pa.array(["a"] * 4)), Splitting.W_CHOICES, 2)
    assert split_loads(done, Resources.parse("CLQ")).tolist() == [[1, 1], [2, 2], [4, 4]]


def test_the_table_has_a_row_a_way_and_count_with_every_number():
    compared = compare_splitting(MESSAGES, [3, 40])
    table = compared.table()
    assert table.values("scheme") == [way.value for way in Splitting for _ in range(2)]
    assert table.values("channels") == [3, 40] * len(Splitting)
    assert table.records() == json.loads(json.dumps(compared.as_data()))["rows"]
    assert {column for column in METRIC_COLUMNS if column.name in SHARED} <= set(COLUMNS)
    assert "merge_tuples" in compared._repr_html_()


def test_splitting_passes_the_floor_of_whole_keys_and_pays_with_merges():
    rows = {row.split.splitting: row.data for row in compare_splitting(MESSAGES, [40]).rows}
    one, two, every = rows[Splitting.ONE_CHOICE], rows[Splitting.PKG], rows[Splitting.W_CHOICES]
    assert every["imbalance"] < two["imbalance"] < one["imbalance_floor"] <= one["imbalance"]
    assert every["merge_tuples"] > two["merge_tuples"] > one["merge_tuples"] == 0
    assert every["most_channels"] > two["most_channels"] == 2


def test_without_messages_nothing_is_defined():
    data = compare_splitting(Messages.of_column(pa.array([], pa.string())), [3]).rows[0].data
    undefined = ("imbalance", "imbalance_floor", "r_n", "r_floor", "b", "channels_per_key", "merge_share")
    assert all(data[name] is None for name in undefined)
    assert data["empty_channels"] == 3


def test_an_empty_comparison_is_refused():
    with pytest.raises(UsageError, match="at least one"):
        compare_splitting(MESSAGES, [])
    with pytest.raises(UsageError, match="at least one"):
        compare_splitting(MESSAGES, [3], splittings=[])
