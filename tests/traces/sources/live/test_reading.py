"""Reading ranges of offsets, from a consumer of the tests' own."""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import EnvironmentFailure
from adapt.core.random_bits import mix
from adapt.traces.sources.live import reading
from adapt.traces.sources.live.reading import Reader, RecordSample, Wanted, sample_effect
from adapt.traces.sources.live.topic_records import RecordFiles, TopicRecords, frames_of, stored
from adapt.traces.sources.names import KeyFormat
from adapt.traces.sources.reading.files import Container, SourceFile


@dataclass(frozen=True)
class Failure:
    """An error of the client."""

    kind: str

    def name(self):
        return self.kind

    def str(self):
        return "said so"


@dataclass(frozen=True)
class Message:
    """A record, or an event of a partition."""

    at: int
    number: int
    failure: Failure | None = None
    when: tuple[int, int] = (1, 1000)

    def error(self):
        return self.failure

    def partition(self):
        return self.at

    def offset(self):
        return self.number

    def timestamp(self):
        return self.when

    def key(self):
        return f"k{self.at}-{self.number}".encode()

    def value(self):
        return b"value"

    def headers(self):
        return [("name", b"\xff"), ("none", None)]

    def __len__(self):
        return 5


@dataclass
class Cluster:
    """Hands out messages in the given batches; then brokers are silent."""

    batches: list
    consumer: "Cluster" = None
    down: bool = True
    assigned: list = field(default_factory=list)
    paused: list = field(default_factory=list)
    skipped: list = field(default_factory=list)

    def __post_init__(self):
        self.consumer = self

    def assign(self, places):
        self.assigned = places

    def pause(self, places):
        self.paused += places

    def consume(self, _most, _wait):
        return self.batches.pop(0) if self.batches else []

    def skip(self, partition, offset):
        self.skipped.append((partition, offset))

    def has_failed(self):
        return self.down

    def lost(self, quiet_s):
        return EnvironmentFailure(f"sent nothing for {quiet_s:.0f} s")

    def failed(self, error):
        return EnvironmentFailure(f"partition: {error.name()}")


def wanted(begins, ends, sample=None, first_ms=None, end_ms=None, columns=()):
    return Wanted(begins, ends, first_ms, end_ms, sample, stored(columns))


def read(folder, cluster, goal):
    files = RecordFiles(folder)
    Reader(cluster, "t", goal, files, lambda *_: None).read(lambda *place: place)
    return files


def held(files, partition):
    path = files.path(partition)
    with path.open("rb") as file:
        return pa.concat_tables(frame.table(file) for frame in frames_of(path))


def test_it_ends_at_the_watermark_of_the_start(tmp_path):
    cluster = Cluster([[Message(0, 3), Message(0, 4)], [Message(0, 5), Message(0, 6), Message(1, 0)]])
    files = read(tmp_path, cluster, wanted({0: 3, 1: 0}, {0: 6, 1: 1}))
    assert cluster.assigned == [("t", 0, 3), ("t", 1, 0)]
    assert held(files, 0)["offset"].to_pylist() == [3, 4, 5]
    assert held(files, 1)["key"].to_pylist() == [b"k1-0"]
    assert files.rows == 4


def test_gaps_of_compaction_end_with_the_partition(tmp_path):
    cluster = Cluster([[Message(0, 0), Message(0, 7)], [Message(0, 20, Failure("_PARTITION_EOF"))]])
    assert held(read(tmp_path, cluster, wanted({0: 0}, {0: 20})), 0)["offset"].to_pylist() == [0, 7]


def test_a_partition_that_disappears_ends_the_run_and_keeps_what_came(tmp_path):
    cluster = Cluster([[Message(0, 0)], [Message(1, 0, Failure("UNKNOWN_TOPIC_OR_PART"))]])
    with pytest.raises(EnvironmentFailure, match="UNKNOWN_TOPIC_OR_PART"):
        read(tmp_path, cluster, wanted({0: 0, 1: 0}, {0: 2, 1: 2}))
    assert RecordFiles(tmp_path).last == {0: 0}


@pytest.mark.parametrize("down", [True, False])
def test_brokers_that_stop_answering_end_the_run(tmp_path, monkeypatch, down):
    monkeypatch.setattr(reading, "DOWN_S" if down else "SILENT_S", 0.0)
    with pytest.raises(EnvironmentFailure, match="sent nothing"):
        read(tmp_path, Cluster([[Message(0, 0)]], down=down), wanted({0: 0}, {0: 2}))
    assert RecordFiles(tmp_path).rows == 1


def test_a_second_run_goes_on_after_the_last_record(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "DOWN_S", 0.0)
    goal = wanted({0: 0}, {0: 4})
    with pytest.raises(EnvironmentFailure):
        read(tmp_path, Cluster([[Message(0, 0), Message(0, 1)]]), goal)
    again = Cluster([[Message(0, 1), Message(0, 2), Message(0, 3)]])  # brokers may send more than was asked for
    files = read(tmp_path, again, goal)
    assert again.assigned == [("t", 0, 2)]
    assert held(files, 0)["offset"].to_pylist() == [0, 1, 2, 3]


def test_a_changed_byte_of_kept_records_is_noticed_and_they_are_read_again(tmp_path):
    """From the changed frame on."""
    goal = wanted({0: 0}, {0: 2})
    first = read(tmp_path, Cluster([[Message(0, 0)]]), wanted({0: 0}, {0: 1})).path(0).read_bytes()
    whole = read(tmp_path, Cluster([[Message(0, 1)]]), goal).path(0).read_bytes()
    assert whole.startswith(first)
    for at in range(0, len(whole), 7):
        (tmp_path / "000000.records").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert RecordFiles(tmp_path).last == ({} if at < len(first) else {0: 0})
        missing = [Message(0, 0), Message(0, 1)][at >= len(first) :]
        assert held(read(tmp_path, Cluster([missing]), goal), 0)["offset"].to_pylist() == [0, 1]


