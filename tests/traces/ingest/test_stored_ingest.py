"""A trace in an object store, written by this process or by Spark tasks: what a disk would hold."""

from pathlib import Path

import pytest

from adapt.core.errors import EnvironmentFailure
from adapt.traces.counting.count import Counting, count_trace
from adapt.traces.ingest import ingest as ingesting
from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.locations import failures
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions
from adapt.traces.store.trace import open_trace
from adapt.traces.store.trace_tables import rejects_of

ROWS = 3000
MAPPING = Mapping("key", time="ts", bytes="bytes", time_format="epoch_s")
ON_SPARK = SparkOptions(runner=RunnerName.SPARK)
MAKERS = {"in this process": None, "by Spark tasks": ON_SPARK}

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Requests are repeated without a wait."""
    monkeypatch.setattr(failures, "_FIRST_WAIT_S", 0.001)


@pytest.fixture
def source(tmp_path) -> Path:
    path = tmp_path / "source.csv"
    rows = "".join(f"{1_700_000_000 + row * 7 % ROWS},k{row % 97},{row}\n" for row in range(ROWS))
    path.write_text(f"ts,key,bytes\n{rows}never,k,1\n")
    return path


def names(place: Path) -> list[str]:
    return sorted(str(each.relative_to(place)) for each in place.rglob("*"))


@pytest.mark.parametrize("maker", MAKERS)
def test_a_trace_in_a_store_is_that_on_a_disk(bucket, source, tmp_path, monkeypatch, maker):
    local = ingest([str(source)], tmp_path / "a.trace", MAPPING).trace
    if MAKERS[maker]:  # as on a cluster, whose workers do not see this disk
        monkeypatch.setattr(ingesting, "shares_disk", lambda _: False)
    target = bucket / "deep" / "a.trace"
    (bucket / "source.csv").write_bytes(source.read_bytes())
    ingest([f"{bucket}source.csv"], target, MAPPING, spark_options=MAKERS[maker])
    trace = open_trace(target, check_all=True)
    assert trace.manifest.content_hash == local.manifest.content_hash
    assert rejects_of(trace) == rejects_of(local)
    assert next(open_trace(target).batches()).equals(next(local.batches()))
    run = trace.manifest.run
    assert names(target) == ["_manifest.json", f"{run}/_rejects/part-00000.parquet", f"{run}/part-00000.parquet"]
    counted = [count_trace(each, Counting(), spark_options=MAKERS[maker]) for each in (local, trace)]
    assert counted[0].keys.equals(counted[1].keys)
    with pytest.raises(EnvironmentFailure, match="exists; add --force to overwrite it"):
        ingest([str(source)], target, MAPPING)
