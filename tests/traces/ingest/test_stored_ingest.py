"""A trace in an object store, written by this process or by Spark tasks: what a disk would hold."""

import threading
from pathlib import Path

import pytest

from adapt.core.errors import AdaptError, EnvironmentFailure
from adapt.traces.counting.count import Counting, count_trace
from adapt.traces.ingest import ingest as ingesting
from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.leftovers import leftovers
from adapt.traces.locations import failures
from adapt.traces.locations.run_folders import MANIFEST
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions
from adapt.traces.store.trace import open_trace
from tests.fault_proxy import seeded
from tests.tiers import SOAK

FAULTS, ROUNDS = (300, 50) if SOAK else (5, 1)
ROWS = 3000
MAPPING = Mapping("key", time="ts", bytes="bytes", time_format="epoch_s")
ON_SPARK = SparkOptions(runner=RunnerName.SPARK)
MAKERS = {"in this process": None, **({"by Spark tasks": ON_SPARK} if SOAK else {})}
"""Options by where the work is done; the long tier has both."""

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
    assert trace.reading.rejects == local.reading.rejects
    assert next(open_trace(target).batches()).equals(next(local.batches()))
    run = trace.manifest.run
    assert names(target) == ["_manifest.json", f"{run}/_rejects/part-00000.parquet", f"{run}/part-00000.parquet"]
    counted = count_trace(trace, Counting(), spark_options=MAKERS[maker])
    assert counted.keys.equals(count_trace(local, Counting()).keys)
    with pytest.raises(EnvironmentFailure, match="exists; add --force to overwrite it"):
        ingest([str(source)], target, MAPPING)


def whole(target: Path) -> bool:
    """Whether the complete trace stands there; anything else that could be taken for one fails the test."""
    if not (target / MANIFEST).is_file():
        return False
    trace = open_trace(target, check_all=True)
    assert trace.rows == sum(batch.num_rows for batch in trace.batches()) == ROWS
    return True


def test_seeded_faults_leave_a_trace_whole_or_absent(proxy, bucket, source):
    """Most runs get through by repeating requests; the others leave nothing, and the next run is right."""
    (bucket / "source.csv").write_bytes(source.read_bytes())
    expected, done, said, round_ = None, 0, [], 0
    while len(proxy.faults) < FAULTS:
        target = bucket / f"{round_}.trace"
        proxy.failing = seeded(round_, 0.7 if round_ % 4 == 3 else 0.2)
        round_ += 1
        try:
            ingest([f"{bucket}source.csv"], target, MAPPING)
            done += 1
        except AdaptError as error:
            said.append(str(error))
        proxy.failing = lambda _: None
        if not whole(target):
            ingest([f"{bucket}source.csv"], target, MAPPING)
        assert whole(target)
        found = open_trace(target).manifest.content_hash
        expected = expected or found
        assert found == expected
    print(f"{len(proxy.faults)} faults in {round_} runs: {done} got through, {len(said)} failed in one sentence")
    assert done > len(said)
    assert all("\n" not in each and str(bucket) in each for each in said), said


def test_of_two_ingests_into_one_place_one_wins_whole(bucket, source):
    for round_ in range(ROUNDS):
        target, said = bucket / f"{round_}.trace", []

        def write(target=target, said=said):
            try:
                said.append(ingest([str(source)], target, MAPPING).trace.rows)
            except EnvironmentFailure as error:
                said.append(str(error))

        writers = [threading.Thread(target=write) for _ in range(2)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert said.count(ROWS) == 1, said
        assert whole(target)
        assert leftovers(bucket) == []
