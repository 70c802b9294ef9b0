"""Counts and panes that are kept beside a trace."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.names import CountMethod
from adapt.core.counting.sliding import SlidingWindow
from adapt.core.errors import BadInput, UsageError
from adapt.core.out_of_sample.windows import CountedPane
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.tracking import COARSEST
from adapt.core.stream import KeyType, Weight
from adapt.core.units.row_or_time_span import Length
from adapt.traces.block_cache import CACHE, keep
from adapt.traces.counting import count_cache as module
from adapt.traces.counting.count import Counting, count_trace
from adapt.traces.counting.count_cache import EPSILON, _packed, _place, _unpacked, counted, kept_panes
from adapt.traces.store.frequencies import write_frequencies
from adapt.traces.store.manifest import Manifest, Provenance, write_manifest
from adapt.traces.store.trace import Trace, open_trace, part_entry

ROWS = 600


def written(folder: Path, content_hash: str, often: str = "a", ranks: Sequence[int] = ()) -> Path:
    """A trace in which two thirds of the rows have one key, with a profile that knows the counts of some ranks."""
    folder.mkdir()
    keys = [often if at % 3 else f"k{at}" for at in range(ROWS)]
    times = pa.array([at * 1_000_000 for at in range(ROWS)], pa.timestamp("us", "UTC"))
    costs = pa.array([float(at % 7) for at in range(ROWS)])
    pq.write_table(
        pa.table({"ts": times, "key": keys, "cost_us": costs}),
        folder / "part-00000.parquet",
        write_page_checksum=True,
    )
    summary = {
        "rows": ROWS,
        "first_us": 0,
        "last_us": (ROWS - 1) * 1_000_000,
        "key_type": "string",
        "columns": ["ts", "key", "cost_us"],
        "profile": {"distinct_keys": len(set(keys)), "rank_counts": list(ranks)},
    }
    entries = [part_entry(folder, folder / "part-00000.parquet")]
    write_manifest(folder, Manifest("trace", content_hash, Provenance("test"), entries, summary))
    return folder


@pytest.fixture
def trace(tmp_path) -> Path:
    return written(tmp_path / "t.trace", "a" * 64)


@pytest.fixture
def asked(monkeypatch, spark) -> list[Counting]:
    """How Spark was asked to count, time after time."""
    told: list[Counting] = []

    def count(trace: Trace, counting: Counting, **options):
        told.append(counting)
        return count_trace(trace, counting, **options)

    monkeypatch.setattr(module, "count_trace", count)
    return told


def facts(found) -> tuple:
    held = found.frequencies
    arrays = (held.keys.to_pylist(), held.count_low.tolist(), held.count_high.tolist())
    return (*arrays, held.total, held.rows, held.weight, held.epsilon, held.complete_above, held.distinct)


def kept(trace: Path) -> list[Path]:
    return sorted(trace.parent.glob(f"{CACHE}/*"))


def test_the_second_time_nothing_is_counted_and_all_is_the_same(trace, asked):
    first, second = counted(trace), counted(trace)
    assert len(asked) == len(kept(trace)) == 1
    assert facts(first) == facts(second)
    assert first.fingerprint == second.fingerprint == "a" * 64
    assert first.source == {"name": "t.trace", "content_hash": "a" * 64}


def test_each_way_of_counting_is_kept_by_itself(trace, asked):
    rows = SlidingWindow(Length(300, in_rows=True))
    ways = [
        Counting(),
        Counting(epsilon=0.02),
        Counting(weight=Weight.COUNT),
        Counting(CountMethod.EXACT),
        Counting(CountMethod.EXACT, weight=Weight.COUNT),
        Counting(CountMethod.SLIDING, epsilon=0.02, window=rows),
        Counting(CountMethod.SLIDING, epsilon=0.02, window=SlidingWindow(Length(200, in_rows=True))),
        Counting(CountMethod.SLIDING, epsilon=0.02, window=SlidingWindow(Length(300, in_rows=True), 2)),
        Counting(CountMethod.SLIDING, epsilon=0.02, window=SlidingWindow(Length(300_000_000))),
    ]
    found = [facts(counted(trace, way)) for way in ways]
    assert asked == ways
    assert [facts(counted(trace, way)) for way in ways] == found
    assert asked == ways


def columns(found) -> dict[str, tuple[list[float], float]]:
    return {column.source: (column.values.tolist(), column.total) for column in found.frequencies.measured}


def test_measured_columns_are_kept_beside_the_counts_on_which_they_build(trace, asked):
    plain = counted(trace)
    measured = counted(trace, measure=["count", "cost"])
    assert len(asked) == 1
    assert facts(measured) == facts(plain)
    assert columns(measured)["count"][1] == ROWS
    assert columns(measured)["cost"][1] == sum(at % 7 for at in range(ROWS))
    assert columns(plain) == {}
    assert len(kept(trace)) == 2
    again = counted(trace, measure=["cost", "count"])
    assert columns(again) == columns(measured)
    assert len(kept(trace)) == 2
    assert list(columns(counted(trace, measure=["cost"]))) == ["cost"]
    assert len(asked) == 1


@pytest.mark.parametrize("damage", ["a page", "a short file", "the manifest", "no manifest", "a file in its place"])
def test_a_damaged_entry_is_counted_again_and_replaced(trace, asked, damage):
    first = counted(trace)
    (entry,) = kept(trace)
    held = entry / "frequencies.parquet"
    match damage:
        case "a page":
            data = bytearray(held.read_bytes())
            keys = pq.read_metadata(held).row_group(0).column(0)
            data[keys.dictionary_page_offset + keys.total_compressed_size - 3] ^= 1
            held.write_bytes(data)
        case "a short file":
            held.write_bytes(held.read_bytes()[:-5])
        case "the manifest":
            (entry / "_manifest.json").write_text("{")
        case "no manifest":
            (entry / "_manifest.json").unlink()
        case "a file in its place":
            shutil.rmtree(entry)
            entry.write_text("")
    assert facts(counted(trace)) == facts(first)
    assert len(asked) == 2
    assert facts(counted(trace)) == facts(first)
    if damage in ("a page", "a short file", "the manifest"):
        assert len(asked) == 2


def test_a_folder_that_cannot_be_written_costs_only_the_next_count(trace, asked, monkeypatch):
    def refused(*_arguments, **_options):
        raise PermissionError(13, "Permission denied", str(trace.parent / CACHE))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "mkdir", refused)
        first = counted(trace)
    assert kept(trace) == []
    assert facts(counted(trace)) == facts(first)
    assert len(asked) == 2


def test_another_trace_under_the_same_name_is_not_served_old_counts(trace, asked):
    assert counted(trace).frequencies.keys[0].as_py() == "a"
    shutil.rmtree(trace)
    written(trace, "b" * 64, often="b")
    changed = counted(trace)
    assert changed.frequencies.keys[0].as_py() == "b"
    assert changed.fingerprint == "b" * 64
    assert len(asked) == 2


# What knows its counts already.


@pytest.fixture
def artefact(tmp_path, trace, asked) -> Path:
    found = counted(trace, Counting(CountMethod.EXACT, weight=Weight.COST)).frequencies
    source = [{"name": "t.trace", "content_hash": "a" * 64}]
    write_frequencies(found, tmp_path / "t.freq", Provenance("test", {}, source))
    return tmp_path / "t.freq"


@pytest.fixture
def csv(tmp_path) -> Path:
    (tmp_path / "counts.csv").write_text("key,count\na,3\nb,1\n")
    return tmp_path / "counts.csv"


def test_an_artefact_and_a_csv_need_no_spark(artefact, csv, asked):
    asked.clear()
    held = counted(artefact)
    assert (held.fingerprint, held.frequencies.weight) == ("a" * 64, Weight.COST)
    assert counted(artefact, Counting(weight=Weight.COST)).frequencies.rows == ROWS
    assert counted(csv).frequencies.keys.to_pylist() == ["a", "b"]
    assert asked == []


@pytest.mark.parametrize(
    ("how", "option"),
    [
        (Counting(weight=Weight.COUNT), "--weight"),
        (Counting(CountMethod.EXACT), "--exact"),
        (Counting(epsilon=0.01), "--epsilon"),
        (Counting(CountMethod.SLIDING, window=SlidingWindow(Length(10, in_rows=True))), "--window"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_ways_of_counting_are_refused_for_what_is_counted(artefact, csv, how, option):
    for path in (artefact, csv):
        with pytest.raises(UsageError, match=rf"{option}\b.*{path.name}"):
            counted(path, how)


def test_a_column_that_is_not_there_is_refused_by_name(trace, artefact, csv):
    with pytest.raises(UsageError, match=r"t\.trace has no bytes column; ingest it with --bytes"):
        counted(trace, measure=["bytes"])
    with pytest.raises(UsageError, match=r"t\.freq: column 'count' was not measured.* count the trace again with"):
        counted(artefact, measure=["count"])
    with pytest.raises(UsageError, match=r"counts\.csv has no column 'bytes'"):
        counted(csv, measure=["bytes"])


def test_the_type_of_keys_is_refused_for_what_knows_it(trace, artefact):
    for path in (trace, artefact):
        with pytest.raises(UsageError, match=rf"--key-type needs a CSV of counts; .*{path.name}"):
            counted(path, key_type=KeyType.INT64)


def test_what_is_not_there_or_is_another_thing_is_refused(tmp_path):
    with pytest.raises(BadInput, match="none does not exist; give a trace, counted keys, or a table"):
        counted(tmp_path / "none")
    (tmp_path / "x").mkdir()
    write_manifest(tmp_path / "x", Manifest("run", "0" * 64, Provenance("test"), [], {}))
    with pytest.raises(BadInput, match="x is a run; give a trace, counted keys"):
        counted(tmp_path / "x")


def test_the_known_ranks_of_a_trace_set_the_error_of_a_quadratic_load(tmp_path):
    """Section 5.4; weights other than rows are not in the profile."""
    unknown, known = (written(tmp_path / name, name * 64, ranks=ranks) for name, ranks in (("0", ()), ("1", (400,))))
    quadratic = Counting(resources=Resources.parse("CQC"), track=0, weight=Weight.COUNT)
    assert quadratic.epsilon_on(open_trace(unknown)) == pytest.approx(0.1 * (0.1 * 3 / 17 / 10 / 201) ** 0.5)
    assert quadratic.epsilon_on(open_trace(known)) == COARSEST
    by_cost = replace(quadratic, weight=Weight.COST)
    assert by_cost.epsilon_on(open_trace(known)) == by_cost.epsilon_on(open_trace(unknown))


def pane(start_us, keys, counts):
    counts = np.array(counts)
    total = float(counts.sum())
    return CountedPane(start_us, Frequencies(keys, counts, counts + 1, total, 7, epsilon=EPSILON, distinct=len(keys)))


def test_kept_panes_come_back_and_damaged_ones_are_counted_anew(tmp_path):
    panes = (pane(3, pa.array(["b", None, "a"]), [5, 4, 1]), pane(9, pa.array(["c"]), [2]))
    place = _place(tmp_path, "hash", Weight.COUNT)
    assert kept_panes(tmp_path, "hash", Weight.COUNT, KeyType.STRING) == ()
    keep(place, _packed(panes))
    back = kept_panes(tmp_path, "hash", Weight.COUNT, KeyType.STRING)
    assert [each.start_us for each in back] == [3, 9]
    for told, made in zip(back, panes, strict=True):
        assert told.frequencies.keys.equals(made.frequencies.keys)
        assert told.frequencies.count_low.tolist() == made.frequencies.count_low.tolist()
        assert told.frequencies.count_high.tolist() == made.frequencies.count_high.tolist()
        assert (told.frequencies.total, told.frequencies.rows) == (made.frequencies.total, 7)
    assert kept_panes(tmp_path, "hash", Weight.BYTES, KeyType.STRING) == ()
    place.write_bytes(place.read_bytes()[:-40])
    assert kept_panes(tmp_path, "hash", Weight.COUNT, KeyType.STRING) == ()


def test_keys_of_a_pane_in_two_row_groups_have_the_type_of_the_others():
    panes = (pane(3, pa.array(["b", "a"]), [5, 4]), pane(9, pa.array(["c"]), [2]))
    kept = _packed(panes)
    apart = pa.Table.from_batches([*kept.slice(0, 1).to_batches(), *kept.slice(1).to_batches()])
    assert [each.frequencies.keys for each in _unpacked(apart, KeyType.STRING)] == [
        pa.array(["b", "a"]),
        pa.array(["c"]),
    ]
