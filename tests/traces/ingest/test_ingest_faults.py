"""Every write, sync and rename of an ingest made to fail in turn; and Spark's own writes."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapt.core.errors import AdaptError, BadInput, EnvironmentFailure, UsageError
from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.sources.source import Source
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions
from adapt.traces.store import disk
from adapt.traces.store.trace import open_trace
from tests.tiers import SOAK

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
        (Path.unlink, "frame", {}),
    ],
)
@pytest.mark.usefixtures("spark")
def test_a_source_that_changes_while_it_is_read_is_no_trace(tmp_path, monkeypatch, change, place, conf):
    source = tmp_path / "in.csv"
    source.write_text("ts,user\n" + "".join(f"2024-01-01T00:00:0{at}Z,u1\n" for at in range(10)))
    read = {"survey": Source._survey, "frame": Source.frame}[place]

    def changing(self, *given):
        change(source)
        return read(self, *given)

    monkeypatch.setattr(Source, read.__name__, changing)
    with pytest.raises(
        BadInput, match=r"in.csv changed while it was read; wait until nobody writes it, or give a copy"
    ):
        ingest([str(source)], tmp_path / "x.trace", Mapping("user"), spark_options=SparkOptions(conf=conf))
    assert not (tmp_path / "x.trace").exists()
