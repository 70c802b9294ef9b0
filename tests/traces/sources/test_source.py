"""The source as a table: texts of chosen lines, attempts of one task side by side."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.traces.sources.names import FormatName
from adapt.traces.sources.reading.blocks import BLOCK_BYTES, Block
from adapt.traces.sources.reading.files import source_files
from adapt.traces.sources.source import _by_block
from adapt.traces.store import disk


def test_lines_go_to_the_block_that_holds_them(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("x\n")
    a, b = source_files([str(tmp_path)])
    blocks = [Block(0, a, 0, 10, 1), Block(0, a, 10, 10, 4), Block(0, a, 20, None, 9), Block(1, b)]
    assert _by_block(blocks, {0: [3, 4, 8], 1: [7]}) == {0: [3], 1: [4, 8], 3: [7]}
    assert _by_block(blocks, {0: [9, 10_000]}) == {2: [9, 10_000]}
    assert _by_block(blocks, {}) == {}


def test_texts_of_both_ends_of_a_large_file_are_those_lines_alone(tmp_path, opened):
    line = f"{'x' * 99},1"
    lines = 2 * BLOCK_BYTES // (len(line) + 1)
    path = tmp_path / "in.csv"
    path.write_text("key,n\n" + f"{line}\n" * (lines - 1) + "end,2\n")
    source = opened(path, format=FormatName.CSV, delimiter=",", header=True)
    rows = source.texts({0: [2, lines + 1]}).collect()
    assert sorted((row["_line"], row["_text"]) for row in rows) == [(2, line), (lines + 1, "end,2")]


def test_two_attempts_at_one_file_leave_one_complete_file(tmp_path):
    path, table = tmp_path / "block.parquet", pa.table({"n": list(range(1000))})
    with disk.complete_file(path, 1) as first:
        pq.write_table(table.slice(0, 10), first)
        with disk.complete_file(path, 2) as second:
            pq.write_table(table, second)
            assert not path.exists()
        assert pq.read_table(path) == table
        pq.write_table(table, first)
    assert [each.name for each in tmp_path.iterdir()] == ["block.parquet"]
    assert pq.read_table(path) == table


def test_an_attempt_that_fails_leaves_nothing(tmp_path):
    def fail():
        with disk.complete_file(tmp_path / "block.parquet", 1) as path:
            path.write_bytes(b"half")
            raise ValueError("half")

    with pytest.raises(ValueError, match="half"):
        fail()
    assert list(tmp_path.iterdir()) == []
