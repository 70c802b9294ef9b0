"""What a comparison says of each key of the real traces: read without Spark, counted exactly, 10 channels."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pytest

from adapt.core.frequencies.exact import count_keys, frequencies_of
from adapt.core.frequencies.tables import heaviest_key
from adapt.core.partitioners.compare import compare_schemes
from adapt.core.report.verdict import Cure, verdict


def edits(path: Path, column: str) -> pa.ChunkedArray:
    with gzip.open(path) as source:
        return pyarrow.json.read_json(source).column(column)


def lines(path: Path, column: int, delimiter: str = ",") -> pa.ChunkedArray:
    kind = path.suffix.lstrip(".")
    opened = pa.input_stream(str(path), compression={"bz2": "bz2", "gz": "gzip"}.get(kind))
    read = pyarrow.csv.ReadOptions(autogenerate_column_names=True)
    return pyarrow.csv.read_csv(opened, read, pyarrow.csv.ParseOptions(delimiter=delimiter)).column(column)


def hosts(path: Path, part: int) -> pa.Array:
    text = pa.array(path.read_text(errors="replace").splitlines())
    return pc.list_element(pc.split_pattern(text, " "), part)


NONE, PLACED, SPLIT = Cure.NONE_NEEDED, Cure.PLACEMENT, Cure.SPLITTING


@pytest.mark.parametrize(
    ("file", "read", "column", "cure"),
    [
        ("wiki-edits/wikiticker-2015-09-12-sampled.json.gz", edits, "channel", SPLIT),
        ("wiki-edits/wikiticker-2015-09-12-sampled.json.gz", edits, "user", PLACED),
        ("wiki-edits/wikiticker-2015-09-12-sampled.json.gz", edits, "page", NONE),
        ("reviews/anonreviews.csv.bz2", lines, 1, PLACED),
        ("reviews/anonreviews.csv.bz2", lines, 0, NONE),
        ("flights/flights.csv.gz", lines, 11, PLACED),
        ("flights/flights.csv.gz", lines, 10, SPLIT),
        ("flights/flights.csv.gz", lines, 8, NONE),
        ("weblog-2015/apache_logs", hosts, 0, PLACED),
        ("weblog-2015/apache_logs", hosts, 6, PLACED),
        ("messages/CollegeMsg.txt", lambda path, at: lines(path, at, " "), 0, PLACED),
        ("messages/CollegeMsg.txt", lambda path, at: lines(path, at, " "), 1, PLACED),
        ("taxi/taxi-traces.csv", lines, 1, PLACED),
    ],
)
def test_the_cure_is_named(real_traces, file, read, column, cure):
    keys = pc.cast(read(real_traces(file), column), pa.string())
    frequencies = frequencies_of(count_keys(keys))
    compared = compare_schemes(frequencies, [10])
    found = verdict(compared.table(), 1.2, heaviest_key(frequencies))
    assert found.cure is cure, found.sentence
