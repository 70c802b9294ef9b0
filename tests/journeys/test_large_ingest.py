"""Large sources, and tasks that Spark runs twice: the trace is that of an undisturbed ingest."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from adapt.traces.store.trace import open_trace
from tests.journeys.processes import standalone, started
from tests.tiers import soak

pytestmark = soak

CHUNK, BYTES = 400_000, 731_000_000
READING = ("--key", "key", "--time", "ts", "--time-format", "epoch_s", "--bytes", "bytes")
SPECULATION = {
    "speculation": "true",
    "speculation.interval": "100ms",
    "speculation.quantile": "0.1",
    "speculation.multiplier": "1.1",
    "speculation.minTaskRuntime": "100ms",
}
SLOW = """
import os, time

def slowed(move):
    def moved(source, target, **options):
        from pyspark import TaskContext
        context = TaskContext.get()
        if context is not None and context.partitionId() == 0:
            if context.attemptNumber() == 0:
                time.sleep(10)
            with open({log!r}, "a") as log:
                print(context.attemptNumber(), file=log)
        return move(source, target, **options)
    return moved

os.rename, os.replace = slowed(os.rename), slowed(os.replace)
"""
"""Makes the first attempt of the first task wait before it names a file, and notes each attempt."""


def rows(number):
    """Some rows of a source, as CSV: keys are skewed, times are in no order."""
    draw = np.random.default_rng(number)
    table = {
        "ts": 1_700_000_000 + draw.integers(0, 10**6, CHUNK),
        "key": pa.array([f"key-{key:05d}" for key in range(5_000)]).take(draw.zipf(1.2, CHUNK) % 5_000),
        "note": pa.array(["a note of some length"] * CHUNK),
        "bytes": draw.integers(0, 1_000, CHUNK),
    }
    sink = pa.BufferOutputStream()
    csv.write_csv(pa.table(table), sink, csv.WriteOptions(include_header=False, quoting_style="none"))
    return sink.getvalue().to_pybytes()


def ingested(folder, *sources, master="local[2]", memory="2g", more=()):
    """The trace of these sources, and what the command said on stderr."""
    line = ["ingest", *sources, *READING, "-o", folder / "x.trace", "--force", "--master", master]
    settings = (f"spark.driver.memory={memory}", *more)
    with started([*line, *(word for each in settings for word in ("--spark-conf", each))]) as child:
        _, err = child.communicate()
    assert child.returncode == 0, err
    return open_trace(folder / "x.trace", check_all=True)


def test_refused_rows_at_both_ends_cost_no_more_memory_than_others(tmp_path):
    header = b"ts,key,note,bytes\n"
    whole, parts = tmp_path / "whole.csv", [tmp_path / f"part-{number}.csv" for number in range(3)]
    for part in parts:
        part.write_bytes(header)
    written = 0
    with whole.open("wb") as out:
        out.write(header + b"never,first,x,1\n")
        with parts[0].open("ab") as part:
            part.write(b"never,first,x,1\n")
        while written < BYTES:
            data = rows(written // 1000)
            out.write(data)
            with parts[min(3 * written // BYTES, 2)].open("ab") as part:
                part.write(data)
            written += len(data)
        out.write(b"never,last,x,1\n")
        with parts[2].open("ab") as part:
            part.write(b"never,last,x,1\n")
    assert whole.stat().st_size >= BYTES
    found = ingested(tmp_path, whole)
    rejects = pq.read_table(found.path / "_rejects").to_pylist()
    assert [(row["line"], row["text"]) for row in rejects] == [
        (2, "never,first,x,1"),
        (found.rows + 3, "never,last,x,1"),
    ]
    whole.unlink()
    assert ingested(tmp_path, *parts).manifest.content_hash == found.manifest.content_hash


@pytest.mark.parametrize("command", ["ingest", "generate"])
def test_a_task_that_runs_twice_leaves_the_trace_as_it_is(tmp_path, command):
    (tmp_path / "site").mkdir()
    log = tmp_path / "attempts"
    (tmp_path / "site" / "sitecustomize.py").write_text(SLOW.format(log=str(log)))
    more = [f"spark.{name}={value}" for name, value in SPECULATION.items()]
    more.append(f"spark.executorEnv.PYTHONPATH={tmp_path / 'site'}")
    if command == "ingest":
        sources = [tmp_path / f"{number}.csv" for number in range(3)]
        for number, source in enumerate(sources):
            source.write_bytes(b"ts,key,note,bytes\n" + rows(2 * number) + rows(2 * number + 1) + b"never,k,x,1\n")

    def made(master, more=()):
        if command == "ingest":
            return ingested(tmp_path, *sources, master=master, more=more)
        line = ["generate", "zipf", "--rows", 2_200_000, "-o", tmp_path / "x.trace", "--force", "--master", master]
        with started([*line, *(word for each in more for word in ("--spark-conf", each))]) as child:
            _, err = child.communicate()
        assert child.returncode == 0, err
        return open_trace(tmp_path / "x.trace", check_all=True)

    undisturbed = made("local[2]").manifest
    with standalone(tmp_path) as master:
        disturbed = made(master, more).manifest
    assert "1" in log.read_text().split(), "no task ran twice"
    assert disturbed.content_hash == undisturbed.content_hash
    assert disturbed.summary == undisturbed.summary
