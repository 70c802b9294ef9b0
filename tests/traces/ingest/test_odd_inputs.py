"""Malformed and odd inputs: each row of them is kept or refused as the table says, or the whole is, in a sentence."""

import re
import shlex
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.traces.ingest.ingest import IngestOptions, ingest
from tests.traces.ingest.odd_inputs import GROUPS, REFUSED, Group, Odd


def found_in(folder: Path, group: Group) -> dict[str, Odd]:
    """What an ingest of the files of a group makes of each."""
    source = folder / "in"
    source.mkdir()
    for file, odd in group.files.items():
        (source / file).write_bytes(odd.content)
    trace = ingest(
        [str(source)], folder / "out", group.mapping, IngestOptions(reading=group.reading, time_zone=group.time_zone)
    ).trace
    kept: dict[str, list[object]] = {file: [] for file in group.files}
    for row in pa.Table.from_batches(trace.batches()).select(["stream", "key"]).to_pylist():
        kept[row["stream"].split("/")[0]].append(row["key"])
    refused: dict[str, Counter[str]] = {file: Counter() for file in group.files}
    if trace.manifest.summary["rejects"]["rows"]:
        for reject in pq.read_table(trace.path / "_rejects").to_pylist():
            refused[reject["file"].split("/")[0]][reject["reason"]] += 1
    return {
        file: Odd(b"", len(kept[file]), dict(refused[file]), tuple(kept[file]) if odd.keys else None)
        for file, odd in group.files.items()
    }


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", GROUPS)
def test_every_row_is_kept_or_refused_as_the_table_says(tmp_path, name):
    found = found_in(tmp_path, GROUPS[name])
    assert found == {file: Odd(b"", odd.kept, odd.refused, odd.keys) for file, odd in GROUPS[name].files.items()}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_trace_is_refused_in_one_sentence_and_leaves_nothing(adapt, tmp_path, name):
    refused = REFUSED[name]
    folder = tmp_path / "in"
    folder.mkdir()
    if isinstance(refused.content, bytes):
        (folder / "in.csv").write_bytes(refused.content)
    else:
        refused.content(folder)
    sentence = adapt.refused(
        refused.code, "ingest", folder / refused.name, *shlex.split(refused.options), "-o", tmp_path / "out"
    )
    assert refused.says in sentence
    assert not re.search(r"Exception|Traceback|java\.|org\.apache|\tat ", sentence), sentence
    assert len(sentence) < 700
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
