"""Sources in an object store: what a local file gives, or one sentence."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.errors import BadInput
from adapt.traces.ingest.ingest import IngestOptions, ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.ingest.streams import Stream
from adapt.traces.locations import failures
from adapt.traces.sources.reading.blocks import BlockFormat
from adapt.traces.sources.reading.files import source_files
from adapt.traces.sources.reading.records import RecordFormat
from adapt.traces.sources.reading.table_files import stored_tables
from adapt.traces.sources.sniff import ReadOptions, recognize
from adapt.traces.sources.source import _cut, _read
from tests.tiers import soak
from tests.traces.sources.test_contract import CASES, PACKED, put

ROWS = "".join(f"{1_700_000_000 + row * 7 % 50},k{row % 7},{row}\n" for row in range(50))
CSV = f"ts,key,bytes\n{ROWS}".encode()
MAPPING = Mapping("key", time="ts", bytes="bytes", time_format="epoch_s")


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Requests are repeated without a wait."""
    monkeypatch.setattr(failures, "_FIRST_WAIT_S", 0.001)


def content(sources, folder, mapping=MAPPING, options=None):
    return ingest(list(map(str, sources)), folder, mapping, options, force=True).trace.manifest.content_hash


def rows_of(source, reading=None):
    """The rows of a source as its blocks give them."""
    files = source_files([str(source)])
    found = recognize(files, reading or ReadOptions())
    form = found.form if isinstance(found.form, RecordFormat | BlockFormat) else stored_tables(found.form, files)
    blocks = [block for at, file in enumerate(files) for block in _cut(at, file, form)]
    return [row for batch in _read(blocks, [form] * len(files), form.columns) for row in batch.to_pylist()]


def copied(folder: Path, place: Path) -> Path:
    for path in folder.rglob("*"):
        if path.is_file():
            (place / str(path.relative_to(folder))).write_bytes(path.read_bytes())
    return place


@pytest.mark.parametrize("name", [name for name in CASES if name != "orc"])
def test_every_format_is_read_from_a_store_as_from_a_disk(bucket, tmp_path, name):
    case = CASES[name]
    put(tmp_path, case)
    for path in tmp_path.iterdir():
        (bucket / path.name).write_bytes(path.read_bytes())
    assert rows_of(bucket, case.reading) == rows_of(tmp_path, case.reading)


@soak
@pytest.mark.usefixtures("spark")
def test_a_trace_of_every_format_from_a_store_is_that_from_a_disk(bucket, tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    streams = []
    for name, case in CASES.items():
        put(source, case, name)
        values = ", ".join(f"'{column}', string({column})" for column in (case.key, *case.keep))
        mapping = Mapping(f"to_json(named_struct({values}))", case.time)
        streams.append(Stream(name, mapping, case.reading, paths=(f"{name}-?",)))
    options = IngestOptions(streams=streams)
    local = content([source], tmp_path / "a.trace", Mapping(""), options)
    assert content([copied(source, bucket / "in")], tmp_path / "b.trace", Mapping(""), options) == local


@pytest.mark.parametrize("container", PACKED)
def test_every_compression_is_read_from_a_store(bucket, tmp_path, container):
    (tmp_path / "a.csv").write_bytes(CSV)
    (bucket / "a.csv").write_bytes(PACKED[container](CSV))
    assert rows_of(bucket / "a.csv") == rows_of(tmp_path / "a.csv")


@pytest.mark.usefixtures("spark")
def test_types_partition_folders_and_missing_columns_are_as_spark_reads_them(bucket, tmp_path):
    times = pa.array([1_700_000_000_123_456_789, None, 3], pa.timestamp("ns"))
    columns = {
        "ts": pa.array([3, 1, 2], pa.timestamp("ms", "Europe/Berlin")),
        "key": pa.array(["a", None, "c"]).dictionary_encode(),
        "large": pa.array([2**64 - 1, 0, None], pa.uint64()),
        "nanos": times,
        "plain": times.cast(pa.timestamp("us"), safe=False),
        "nested": pa.array([{"x": [1, 2]}, {"x": None}, None]),
    }
    for day, names in (("2024-01-01", [*columns]), ("2024-01-02", ["ts", "key", "nested"])):
        folder = tmp_path / "in" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table(columns).select(names), folder / "part.parquet", row_group_size=2)
    kept = Mapping("key", time="ts", bytes="coalesce(nested.x[1], 7)", keep=("large", "nanos", "plain", "day"))
    local = content([tmp_path / "in"], tmp_path / "a.trace", kept)
    assert content([copied(tmp_path / "in", bucket / "in")], tmp_path / "b.trace", kept) == local


