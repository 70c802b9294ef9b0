"""Rows without a time: their order is kept, their keys are judged, and nothing speaks of time."""

import pyarrow.parquet as pq
import pytest

from adapt.core.errors import UsageError
from adapt.traces.ingest.cleaning import Cleaning
from adapt.traces.ingest.ingest import IngestOptions, ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "orders.csv"
    path.write_text("customer,amount\n" + "".join(f"c{at * at % 37},{at}\n" for at in range(6000)))
    return path


def test_the_trace_has_no_times_and_keeps_the_order_of_rows_on_every_path(source, tmp_path):
    paths = {
        "small": None,
        "on Spark": SparkOptions(runner=RunnerName.SPARK),
        "in parts": SparkOptions(conf={"spark.sql.shuffle.partitions": "3"}),
    }
    hashes = set()
    for name, options in paths.items():
        done = ingest(
            [str(source)], tmp_path / f"{name}.trace", Mapping("customer", bytes="amount"), spark_options=options
        )
        assert done.trace.columns == ("key", "bytes")
        assert done.trace.to_arrow()["bytes"].to_pylist() == list(range(6000))
        assert "first_us" not in done.trace.manifest.summary
        assert "time in no column (name one with --time)" in done.guesses
        assert all("ts" not in pq.read_schema(part).names for part in done.trace.path.glob("part-*"))
        hashes.add(done.trace.manifest.content_hash)
    assert len(hashes) == 1


def test_keys_are_judged_in_sample_and_what_needs_times_refuses(adapt, source):
    said = adapt.done("verdict", source, "--key", "customer", "--channels", 4)
    assert "In-sample only: rows are too few for windows, or have no times." in said.out
    for line in ("lint", "report", "check --limit imbalance<9", "advise salts --parallelism 4", "partition count"):
        command, *options = line.split(" --")
        adapt.done(*command.split(), "orders.trace", *(word for each in options for word in f"--{each}".split()))
    for line in (
        "replay repartition orders.trace --channels 4 --period 1h",
        "replay flux orders.trace --workers 4",
        "replay elastic orders.trace --pool 4",
        "replay compare orders.trace --channels 4",
        "partition count orders.trace --over time",
    ):
        assert "orders.trace has no times, which this needs; ingest" in adapt.refused(2, *line.split())


def test_rules_of_cleaning_that_need_times_refuse(source, tmp_path):
    with pytest.raises(UsageError, match="need times, and no column has any; give --time"):
        ingest([str(source)], tmp_path / "x", Mapping("customer"), IngestOptions(cleaning=Cleaning(max_lateness_us=1)))


def test_streams_with_and_without_times_are_no_trace(adapt, source, tmp_path):
    (tmp_path / "timed.csv").write_text("time,customer\n2024-03-01T10:00:00Z,a\n2024-03-01T10:00:01Z,b\n")
    (tmp_path / "map.toml").write_text(
        'key = "customer"\n[[stream]]\nname = "a"\npaths = ["orders.csv"]\n'
        '[[stream]]\nname = "b"\npaths = ["timed.csv"]\ntime = "time"\n'
    )
    said = adapt.refused(2, "ingest", source, tmp_path / "timed.csv", "--mapping", "map.toml", "-o", "x.trace")
    assert "stream 'a' has no times, but others do; give its time, or omit it" in said
