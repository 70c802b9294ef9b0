"""Plans on windows that they have not seen: thirteen real columns, three engines, 8 and 12 channels, twelve windows."""

import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pytest

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.engines.names import Engine
from adapt.core.out_of_sample.counted_panes import CountedPane
from adapt.core.out_of_sample.outcome import OutOfSample
from adapt.core.out_of_sample.walk_forward import walk_forward
from adapt.core.out_of_sample.windows import Windows
from adapt.core.partitioning.plans.registry import make_partitioner

WINDOWS = 12
ENGINES = (Engine.SPARK, Engine.KAFKA, Engine.FLINK)
CHANNELS = (8, 12)


def table(path: Path, names: list[str], delimiter: str = ",", *, header: bool = False) -> pa.Table:
    kind = {".bz2": "bz2", ".gz": "gzip"}.get(path.suffix)
    read = pyarrow.csv.ReadOptions(column_names=None if header else names)
    parse = pyarrow.csv.ParseOptions(delimiter=delimiter)
    convert = pyarrow.csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
    return pyarrow.csv.read_csv(pa.input_stream(str(path), compression=kind), read, parse, convert)


def weblog(path: Path) -> tuple[pa.Table, np.ndarray]:
    fields = pc.split_pattern(pa.array(path.read_text(errors="replace").splitlines()), " ")
    host, time, page = (pc.list_element(fields, at) for at in (0, 3, 6))
    when = pc.strptime(pc.utf8_slice_codeunits(time, 1), "%d/%b/%Y:%H:%M:%S", "s")
    return pa.table({"host": host, "path": page}), when.cast(pa.int64()).to_numpy()


def wiki(path: Path) -> tuple[pa.Table, np.ndarray]:
    with gzip.open(path) as source:
        edits = pyarrow.json.read_json(source)
    return edits, edits["time"].cast(pa.string()).to_numpy()


def flights(path: Path) -> tuple[pa.Table, np.ndarray]:
    read = table(path, [], header=True)
    month, day, time = (np.nan_to_num(read[name].to_numpy().astype(float)) for name in ("month", "day", "dep_time"))
    return read, (month * 100 + day) * 10_000 + time


def taxi(path: Path) -> tuple[pa.Table, np.ndarray]:
    read = table(path, list("abcdefg"))
    cells = [(np.floor(read[name].to_numpy() * 100)).astype(int).astype(str) for name in "de"]
    cell = pc.binary_join_element_wise(*map(pa.array, cells), ":")
    return pa.table({"taxi": read["b"], "cell": cell}), read["c"].cast(pa.string()).to_numpy()


def reviews(path: Path) -> tuple[pa.Table, np.ndarray]:
    read = table(path, [], header=True)
    return read, read["date"].cast(pa.string()).to_numpy()


def messages(path: Path) -> tuple[pa.Table, np.ndarray]:
    read = table(path, ["sender", "receiver", "time"], " ")
    return read, read["time"].to_numpy()


SOURCES = {
    "weblog-2015/apache_logs": (weblog, ("host", "path")),
    "wiki-edits/wikiticker-2015-09-12-sampled.json.gz": (wiki, ("channel", "user", "page")),
    "reviews/anonreviews.csv.bz2": (reviews, ("vendorId",)),
    "flights/flights.csv.gz": (flights, ("dest", "carrier", "tailnum")),
    "messages/CollegeMsg.txt": (messages, ("sender", "receiver")),
    "taxi/taxi-traces.csv": (taxi, ("taxi", "cell")),
}


@pytest.fixture(scope="module")
def columns(real_traces) -> dict[str, list[CountedPane]]:
    """The windows of each column, in time order."""
    found = {}
    for file, (read, names) in SOURCES.items():
        rows, times = read(real_traces(file))
        order = pa.array(np.argsort(times, kind="stable"))
        for name in names:
            keys = pc.cast(rows[name], pa.string()).take(order).combine_chunks()
            edges = np.linspace(0, len(keys), WINDOWS + 1).astype(int)
            found[name] = [
                CountedPane(at, frequencies_of(count_keys(keys.slice(first, end - first))))
                for at, (first, end) in enumerate(itertools.pairwise(edges))
            ]
    return found


@pytest.fixture(scope="module")
def cases(columns) -> list[tuple[str, OutOfSample]]:
    """Every column, engine and number of channels."""
    return [(name, walked(panes, engine, n)) for name, panes in columns.items() for engine in ENGINES for n in CHANNELS]


def walked(panes: list[CountedPane], engine: Engine, channels: int) -> OutOfSample:
    tested, _ = walk_forward(Windows.from_panes(panes, make_partitioner(engine, channels)))
    return tested


def ratios(cases: list[tuple[str, OutOfSample]], name: str) -> np.ndarray:
    """Median over the later windows of the imbalance over that of doing nothing."""
    pairs = ((getattr(tested, name).imbalances, tested.today.imbalances) for _, tested in cases)
    return np.array([np.median(np.divide(plan, today)) for plan, today in pairs])


def test_a_kept_plan_lowers_the_imbalance_of_later_windows(cases):
    found = ratios(cases, "kept")
    assert len(found) == 13 * 6
    assert np.exp(np.log(found).mean()) <= 0.81
    assert (found > 1.02).mean() <= 0.03


def test_a_refreshed_plan_lowers_it_further_and_harms_nobody(cases):
    found = ratios(cases, "rebuilt")
    assert np.exp(np.log(found).mean()) <= 0.79
    assert not (found > 1.02).any()


def test_the_interval_for_the_next_window_holds(columns):
    held = {name: list(_held(panes)) for name, panes in columns.items()}
    assert np.mean([is_held for column in held.values() for is_held in column]) >= 0.87
    assert {name: share for name in held if (share := np.mean(held[name])) < 0.75} == {}


def _held(panes: list[CountedPane]) -> Iterator[bool]:
    """Whether each later window is within the interval that the windows before it give."""
    for engine in ENGINES:
        for channels in CHANNELS:
            partitioner = make_partitioner(engine, channels)
            for upto in range(WINDOWS // 2, WINDOWS):
                past = Windows.from_panes(panes[:upto], partitioner)
                tested, pins = walk_forward(past)
                keys, weights = panes[upto].frequencies.keys, panes[upto].frequencies.count_low
                placed = partitioner.channels_of(keys)
                rows = pc.index_in(keys, value_set=past.keys.take(pa.array(pins.rows)))
                known = rows.is_valid().to_numpy(zero_copy_only=False)
                placed[known] = pins.channels[rows.drop_null().to_numpy()]
                low, high = tested.next_window
                loads = np.bincount(placed, weights, channels)
                yield low <= loads.max() / loads.mean() <= high
