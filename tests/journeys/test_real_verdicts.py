"""The verdict on each key of the real traces: read without Spark, counted exactly, at 8 and 10 channels."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pytest

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.engines.names import Engine
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.verdict.stream_verdict import judge
from adapt.core.verdict.verdict_class import VerdictClass


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


NONE, PLACED, OTHER = {VerdictClass.BALANCED}, {VerdictClass.PINNING}, {VerdictClass.ANOTHER_KEY}
WHOLE = NONE | PLACED
"""Whole keys can be even; whether they are, the hash of the engine decides."""

WIKI, REVIEWS = "wiki-edits/wikiticker-2015-09-12-sampled.json.gz", "reviews/anonreviews.csv.bz2"
FLIGHTS, WEBLOG, TAXI = "flights/flights.csv.gz", "weblog-2015/apache_logs", "taxi/taxi-traces.csv"


def words(path: Path, column: int) -> pa.ChunkedArray:
    return lines(path, column, " ")


@pytest.mark.parametrize(
    ("file", "read", "column", "at_8", "at_10"),
    [
        (WIKI, edits, "channel", OTHER, OTHER),
        (WIKI, edits, "user", PLACED, PLACED),
        (WIKI, edits, "page", NONE, NONE),
        (REVIEWS, lines, 1, PLACED, PLACED),
        (REVIEWS, lines, 0, NONE, NONE),
        (FLIGHTS, lines, 11, PLACED, PLACED),
        (FLIGHTS, lines, 10, OTHER, OTHER),
        (FLIGHTS, lines, 8, NONE, NONE),
        (WEBLOG, hosts, 0, WHOLE, WHOLE),
        (WEBLOG, hosts, 6, PLACED, PLACED),
        ("messages/CollegeMsg.txt", words, 0, WHOLE, WHOLE),
        ("messages/CollegeMsg.txt", words, 1, WHOLE, WHOLE),
        (TAXI, lines, 1, PLACED, PLACED),
    ],
)
def test_the_action_is_named(real_traces, file, read, column, at_8, at_10):
    keys = pc.cast(read(real_traces(file), column), pa.string())
    frequencies = frequencies_of(count_keys(keys))
    for channels, classes in ((8, at_8), (10, at_10)):
        found = judge(frequencies, make_partitioner(Engine.SPARK, channels), "spark")
        assert found.verdict_class in classes, found.sentences
        if found.verdict_class is VerdictClass.PINNING:
            assert found.imbalance_after <= found.max_imbalance
