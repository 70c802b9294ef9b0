"""Traces read back: in blocks by rank, whatever the files, and never silently damaged."""

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.engines.names import Engine
from adapt.core.errors import BadInput, UsageError
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType
from adapt.core.units.seals import SEAL, as_json, hash_of
from adapt.traces.ingest.profile import Profiler
from adapt.traces.locations.run_folders import MANIFEST
from adapt.traces.store import trace as traces
from adapt.traces.store.manifest import TRACE_VERSION, Manifest, Provenance, write_manifest
from adapt.traces.store.trace import blocks_of, note_on_keys, open_trace, part_entry, read_pieces
from tests.traces import small_traces

ROWS = 300
FLIPS = 300


def table(rows: int = ROWS) -> pa.Table:
    """A small trace with nulls, empty keys, costs and streams."""
    return pa.table(
        {
            "ts": pa.array([1_700_000_000_000_000 + row * 1_000 for row in range(rows)], pa.timestamp("us", "UTC")),
            "key": pa.array([None if row % 7 == 0 else "" if row % 11 == 0 else f"k{row % 13}" for row in range(rows)]),
            "stream": pa.array([f"s{row % 120}" for row in range(rows)]),
            "cost_us": pa.array([None if row % 5 == 0 else row * 0.1 for row in range(rows)]),
            "bytes": pa.array([row * 3 for row in range(rows)]),
        }
    )


def write_parts(folder: Path, rows: pa.Table, part_rows: int, group_rows: int) -> list[dict]:
    """Those rows as parts of so many rows in row groups of so many; what the manifest says of them."""
    folder.mkdir()
    entries = []
    for number, begin in enumerate(range(0, len(rows), part_rows)):
        part = folder / f"part-{number:05d}.parquet"
        pq.write_table(
            rows.slice(begin, part_rows), part, row_group_size=group_rows, compression="zstd", write_page_checksum=True
        )
        entries.append(part_entry(folder, part))
    return entries


def write_trace(folder: Path, rows: pa.Table | None = None, part_rows: int = 120, group_rows: int = 50) -> Path:
    """A whole artefact of those rows."""
    rows = table() if rows is None else rows
    entries = write_parts(folder, rows, part_rows, group_rows)
    summary = {"rows": len(rows), "key_type": "string", "columns": rows.column_names, "profile": {}}
    write_manifest(folder, Manifest("trace", "0" * 64, Provenance("test"), entries, summary))
    return folder


def profile_of(folder: Path, rows: pa.Table, entries: list[dict]):
    times = rows["ts"].cast(pa.int64()).to_pylist()
    profiler = Profiler.over((times[0], times[-1]), len(rows), rows.schema)
    blocks = blocks_of(folder, entries)
    return profiler.merged(
        profiler.of_block(block.first_row, read_pieces(block.pieces, rows.column_names)) for block in blocks
    )


@given(st.integers(1, 60), st.integers(1, 40), st.integers(1, 40), st.integers(1, 25))
def test_blocks_are_cut_by_rank_whatever_the_files(tmp_path_factory, count, part_rows, group_rows, block_rows):
    rows = table(count)
    folder = tmp_path_factory.mktemp("cut") / "t"
    entries = write_parts(folder, rows, part_rows, group_rows)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(traces, "BLOCK_ROWS", block_rows)
        blocks = blocks_of(folder, entries)
    begin = 0
    for index, block in enumerate(blocks):
        held = pa.Table.from_batches(read_pieces(block.pieces, rows.column_names), rows.schema)
        assert block.index == index
        assert held.equals(rows.slice(begin, block_rows))
        begin += block.rows
    assert begin == count
    shutil.rmtree(folder)


@pytest.mark.parametrize(("part_rows", "group_rows"), [(ROWS, ROWS), (ROWS, 7), (100, 100), (101, 50), (1, 1)])
def test_the_content_hash_and_the_profile_do_not_depend_on_the_cut_into_files(
    tmp_path, monkeypatch, part_rows, group_rows
):
    """300 rows in three blocks, with tied keys, more streams than are kept of a small block, and costs that round."""
    monkeypatch.setattr(traces, "BLOCK_ROWS", 128)
    monkeypatch.setattr("adapt.traces.ingest.profile.KEYS_A_BLOCK", 5)
    rows = table()
    told = profile_of(tmp_path / "one", rows, write_parts(tmp_path / "one", rows, 64, 64))
    other = profile_of(tmp_path / "other", rows, write_parts(tmp_path / "other", rows, part_rows, group_rows))
    assert other == told


def test_a_trace_is_read_back_in_order_with_the_columns_asked_for(tmp_path):
    trace = open_trace(write_trace(tmp_path / "t"), check_all=True)
    assert pa.Table.from_batches(trace.batches()).equals(table())
    assert pa.Table.from_batches(trace.batches(["bytes", "key"])).equals(table().select(["bytes", "key"]))
    assert (trace.rows, trace.key_type, trace.columns) == (ROWS, KeyType.STRING, tuple(table().column_names))


