"""Writes that fail and bytes that change: a whole trace, or a sentence and nothing."""

import errno
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapt.core.errors import AdaptError, BadInput, EnvironmentFailure, UsageError
from adapt.traces.ingest.ingest import IngestOptions, ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.sources.formats.delimited import Delimited
from adapt.traces.sources.formats.json_lines import JsonLines
from adapt.traces.sources.reading import blocks
from adapt.traces.sources.reading.blocks import PATH, cut, read_blocks
from adapt.traces.sources.reading.files import source_files, unpacked
from adapt.traces.sources.reading.records import RecordFormat
from adapt.traces.sources.sniff import ReadOptions, recognize
from adapt.traces.sources.source import Source
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions
from adapt.traces.store import disk
from adapt.traces.store.trace import open_trace
from tests.tiers import SOAK
from tests.traces.ingest.mutation import GOOD, changes_of, mutated, mutations
from tests.traces.sources.plain_records import plain_lines, plain_records

STEPS = ("make_folder", "write_bytes", "sync", "rename", "exchange", "remove_tree")
ROWS = 12

ON_SPARK = SparkOptions(runner=RunnerName.SPARK)


@pytest.fixture
def source(tmp_path) -> Path:
    """Twelve good rows and one that is refused, so that rejects are written too."""
    path = tmp_path / "source.csv"
    rows = [f"{1_700_000_000 + row},k{row % 3},{row}" for row in range(ROWS)]
    path.write_text("\n".join(["ts,key,bytes", *rows, "never,k,1", ""]))
    return path


def run(source: Path, target: Path, **options: Any) -> None:
    ingest([str(source)], target, Mapping("key", time="ts", bytes="bytes", time_format="epoch_s"), **options)


def whole(target: Path) -> bool:
    """Whether a complete trace stands there; anything else that stands there fails the test."""
    if not target.exists():
        return False
    trace = open_trace(target, check_all=True)
    assert trace.rows == sum(batch.num_rows for batch in trace.batches()) == ROWS
    return True


STEP = 1 if SOAK else 3
"""Which touches of the disk fail: every one, or every third."""


@pytest.mark.usefixtures("spark")
def test_every_touch_of_the_disk_may_fail_while_ingesting(source, tmp_path, monkeypatch):
    """After each failure nothing or all stands there and nothing lies beside it, so that the next run begins anew."""
    target = tmp_path / "web.trace"
    calls = fails_at = 0
    failed = ""

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            nonlocal calls, failed
            calls += 1
            if calls == fails_at:
                failed = name
                raise OSError((number := (errno.EIO, errno.ENOSPC)[calls % 2]), os.strerror(number))
            return real(*args)

        return call

    for name in STEPS:
        monkeypatch.setattr(disk, name, counted(name, getattr(disk, name)))
    while True:
        calls, fails_at, failed = 0, fails_at + STEP, ""
        try:
            run(source, target)
        except EnvironmentFailure as failure:
            if not failed or ("disk is full" in str(failure)) != (fails_at % 2 == 1):
                raise
        complete = whole(target)
        assert sorted(os.listdir(tmp_path)) == ["source.csv", *(["web.trace"] if complete else [])], (fails_at, failed)
        if not failed:
            break
        if complete:
            disk.remove_tree(target)
    assert complete
    assert fails_at > 12


