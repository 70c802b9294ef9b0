"""Several traces are one stream in time."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adapt as api
from adapt.core.errors import BadInput
from adapt.core.partitioning.measures.cells import Hasher
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import Weight
from adapt.traces.block_cache import CACHE
from adapt.traces.counting.count import Counting, count_trace
from adapt.traces.counting.count_cache import counted, counted_panes
from adapt.traces.counting.exact import count_exactly
from adapt.traces.counting.population import population_of
from adapt.traces.ingest.profile import profile_trace
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.series import stream_of
from adapt.traces.spark.progress import silent
from adapt.traces.store.trace import Trace, open_trace
from tests.tiers import soak
from tests.traces.small_traces import write_trace


def _rows(first: int, last: int) -> dict[str, list[int] | list[str]]:
    return {"ts": list(range(first, last)), "key": [f"k{at % 7}" for at in range(first, last)]}


def _skewed(first: int, last: int) -> pa.Table:
    """Rows of a stream with a few hot keys and many cold ones, each row by its number alone."""
    at = np.arange(first, last)
    mixed = at * 2_654_435_761 % (1 << 32)
    keys = np.where(mixed % 3 == 0, mixed % 5, mixed % 100_003)
    times = pa.array(at * 1000, pa.timestamp("us", "UTC"))
    return pa.table({"ts": times, "key": pa.array(keys).cast(pa.string()), "bytes": pa.array(mixed % 1500)})


_NAMES = ("trace", "plan", "next", "lint")
"""Fields of a verdict with the names of its files, and with what the profiles tell, which are compared themselves."""


def _profile(trace: Trace) -> dict[str, Any]:
    schema = pq.read_schema(arrow_source(trace.blocks()[0].pieces[0].path)).remove_metadata()
    read = profile_trace(None, trace.blocks(), schema, (trace.first_us, trace.last_us), silent)
    return {**read.data, "key_type": trace.key_type}


def _found(trace: Trace, folder: Path) -> list[Any]:
    """What is counted of a trace."""
    lossy = count_trace(trace, Counting(epsilon=0.001))
    hashers: tuple[Hasher, ...] = (make_partitioner(Scheme.UNIFORM, 8),)
    population = population_of(trace, lossy, [hashers])
    panes = counted_panes(trace, folder, Weight.COUNT)
    return [
        *((each.keys.to_pylist(), each.count_low.tolist(), each.count_high.tolist(), each.distinct)
          for each in (lossy, count_exactly(trace, weight=Weight.BYTES), population.frequencies,
                       *(pane.frequencies for pane in panes))),
        [pane.start_us for pane in panes],
    ]  # fmt: skip


@pytest.fixture(params=[256])
def short_blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few rows, so that a short trace has many."""
    for name in ("store.trace", "block_cache"):
        monkeypatch.setattr(f"adapt.traces.{name}.BLOCK_ROWS", request.param)


def test_traces_of_a_folder_count_as_one_trace(tmp_path: Path) -> None:
    (tmp_path / "days").mkdir()
    for name, first in (("b", 0), ("a", 1000)):
        write_trace(tmp_path / "days" / f"{name}.trace", _rows(first, first + 1000))
    whole = write_trace(tmp_path / "whole.trace", _rows(0, 2000))
    for said in ("days", "days/*.trace"):
        found = counted(stream_of(tmp_path / said)).frequencies
        assert found.rows == 2000
        assert found.as_counted() == counted(whole.path).frequencies.as_counted()
        assert found.keys.equals(counted(whole.path).frequencies.keys)