def test_a_flipped_bit_is_told_or_changes_nothing(tmp_path):
    """Any bit of a part: sizes stay, so the footer's hash, the page checksums and the decoder must notice."""
    trace = open_trace(write_trace(tmp_path / "t"))
    part = tmp_path / "t" / "part-00001.parquet"
    written = part.read_bytes()
    random_bits = random.Random(20)
    noticed = 0
    for _ in range(FLIPS):
        bit = random_bits.randrange(len(written) * 8)
        flipped = bytearray(written)
        flipped[bit // 8] ^= 1 << bit % 8
        part.write_bytes(flipped)
        try:
            read = pa.Table.from_batches(trace.batches())
        except BadInput as told:
            noticed += 1
            if "part-00001.parquet is damaged" not in str(told):
                raise
        else:
            assert read.equals(table()), f"bit {bit}"
        with pytest.raises(BadInput, match=r"part-00001\.parquet is damaged: its SHA-256"):
            open_trace(tmp_path / "t", check_all=True)
    assert noticed > FLIPS // 2


def test_a_missing_part_is_named(tmp_path):
    trace = open_trace(write_trace(tmp_path / "t"))
    (tmp_path / "t" / "part-00000.parquet").unlink()
    with pytest.raises(BadInput, match=r"part-00000\.parquet is missing") as missing:
        open_trace(tmp_path / "t")
    assert missing.value.exit_code == 3
    with pytest.raises(BadInput, match=r"part-00000\.parquet is damaged"):
        list(trace.batches())


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"null", b"{}", b"[" * 100_000, b'{"format": 1}', b'{"format": 1, "seal": "0"}', b"\xff\xfe{"],
)
def test_a_manifest_that_is_none_is_damaged(tmp_path, text):
    write_trace(tmp_path / "t")
    (tmp_path / "t" / "_manifest.json").write_bytes(text)
    with pytest.raises(BadInput, match=r"_manifest\.json is damaged: .*; recreate the artefact"):
        open_trace(tmp_path / "t")


def rewritten(folder: Path, **changes: object) -> None:
    """The manifest with other fields, as a program of ours would have written it."""
    path = folder / "_manifest.json"
    data = {**json.loads(path.read_bytes()), **changes}
    del data[SEAL]
    path.write_bytes(as_json({**data, SEAL: hash_of(data)}))


def test_a_newer_format_is_refused_with_both_versions(tmp_path):
    write_trace(tmp_path / "t")
    rewritten(tmp_path / "t", format=TRACE_VERSION + 1)
    with pytest.raises(BadInput, match="has format 3, newer than 2; update adapt"):
        open_trace(tmp_path / "t")


def test_a_trace_of_the_first_format_reads_and_says_what_it_lacks(tmp_path):
    """It did not keep the type of keys in their source: they are placed by the wide type."""
    trace = small_traces.write_trace(tmp_path / "old.trace", {"ts": [1, 2, 3], "key": [1, 2, 1]})
    path = trace.path / MANIFEST
    data = json.loads(path.read_bytes())
    assert data.pop("format") == 2
    data["format"] = 1
    del data["summary"]["key_columns"], data["seal"]
    path.write_bytes(as_json({**data, "seal": hash_of(data)}))
    old = open_trace(trace.path)
    assert (old.key_type, old.key_columns) == (KeyType.INT64, ())
    assert note_on_keys(old.path, Engine.SPARK) == (
        f"{old.path} is of the first format, which did not keep the type of keys: spark places them as int64; if the"
        " source has narrower integers, ingest it again"
    )
    assert note_on_keys(old.path, Scheme.UNIFORM) == ""


def test_a_trace_may_lack_times(tmp_path):
    """Its keys can be read; what needs times says so."""
    trace = small_traces.write_trace(tmp_path / "t", {"ts": [1, 2, 3], "key": ["a", "b", "a"]}, parts=1)
    part = trace.path / "part-00000.parquet"
    pq.write_table(pq.read_table(part).drop(["ts"]), part, write_page_checksum=True)
    summary = {**trace.manifest.summary, "columns": ["key"], "first_us": None, "last_us": None}
    entries = [part_entry(trace.path, part)]
    write_manifest(trace.path, replace(trace.manifest, files=entries, summary=summary))
    keys = open_trace(trace.path)
    assert [batch.column("key").to_pylist() for batch in keys.batches()] == [["a", "b", "a"]]
    assert "without times" in repr(keys)
    for asks in (lambda: keys.first_us, lambda: keys.last_us, lambda: list(keys.batches(["ts", "key"]))):
        with pytest.raises(UsageError, match="has no times, which this needs"):
            asks()