def test_a_frame_that_a_killed_run_cut_off_is_dropped(tmp_path):
    goal = wanted({0: 0}, {0: 2})
    files = read(tmp_path, Cluster([[Message(0, 0), Message(0, 1)]]), goal)
    whole = files.path(0).read_bytes()
    for cut in (1, 20, len(whole) - 1):
        files.path(0).write_bytes(whole + whole[:cut])
        assert RecordFiles(tmp_path).rows == 2
        assert files.path(0).read_bytes() == whole


def test_headers_and_payload_are_kept_where_they_are_wanted(tmp_path):
    goal = wanted({0: 0}, {0: 1}, columns=("headers", "payload"))
    row = held(read(tmp_path, Cluster([[Message(0, 0)]]), goal), 0).to_pylist()[0]
    assert (row["headers"], row["payload"], row["payload_size"]) == ('["name", "\\\\xff", "none", null]', b"value", 5)


def test_a_sample_does_not_depend_on_how_records_arrive(tmp_path):
    records = [Message(at, number) for number in range(500) for at in range(2)]
    found = []
    for size in (1000, 7):
        folder = tmp_path / str(size)
        folder.mkdir()
        sample = RecordSample(Fraction(1, 10), {0: 0, 1: 0}, {0: 500, 1: 500})
        batches = [records[at : at + size] for at in range(0, len(records), size)]
        files = read(folder, Cluster(batches), wanted({0: 0, 1: 0}, {0: 500, 1: 500}, sample))
        found.append([held(files, at)["offset"].to_pylist() for at in range(2)])
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]
    assert [len(each) for each in found[0]] == [50, 50]


@dataclass
class Log(Cluster):
    """Two partitions, fetched a few records at a time, from where the reader skipped to."""

    length: int = 0
    fetched: int = 0

    def consume(self, _most, _wait):
        found = []
        for row, (name, partition, offset) in enumerate(self.assigned):
            last = min(offset + 30, self.length)
            found += [Message(partition, number) for number in range(offset, last) if number % 7]
            self.assigned[row] = (name, partition, last)
        self.fetched += len(found)
        return found

    def skip(self, partition, offset):
        self.assigned = [(name, at, offset if at == partition else number) for name, at, number in self.assigned]


def test_runs_that_lie_far_apart_are_fetched_alone(tmp_path):
    begins, ends = {0: 0, 1: 700}, {0: 60_000, 1: 59_000}
    sample, log = RecordSample(Fraction(1, 50), begins, ends), Log([], length=60_000)
    files = read(tmp_path, log, wanted(begins, ends, sample))
    for partition, begin, end in ((0, 0, 60_000), (1, 700, 59_000)):
        offsets = np.array([number for number in range(begin, end) if number % 7])
        taken = sample.takes(np.full(len(offsets), partition), offsets)
        assert held(files, partition)["offset"].to_pylist() == offsets[taken].tolist()
    assert log.fetched < 2.5 * files.rows


@given(
    st.fractions(Fraction(1, 10**4), Fraction(1, 2)), st.integers(0, 10**9), st.integers(1, 3000), st.integers(0, 20)
)
def test_the_next_record_of_a_sample_is_the_first_that_it_takes(share, begin, size, seed):
    sample, offsets = RecordSample(share, {0: begin}, {0: begin + size}, seed), np.arange(begin, begin + size)
    taken = offsets[sample.takes(np.zeros(size, np.int64), offsets)]
    assert len(taken) - 1 <= share * size <= len(taken) + 1
    for offset in offsets[:: max(1, size // 20)].tolist():
        found = sample.next_from(0, offset)
        later = taken[taken >= offset]
        assert found == later[0] if len(later) else found >= begin + size


def test_a_sample_takes_each_record_with_the_same_chance():
    partitions, offsets = np.repeat(np.arange(4), 10_000), np.tile(np.arange(10_000), 4)
    counts = np.zeros(4 * 10_000)
    for seed in range(400):
        taken = RecordSample(Fraction(1, 100), dict.fromkeys(range(4), 0), dict.fromkeys(range(4), 10_000), seed)
        counts += taken.takes(partitions, offsets)
    assert counts.sum() == 400 * 400
    assert abs(counts - 4).max() <= 4 * 5
    assert abs(counts.reshape(40, -1).sum(axis=1) - 4000).max() < 4.5 * 200
    every = RecordSample(Fraction(1), dict.fromkeys(range(4), 0), dict.fromkeys(range(4), 10_000))
    assert every.takes(partitions, offsets).all()


@dataclass(frozen=True)
class Burst(Message):
    """A record of one of 300 keys, which come in bursts of so many."""

    length: int = 1

    def key(self):
        return str(int(mix(np.array([self.number // self.length], np.uint64))[0] % 300)).encode()


@pytest.mark.parametrize(("length", "low", "high"), [(1, 1.0, 1.25), (20, 12.0, 25.0)])
def test_runs_cost_what_bursts_of_a_key_make_of_them(tmp_path, length, low, high):
    sample = RecordSample(Fraction(1, 2), {0: 0}, {0: 14_000})
    batches = [[Burst(0, at + first, length=length) for at in range(700)] for first in range(0, 14_000, 700)]
    path = read(tmp_path, Cluster(batches), wanted({0: 0}, {0: 14_000}, sample)).path(0)
    source = SourceFile(path, "t/0", Container.PLAIN, path.stat().st_size)
    assert low <= sample_effect(sample, TopicRecords(KeyFormat.TEXT), [source]) <= high
