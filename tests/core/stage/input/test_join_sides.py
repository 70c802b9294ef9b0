"""Two streams in one trace: sides, numbers of keys, and what is no pair of sides."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput
from adapt.core.keys.names import HashName
from adapt.core.stage.conditions.growth import NEITHER
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.mini_partitions import MiniPartitions, Sides


def batch(keys, sides, encoded=False):
    columns = [pa.array(keys, pa.string()), pa.array(sides)]
    if encoded:
        columns = [column.dictionary_encode() for column in columns]
    times = pa.array(range(len(keys)), pa.timestamp("us", "UTC"))
    return pa.record_batch([times, *columns], ["ts", "key", "venue"])


KEYS = ["b", None, "a", "b", "", "c", None]
SIDES = ["west", "east", "east", "west", "east", "west", "west"]


@pytest.mark.parametrize("encoded", [False, True])
def test_keys_have_numbers_and_rows_sides_but_for_those_without_a_key(encoded):
    rows = batch(KEYS, SIDES, encoded)
    sides = Sides.from_batches("venue", "key", [rows.slice(0, 3), rows.slice(3)])
    assert sides.values.to_pylist() == ["east", "west"]
    assert len(sides.groups.keys) == 5
    groups = sides.groups.groups_of(rows["key"])
    assert [sides.groups.keys[int(group)].as_py() for group in groups] == KEYS
    assert sides.sides_of(rows["venue"], rows["key"]).tolist() == [1, NEITHER, 0, 1, 0, 1, NEITHER]


def test_the_partition_of_a_key_is_that_of_its_rows():
    partitions = MiniPartitions(3, 4, HashName.MURMUR3)
    rows = batch(KEYS, SIDES)
    sides = Sides.from_batches("venue", "key", [rows])
    assert np.array_equal(
        sides.groups.partitions_by(partitions)[sides.groups.groups_of(rows["key"])],
        partitions.partitions_of(rows["key"]),
    )


def test_rows_are_read_with_side_and_time():
    rows = batch(KEYS, SIDES)
    sides = Sides.from_batches("venue", "key", [rows])
    reading = Reading(MiniPartitions(3, 4), speedup=0.5, until_s=8e-6, sides=sides)
    assert reading.columns == ["ts", "key", "venue"]
    (chunk,) = reading.rows(lambda: [rows]).chunks()
    assert chunk.due_s.tolist() == pytest.approx([0, 2e-6, 4e-6, 6e-6, 8e-6])
    assert chunk.times.tolist() == [0, 1, 2, 3, 4]
    assert chunk.sides.tolist() == [1, NEITHER, 0, 1, 0]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["a", "b", "c"], "a join needs a column with two values; 'venue' has 'a', 'b', 'c'"),
        (list("abcdefgh"), "'a', 'b', 'c', 'd', 'e' and more"),
        (["a", "a"], "'venue' is 'a' in all rows"),
        ([1, 2, 3], "has 1, 2, 3"),
        (["a", None, "b"], "1 rows after row 0 have no 'venue'"),
    ],
)
def test_what_has_not_two_sides_is_refused(values, said):
    with pytest.raises(BadInput, match=said):
        Sides.from_batches("venue", "key", [batch(["k"] * len(values), values)])


def test_a_side_may_be_of_any_type():
    sides = Sides.from_batches("venue", "key", [batch(["k", "k", "l"], [False, True, False])])
    assert sides.sides_of(pa.array([True, False]), pa.array(["k", "k"])).tolist() == [1, 0]
