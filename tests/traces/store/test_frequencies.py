"""Counted keys on disk and as CSV: read back as they were, or refused with the line or file at fault."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies, MeasuredColumn
from adapt.core.stream import Weight
from adapt.traces.store.frequencies import read_frequencies, write_frequencies
from adapt.traces.store.manifest import Provenance

MADE = Provenance("test", {"weight": "count"})
COLUMNS = {
    "string": pa.array(["a", None, "", "ü"]),
    "int64": pa.array([1, None, -(2**63), 256], pa.int64()),
    "binary": pa.array([b"\xff", None, b"", b"a"], pa.binary()),
}


def counted(keys: pa.Array, counts=(7, 5, 5, 1), weight: Weight = Weight.COUNT) -> Frequencies:
    return frequencies_of(KeyCounts(keys, np.array(counts), 18), weight)


def same(one: Frequencies, other: Frequencies) -> bool:
    return (
        one.keys.equals(other.keys)
        and one.count_low.tolist() == other.count_low.tolist()
        and one.count_high.tolist() == other.count_high.tolist()
        and one.count_low.dtype == other.count_low.dtype
        and (one.total, one.rows, one.weight, one.epsilon, one.complete_above, one.distinct)
        == (other.total, other.rows, other.weight, other.epsilon, other.complete_above, other.distinct)
    )


@pytest.mark.parametrize("keys", COLUMNS.values(), ids=COLUMNS)
def test_counted_keys_are_read_back_as_they_were(tmp_path, keys):
    written = write_frequencies(counted(keys), tmp_path / "f", MADE)
    read, manifest = read_frequencies(tmp_path / "f", check_all=True)
    assert same(read, counted(keys))
    assert manifest.content_hash == written.content_hash
    assert manifest.made == replace(MADE, inputs=[])


def test_measured_columns_are_read_back_and_are_part_of_the_content(tmp_path):
    plain = counted(COLUMNS["string"])
    columns = MeasuredColumn("bytes", np.array([0.1 + 0.2, 0, 5, 7]), 99.5), MeasuredColumn("count", np.ones(4), 4.0)
    measured = replace(plain, measured=columns)
    written = write_frequencies(measured, tmp_path / "f", MADE)
    read, _ = read_frequencies(tmp_path / "f", check_all=True)
    assert same(read, plain)
    assert [(c.source, c.values.tolist(), c.total) for c in read.measured] == [
        (c.source, c.values.tolist(), c.total) for c in columns
    ]
    assert written.content_hash != write_frequencies(plain, tmp_path / "plain", MADE).content_hash
    assert read_frequencies(tmp_path / "plain")[0].measured == ()


def test_the_content_hash_tells_counts_apart_and_not_the_makers(tmp_path):
    one = write_frequencies(counted(COLUMNS["string"]), tmp_path / "1", MADE)
    same_counts = write_frequencies(counted(COLUMNS["string"]), tmp_path / "2", Provenance("another"))
    other = write_frequencies(counted(COLUMNS["string"], (7, 5, 5, 2)), tmp_path / "3", MADE)
    assert one.content_hash == same_counts.content_hash != other.content_hash
