"""Lossy counts of real streams, and of a generated one of several whole blocks, against exact counts of every key."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.stream import KeyType, Weight
from adapt.traces.counting import lossy
from adapt.traces.counting.count import Counting
from adapt.traces.counting.exact import count_exactly
from adapt.traces.counting.lossy import count_lossy
from adapt.traces.generators.keyed import zipf_stream
from adapt.traces.generators.write import generate
from adapt.traces.ingest.ingest import IngestOptions, ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.sources.names import FormatName
from adapt.traces.sources.sniff import ReadOptions
from adapt.traces.store.manifest import Manifest, write_manifest
from adapt.traces.store.trace import BLOCK_ROWS, Trace, open_trace, part_entry
from tests.tiers import SOAK, soak
from tests.traces.counting.test_lossy import in_tasks

pytestmark = pytest.mark.usefixtures("spark")


ZIPF_ROWS = 20_000_000 if SOAK else 2_200_000
FINER = 1e-5

INSTRUMENT = "regexp_extract(_path, 'tick/([a-z]+)/', 1)"
MIDNIGHT = "to_timestamp(regexp_extract(_path, '([0-9]{8})_quote', 1), 'yyyyMMdd')"
CLOCK = "if(_path like '%fxcm%', 5 * 3600000, 0)"
TICK = f"timestamp_micros(unix_micros({MIDNIGHT}) + bigint(round((double(_c0) + {CLOCK}) * 1000)))"
TICKS = {"reading": ReadOptions(FormatName.CSV, ",", header=False)}

REAL = {
    "wiki-edits by page": ("wiki-edits/wikiticker-2015-09-12-sampled.json.gz", Mapping("page", "time"), {}, 35_143),
    "ticks of one instrument by bid": (
        "fx-ticks/forex/oanda/tick/nzdusd",
        Mapping(f"concat({INSTRUMENT}, ' ', _c1)", TICK),
        TICKS,
        None,
    ),
}
REAL_AT_LENGTH = {
    "reviews by reviewer": ("reviews/anonreviews.csv.bz2", Mapping("int(reviewerId)", "date"), {}, 400_141),
    "fx-ticks by instrument": ("fx-ticks", Mapping(INSTRUMENT, TICK), TICKS, 3),
    "fx-ticks by instrument and bid": ("fx-ticks", Mapping(f"concat({INSTRUMENT}, ' ', _c1)", TICK), TICKS, 33_654),
}


def keeps_its_promises(trace: Trace, exact, epsilon: float) -> None:
    """Of every key that there is: the interval, the error, and nothing heavy that is not listed."""
    counted = count_lossy(trace, epsilon, weight=Weight.COUNT)
    low, high = counted.intervals(exact.keys)
    true = exact.count_low
    assert (low <= true).all()
    assert (true <= high).all()
    assert (true - low <= epsilon * trace.rows).all()
    assert counted.complete_above <= epsilon * trace.rows
    listed = set(counted.keys.to_pylist())
    assert len(listed) == len(counted.keys)
    if trace.rows <= lossy.FLUSH_ROWS:
        assert counted.keys.equals(exact.keys)
    else:
        assert len(listed) <= 2 / epsilon
    heavy = exact.keys.filter(pa.array(true > counted.complete_above)).to_pylist()
    assert listed >= set(heavy)
    assert (counted.rows, counted.total) == (exact.rows, exact.total) == (trace.rows, trace.rows)
    assert abs(counted.distinct - exact.distinct) <= 6 / np.sqrt(4094) * exact.distinct  # six standard errors
    assert listed <= set(exact.keys.to_pylist())


def check_real(stream, folder: Path, real_traces) -> None:
    name, mapping, options, distinct = stream
    trace = ingest([str(real_traces(name))], folder / "t.trace", mapping, IngestOptions(**options)).trace
    exact = count_exactly(trace, weight=Weight.COUNT)
    assert distinct in (None, exact.distinct)
    for epsilon in (Counting().epsilon_on(trace), FINER):
        keeps_its_promises(trace, exact, epsilon)


@pytest.mark.parametrize("stream", REAL.values(), ids=list(REAL))
def test_real_keys_are_within_their_intervals(stream, tmp_path, real_traces, monkeypatch):
    monkeypatch.setattr(lossy, "FLUSH_ROWS", 1 << 14)  # these are short, but to be purged as long ones are
    check_real(stream, tmp_path, real_traces)


@soak
@pytest.mark.parametrize("stream", REAL_AT_LENGTH.values(), ids=list(REAL_AT_LENGTH))
def test_more_real_keys_are_within_their_intervals(stream, tmp_path, real_traces):
    check_real(stream, tmp_path, real_traces)


@pytest.fixture(scope="module", params=[KeyType.STRING, KeyType.INT64] if SOAK else [KeyType.STRING])
def zipf(request, tmp_path_factory) -> Trace:
    """Some whole blocks and a piece of one, a million keys."""
    out = tmp_path_factory.mktemp("zipf") / f"{request.param}.trace"
    return generate(zipf_stream(rows=ZIPF_ROWS, seed=5, key_type=request.param), out).trace


def test_zipf_keys_are_within_their_intervals(zipf):
    assert len(zipf.blocks()) == -(-ZIPF_ROWS // BLOCK_ROWS) > 2
    exact = count_exactly(zipf)
    for epsilon in (Counting().epsilon_on(zipf), FINER):
        keeps_its_promises(zipf, exact, epsilon)


def test_tasks_and_files_do_not_show_in_whole_blocks(zipf, tmp_path):
    """The same rows in one part whose row groups straddle the blocks."""
    first = count_lossy(zipf, FINER)
    again = cut_anew(zipf, tmp_path / "again.trace", 300_001)
    blocks = len(zipf.blocks())
    for counted in (
        in_tasks([[*range(blocks)]], count_lossy, zipf, FINER),
        in_tasks([[number] for number in reversed(range(blocks))], count_lossy, again, FINER),
    ):
        assert counted.keys.equals(first.keys)
        assert counted.count_low.tolist() == first.count_low.tolist()
        assert counted.count_high.tolist() == first.count_high.tolist()
        assert (counted.complete_above, counted.distinct) == (first.complete_above, first.distinct)


def cut_anew(trace: Trace, folder: Path, group_rows: int) -> Trace:
    """The same rows in one part."""
    folder.mkdir()
    part = folder / "part-00000.parquet"
    pq.write_table(pa.Table.from_batches(trace.batches()), part, row_group_size=group_rows, write_page_checksum=True)
    made = trace.manifest
    entries = [part_entry(folder, part)]
    write_manifest(folder, Manifest("trace", made.content_hash, made.made, entries, made.summary))
    return open_trace(folder)
