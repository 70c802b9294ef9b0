"""Key columns of the real traces, and what plans do on windows that they have not seen."""

import gzip
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.engines.names import Engine
from adapt.core.out_of_sample.walk_forward import Tried, Walk, Way
from adapt.core.out_of_sample.windows import CountedPane, Windows
from adapt.core.partitioning.plans.registry import make_partitioner

WINDOWS = 12
CASES = tuple(itertools.product((Engine.SPARK, Engine.KAFKA, Engine.FLINK), (8, 12)))
"""Engines and numbers of channels."""


def table(source: Path | pa.BufferReader, names: list[str], delimiter: str = ",", *, header: bool = False) -> pa.Table:
    if isinstance(source, Path):
        kind = {".bz2": "bz2", ".gz": "gzip"}.get(source.suffix)
        source = pa.input_stream(str(source), compression=kind)
    read = pyarrow.csv.ReadOptions(column_names=None if header else names)
    parse = pyarrow.csv.ParseOptions(delimiter=delimiter)
    convert = pyarrow.csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
    return pyarrow.csv.read_csv(source, read, parse, convert)


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
    route = pc.binary_join_element_wise(read["origin"], read["dest"], "-")
    return read.append_column("route", route), (month * 100 + day) * 10_000 + time


def weather(path: Path) -> tuple[pa.Table, np.ndarray]:
    read = table(path, [], header=True)
    return read.rename_columns({"origin": "airport"}), read["time_hour"].cast(pa.string()).to_numpy()


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
    names = [read[name].cast(pa.string()) for name in ("sender", "receiver")]
    return read.append_column("pair", pc.binary_join_element_wise(*names, ">")), read["time"].to_numpy()


def ticks(folder: Path) -> tuple[pa.Table, np.ndarray]:
    """Quotes of all venues by UTC; one venue's clock is five hours behind."""
    parts, times = [], []
    for day in sorted(folder.rglob("*_quote.zip")):
        venue, _, instrument = day.parts[-4:-1]
        read = zipped(day, ["ms", "bid", "ask"])
        named = pa.array([f"{venue}:{instrument}"]).take(pa.array(np.zeros(len(read), np.int64)))
        level = pc.binary_join_element_wise(pa.scalar(instrument), read["bid"].cast(pa.string()), "@")
        parts.append(pa.table({"venue:instrument": named, "instrument@bid": level}))
        times.append(int(day.name[6:8]) * 86_400_000.0 + (venue == "fxcm") * 18_000_000 + read["ms"].to_numpy())
    rows = pa.concat_tables(parts)
    instrument = pc.list_element(pc.split_pattern(rows["venue:instrument"], ":"), 1)
    return rows.append_column("instrument", instrument), np.concatenate(times)


def trades(folder: Path) -> tuple[pa.Table, np.ndarray]:
    """Trades of minutes, of all pairs; days that follow each other as in the calendar."""
    parts, times = [], []
    for day in sorted((folder / "coinbase" / "minute").rglob("*_trade.zip")):
        read = zipped(day, ["ms", "open", "high", "low", "close", "volume"])
        parts += [day.parts[-2]] * len(read)
        times.append(int(day.name[:8]) * 86_400_000.0 + read["ms"].to_numpy())
    return pa.table({"currency pair": parts}), np.concatenate(times)


def zipped(path: Path, names: list[str]) -> pa.Table:
    with ZipFile(path) as archive:
        return table(pa.BufferReader(archive.read(archive.namelist()[0])), names)


Sources = Mapping[str, tuple[Callable[[Path], tuple[pa.Table, np.ndarray]], tuple[str, ...]]]

DECIDING: Sources = {
    "weblog-2015/apache_logs": (weblog, ("host", "path")),
    "wiki-edits/wikiticker-2015-09-12-sampled.json.gz": (wiki, ("channel", "user", "page")),
    "reviews/anonreviews.csv.bz2": (reviews, ("vendorId",)),
    "flights/flights.csv.gz": (flights, ("dest", "carrier", "tailnum")),
    "messages/CollegeMsg.txt": (messages, ("sender", "receiver")),
    "taxi/taxi-traces.csv": (taxi, ("taxi", "cell")),
}
OTHERS: Sources = {
    "reviews/anonreviews.csv.bz2": (reviews, ("reviewerId",)),
    "flights/flights.csv.gz": (flights, ("route", "origin")),
    "flights/weather.csv": (weather, ("airport",)),
    "messages/CollegeMsg.txt": (messages, ("pair",)),
    "fx-ticks": (ticks, ("venue:instrument", "instrument", "instrument@bid")),
    "crypto-trades": (trades, ("currency pair",)),
}


def columns_of(sources: Sources, find: Callable[[str], Path]) -> dict[str, list[CountedPane]]:
    """The windows of each column."""
    found = {}
    for file, (read, names) in sources.items():
        rows, times = read(find(file))
        order = pa.array(np.argsort(times, kind="stable"))
        for name in names:
            found[name] = panes_of(pc.cast(rows[name], pa.string()).take(order))
    return found


def panes_of(keys: pa.ChunkedArray, windows: int = WINDOWS) -> list[CountedPane]:
    """Windows of equally many rows, of keys in time order."""
    edges = np.linspace(0, len(keys), windows + 1).astype(int)
    return [
        CountedPane(at, frequencies_of(count_keys(keys.slice(first, end - first))))
        for at, (first, end) in enumerate(itertools.pairwise(edges))
    ]


@dataclass(frozen=True)
class Judged:
    """A stream, and what is known of it before each of its later windows."""

    whole: Windows
    walks: Mapping[int, Walk]  # by the number of windows before

    @classmethod
    def over(cls, panes: Sequence[CountedPane], engine: Engine, channels: int) -> "Judged":
        placed = make_partitioner(engine, channels)
        before = {at: Windows.from_panes(panes[:at], placed) for at in range(len(panes) // 2, len(panes))}
        return cls(Windows.from_panes(panes, placed), {at: Walk.over(each) for at, each in before.items()})

    def after(self, walk: Walk, chosen: Tried | None, at: int) -> float:
        """Imbalance of a window with a plan from those before."""
        loads = self.whole.loads[:, at].copy()
        rows = pc.index_in(walk.windows.keys, value_set=self.whole.keys).to_pylist()
        for row, channels in ({} if chosen is None else chosen.moves.placed()).items():
            own = self.whole.shares[rows[row], at]
            loads[self.whole.home[rows[row]]] -= own
            loads[list(channels)] += own / len(channels)
        return float(self.whole.imbalances(loads[:, None])[0])

    def over_today(self, ways: Sequence[Way]) -> float:
        """Median over the later half of a plan's imbalance over that of doing nothing.

        No imbalance is tolerated. The plan is from the first half, and rebuilt before each window if `ways` rebuild.
        """
        first, found = min(self.walks), []
        for at, last in self.walks.items():
            walk = last if Way.REBUILT in ways else self.walks[first]
            found.append(self.after(walk, walk.decided(1.0, ways), at) / self.after(walk, None, at))
        return float(np.median(found))

    def held(self, ways: Sequence[Way]) -> list[bool]:
        """Whether each later window is within the interval that the windows before it give."""
        told = []
        for at, walk in self.walks.items():
            chosen = walk.decided(1.0, ways)
            low, high = walk.outcome([], None).next_window if chosen is None else chosen.next_window
            told.append(low <= self.after(walk, chosen, at) <= high)
        return told