def test_globs_prefixes_and_single_objects_are_labelled_as_files_are(bucket):
    for name in ("in/a.csv", "in/deep/b.csv", "in/_c.csv", "in/.d/e.csv", "in/deep/", "other.csv"):
        (bucket / name).write_bytes(CSV)
    labels = {
        "in": ["a.csv", "deep/b.csv"],
        "in/": ["a.csv", "deep/b.csv"],
        "in/*.csv": ["_c.csv", "a.csv"],
        "in/**/b*": ["deep/b.csv"],
        "*.csv": ["other.csv"],
        "other.csv": ["other.csv"],
    }
    assert {name: [file.label for file in source_files([f"{bucket}{name}"])] for name in labels} == labels


def test_a_preview_reads_the_beginning_alone(bucket, adapt):
    (bucket / "a.csv").write_bytes(CSV * 20_000)
    with pytest.MonkeyPatch.context() as patched:
        ranges = []
        from adapt.traces.locations.clients import _Objects

        real = _Objects.read

        def read(self, key, span, version):
            ranges.append(span)
            return real(self, key, span, version)

        patched.setattr(_Objects, "read", read)
        assert "available: ts, key, bytes" in adapt.refused(2, "ingest", f"{bucket}a.csv", "-o", "x.trace")
    assert sum(end - start for start, end in ranges) < 1 << 20


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("s3://{near}/a.csv", "there is no such bucket; did you mean '{name}'?"),
        ("s3://{name}/nonw", "there is no such object, nor any below that prefix; did you mean 'none'?"),
        ("s3://{name}/b*.csv", "no object matches"),
    ],
)
def test_a_source_that_is_not_there_is_refused_with_a_suggestion(bucket, source, message):
    (bucket / "none" / "a.txt").write_bytes(b"")
    names = {"name": bucket.name, "near": f"{bucket.name[:-1]}"}
    with pytest.raises(BadInput) as failure:
        source_files([source.format(**names)])
    assert str(failure.value) == f"{source.format(**names)}: {message.format(**names)}"


def test_a_half_uploaded_object_is_not_there(s3_server, bucket):
    place = f"{bucket.bucket}/in/a.csv"
    upload = re.search(b"<UploadId>(.+)</UploadId>", s3_server.send("POST", f"{place}?uploads"))[1].decode()
    s3_server.send("PUT", f"{place}?partNumber=1&uploadId={upload}", CSV)
    with pytest.raises(BadInput, match="there is no such object, nor any below that prefix"):
        source_files([f"{bucket}in"])


@pytest.mark.parametrize("change", ["changed", "vanished"])
def test_an_object_that_changes_while_it_is_read_is_refused(s3_server, bucket, proxy, change):
    path = bucket / "a.csv"
    path.write_bytes(CSV)
    reads = 0

    def interfere(request):
        nonlocal reads
        reads += request.reads
        if reads == 3:
            reads += 1
            s3_server.send("PUT" if change == "changed" else "DELETE", f"{bucket.bucket}/a.csv", CSV + CSV)

    proxy.failing = interfere
    with pytest.raises(BadInput, match=rf"a\.csv {change} while it was read; run again once nothing"):
        rows_of(path)