@pytest.mark.parametrize("nth", [1, 2])
def test_a_write_of_spark_may_fail(spark, source, tmp_path, monkeypatch, nth):
    """Spark writes the refused rows and the sorted ones; its folder is taken away under it."""
    from pyspark.sql import DataFrameWriter

    real = DataFrameWriter.parquet
    writes = []

    def parquet(self: Any, path: str, *args: Any, **options: Any) -> None:
        writes.append(path)
        if len(writes) == nth:
            Path(path).write_text("a file where Spark needs a folder")
        real(self, path, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(DataFrameWriter, "parquet", parquet)
        with pytest.raises(AdaptError) as failure:
            run(source, tmp_path / "web.trace", spark_options=ON_SPARK)
    assert "\n" not in str(failure.value)
    assert len(writes) == nth
    assert os.listdir(tmp_path) == ["source.csv"]
    assert spark.range(3).count() == 3


@pytest.mark.parametrize("parts", ["0", "1.5"])
def test_a_number_of_parts_that_is_none_is_refused_before_spark_starts(source, tmp_path, parts):
    with pytest.raises(UsageError, match=rf"shuffle.partitions must be at least 1 \(got {parts}\)"):
        run(source, tmp_path / "t", spark_options=SparkOptions(conf={"spark.sql.shuffle.partitions": parts}))


def _in_place(path: Path) -> None:
    """Other rows of the same size, with the old time of change."""
    times = path.stat()
    path.write_bytes(path.read_bytes().replace(b"u1", b"u9"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def _replaced(path: Path) -> None:
    other = path.with_name("other")
    shutil.copy2(path, other)
    _in_place(other)
    other.replace(path)


def _appended(path: Path) -> None:
    with path.open("a") as file:
        file.write("2024-01-01T00:09:00Z,u1\n")


@pytest.mark.parametrize(
    ("change", "place", "conf"),
    [
        (_appended, "survey", {}),
        (_replaced, "frame", {"spark.sql.shuffle.partitions": "2"}),
        (_in_place, "survey", {"spark.sql.shuffle.partitions": "2"}),
        (Path.unlink, "sifted", {}),
    ],
)
@pytest.mark.usefixtures("spark")
def test_a_source_that_changes_while_it_is_read_is_no_trace(tmp_path, monkeypatch, change, place, conf):
    source = tmp_path / "in.csv"
    source.write_text("ts,user\n" + "".join(f"2024-01-01T00:00:0{at}Z,u1\n" for at in range(10)))
    read = {"survey": Source._survey, "frame": Source.frame, "sifted": Source.sifted}[place]

    def changing(self, *given):
        change(source)
        return read(self, *given)

    monkeypatch.setattr(Source, read.__name__, changing)
    with pytest.raises(
        BadInput, match=r"in.csv changed while it was read; wait until nobody writes it, or give a copy"
    ):
        ingest([str(source)], tmp_path / "x.trace", Mapping("user"), spark_options=SparkOptions(conf=conf))
    assert not (tmp_path / "x.trace").exists()


def read_below_spark(path: Path, reading: ReadOptions) -> None:
    """All that a Spark task does to the files: each record is kept or refused, once, on a line of its own."""
    files = source_files([str(path)])
    form = recognize(files, reading).form
    if not isinstance(form, RecordFormat):
        return  # has become Parquet, ORC or Avro
    for at, file in enumerate(files):
        with unpacked(file) as stream:
            text = stream.read()
        rows = list(read_blocks(cut(at, file, form), form, [*form.columns, PATH], with_text=True))
        if isinstance(form, JsonLines) and not form.layout.of_lines:
            continue  # an object may take many lines
        lines = [line for batch in rows for line in batch.column("_line").to_pylist()]
        bare = text.removeprefix(b"\xef\xbb\xbf")
        delimited = isinstance(form, Delimited) and (form.delimiter, form.quote) == (",", '"')
        counted = plain_records(bare) if delimited else plain_lines(bare)
        if delimited and form.comment:
            counted = [each for each in counted if not bare.startswith(form.comment.encode(), each[0])]
        if delimited or not isinstance(form, Delimited):
            headed = form.header is not None and counted != []
            assert len(lines) == len(counted) - headed
            assert lines == [line + 1 for _, _, line, _ in counted][headed:]
        for batch in rows:
            batch.validate(full=True)
            for name in form.columns:
                kept = batch.filter(batch.column("_reason").is_null())
                assert not isinstance(form, Delimited) or kept.column(name).null_count == 0


def refusal(path: Path, reading: ReadOptions) -> AdaptError | None:
    """Why a file is refused as a whole, if it is."""
    try:
        read_below_spark(path, reading)
    except AdaptError as error:
        return error
    return None


@settings(
    max_examples=6000 if SOAK else 300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.sampled_from(sorted(GOOD)), mutations, st.sampled_from([64, 1 << 23]))
def test_every_record_of_a_mutated_file_is_kept_or_refused(tmp_path, name, changes, chunk):
    path = tmp_path / "in"
    path.write_bytes(mutated(GOOD[name].content, changes))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(blocks, "CHUNK_BYTES", chunk)
        refused = refusal(path, GOOD[name].reading)
    if refused is not None:
        assert "\n" not in str(refused)
        assert refused.exit_code in (2, 3)


MAPPINGS = {
    "csv": Mapping("key", "ts", cost="cost", cost_unit="us", stream=PATH, time_format="iso"),
    "json": Mapping("key", "ts", cost="cost", cost_unit="us", stream=PATH, time_format="iso"),
    "log": Mapping("host", "time", bytes="bytes", stream=PATH),
}
COUNTED = {"csv": plain_records, "json": plain_lines, "log": plain_lines}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", MAPPINGS if SOAK else ["json"])
@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
def test_an_ingest_of_many_mutated_files_keeps_or_refuses_every_record(tmp_path, name, seed):
    random, good = Random(f"{name} {seed}"), GOOD[name]
    source = tmp_path / "in"
    source.mkdir()
    counted: dict[str, int] = {}
    for at in range(50):
        path = source / f"{at:02}"
        content = mutated(good.content, changes_of(random))
        path.write_bytes(content)
        if not content.strip() or refusal(path, good.reading) is not None:
            path.unlink()
        else:
            counted[path.name] = len(COUNTED[name](content.removeprefix(b"\xef\xbb\xbf")))
    assert len(counted) > 25
    trace = ingest([str(source)], tmp_path / "out", MAPPINGS[name], IngestOptions(reading=good.reading)).trace
    found = Counter(pa.Table.from_batches(trace.batches())["stream"].to_pylist())
    found.update(pq.read_table(trace.path / "_rejects")["file"].to_pylist())
    assert found == counted
    assert open_trace(trace.path, check_all=True).rows == trace.rows


TABLE = pa.table({"ts": pa.array(range(500), pa.timestamp("us")), "key": [f"u{at % 7}" for at in range(500)]})


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("seed", range(200 if SOAK else 2))
def test_a_mutated_parquet_file_is_read_whole_or_refused_and_leaves_nothing(tmp_path, seed):
    random = Random(seed)
    path, out = tmp_path / "in", tmp_path / "out"
    pq.write_table(TABLE, path, compression=random.choice(["none", "snappy", "zstd", "gzip"]), write_page_checksum=True)
    path.write_bytes(mutated(path.read_bytes(), changes_of(random)[: random.randint(1, 2)]))
    try:
        trace = ingest([str(path)], out, Mapping("key", "ts")).trace
    except AdaptError as error:
        refused = error
    else:
        assert trace.rows + trace.manifest.summary["rejects"]["rows"] == pq.read_metadata(path).num_rows
        return
    assert "\n" not in str(refused)
    assert refused.exit_code in (2, 3)
    assert sorted(os.listdir(tmp_path)) == ["in"]