@pytest.mark.usefixtures("short_blocks")
def test_a_new_day_is_counted_alone_and_gives_what_one_trace_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = tmp_path / "days"
    days.mkdir()
    for day in range(8):
        write_trace(days / f"{day}.trace", _skewed(day * 1000, day * 1000 + 1000))
    before = open_trace(stream_of(days))
    assert before.profile["rows"] == 8000
    _found(before, days / CACHE)
    write_trace(days / "8.trace", _skewed(8000, 9000))

    read: list[int] = []
    for name in ("ingest.profile", "counting.lossy", "counting.exact"):
        module = import_module(f"adapt.traces.{name}")

        def noted(pieces: Any, *others: Any, reading: Any = module.read_pieces) -> Any:
            read.append(sum(piece.take for piece in pieces))
            return reading(pieces, *others)

        monkeypatch.setattr(module, "read_pieces", noted)
    stream = open_trace(stream_of(days))
    profile = stream.profile
    # the new day, the rows before it in its first block, half a day that the middle passes, and the block in the middle
    assert sum(read) <= 1000 + 256 + 500 + 256 + 256
    read.clear()
    count_exactly(stream, weight=Weight.BYTES)
    count_trace(stream, Counting(epsilon=0.001))
    assert sum(read) <= 2 * (1000 + 256)
    # results are added up on the way, so that many days do not start Spark
    assert Counting(epsilon=1e-5).rows_on(stream) <= profile["distinct_keys"] + 36 + 256

    whole = write_trace(tmp_path / "whole.trace", _skewed(0, 9000))
    assert profile == _profile(whole)
    for _ in range(2):  # new, then kept
        assert _found(stream, days / CACHE) == _found(whole, tmp_path / "of whole")


def test_a_stream_is_read_where_nothing_can_be_kept(tmp_path: Path) -> None:
    for day in range(2):
        write_trace(tmp_path / f"{day}.trace", _skewed(day * 1000, day * 1000 + 1000))
    (tmp_path / CACHE).write_text("mine")
    assert counted(stream_of(tmp_path)).frequencies.rows == 2000
    assert (tmp_path / CACHE).read_text() == "mine"


def test_several_traces_are_typed_one_by_one(tmp_path: Path, adapt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("days").mkdir()
    days = [write_trace(Path("days") / f"{day}.trace", _skewed(day * 1000, day * 1000 + 1000)) for day in range(3)]
    said = adapt.done("partition", "count", *(day.path for day in days))
    assert said.err.startswith("reading 3 traces from 1970-01-01T00:00:00Z to 1970-01-01T00:00:02.999000Z\n")
    adapt.done("partition", "build", "days/0.trace", "days/1.trace", "--channels", "3", "-o", "a.plan")
    adapt.done("partition", "diff", "days/0.trace", "days/1.trace", "a.plan", "a.plan")
    assert "2 traces" in adapt.done("partition", "evaluate", "days/0.trace", "days/1.trace", "a.plan").err
    judged = adapt.done("verdict", *(day.path for day in days), "--channels", "3")
    assert "wrote days/days.recommended.plan\n" in judged.err
    assert "2 traces as one stream" in adapt.done("report", "days/[01].trace").err
    assert api.count([day.path for day in days]).frequencies.rows == 3000
    assert api.count(days[:2]).frequencies.rows == 2000


def test_traces_that_overlap_are_refused_with_their_names(tmp_path: Path) -> None:
    for name, first in (("a", 0), ("b", 500)):
        write_trace(tmp_path / f"{name}.trace", _rows(first, first + 1000))
    with pytest.raises(BadInput, match=r"a\.trace and .*b\.trace overlap in time"):
        stream_of(tmp_path / "*.trace")


@soak
@pytest.mark.usefixtures("short_blocks")
@pytest.mark.parametrize("short_blocks", [4096], indirect=True)
def test_thirty_days_of_several_blocks_on_a_disk_and_in_a_store(tmp_path: Path, bucket: Any, adapt: Any) -> None:
    rows, days = 5_000, tmp_path / "days"
    days.mkdir()
    for day in range(30):
        trace = write_trace(days / f"{day:02}.trace", _skewed(day * rows, (day + 1) * rows))
        for file in trace.path.iterdir():
            (bucket / "days" / trace.path.name / file.name).upload(file)
    whole = write_trace(tmp_path / "whole.trace", _skewed(0, 30 * rows))
    series = open_trace(stream_of(days / "*.trace"))
    assert series.profile == _profile(whole) == open_trace(stream_of(bucket / "days")).profile
    told = {}
    here = ["--master", "in-process", "--format", "json"]
    for path in (whole.path, days, bucket / "days"):
        judged = adapt.done("verdict", path, "--channels", "8", *here)
        exact = adapt.done("partition", "count", path, "--method", "exact", *here)
        found = json.loads(judged.out)
        told[str(path)] = [{name: each for name, each in found.items() if name not in _NAMES}, exact.out]
    assert told[str(whole.path)] == told[str(days)] == told[str(bucket / "days")]
