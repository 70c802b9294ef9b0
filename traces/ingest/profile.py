"""Profile and manifest of a trace that is written."""

import hashlib
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adapt.core.counting.sketches import HeavyKeys, HeavySums, merge_heavy
from adapt.core.errors import BadInput
from adapt.core.keys.columns import key_type_of
from adapt.core.keys.key_text import packed_keys, unpacked_keys
from adapt.core.lint.evidence import LINT, OF_TIMES
from adapt.core.lint.merging import EvidenceMerger, shown_key
from adapt.core.lint.observing import BlockObserver, times_of
from adapt.core.lint.time_rules import ClockGrid
from adapt.core.reading import FOLDER, Rejects
from adapt.core.stream import KeyType
from adapt.core.units.durations import round_us
from adapt.core.units.seals import hash_of
from adapt.traces.block_cache import Decisive, Work
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.parts import part_name
from adapt.traces.spark.lazy import DataFrame, F, SparkSession
from adapt.traces.spark.progress import Progress, watched
from adapt.traces.spark.runner import BlockRows, InProcessRunner, in_tasks
from adapt.traces.spark.session import spark_failures
from adapt.traces.store.manifest import Manifest, Provenance, file_entry, write_manifest
from adapt.traces.store.tables import ColumnHasher
from adapt.traces.store.trace import TraceBlock, blocks_of, part_entry, read_pieces

MOST_BINS = 600
KEYS_A_BLOCK = 1000
KEYS_A_GROUP = 8 * KEYS_A_BLOCK
RANKS_KEPT = 1000
KEYS_KEPT = 100

TOLD = "block bigint, told binary"
"""Schema of the block profiles that tasks return."""

MERGED_BLOCKS = 16
"""Profiles that a task merges, in rounds, until at most `MOST_HELD` are left."""

MOST_HELD = 64
"""Profiles that the driver holds: of blocks, of `MERGED_BLOCKS` of them, of as many of those, and so on."""

MOST = float(np.finfo(np.float64).max)
"""Largest total that can be represented."""

Amounts: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grid:
    """Equal time bins over the whole trace, in microseconds."""

    start_us: int
    width_us: int
    bins: int

    @classmethod
    def over(cls, first_us: int, last_us: int) -> "Grid":
        """At most `MOST_BINS` bins of a round width, aligned to it."""
        span = last_us - first_us + 1
        width = round_us(span / (MOST_BINS - 1))
        start = first_us // width * width
        return cls(start, width, int((last_us - start) // width + 1))

    @property
    def edges_us(self) -> NDArray[np.int64]:
        """Edges of the bins; shape (bins + 1,)."""
        return self.start_us + np.arange(self.bins + 1) * self.width_us


@dataclass(frozen=True, slots=True)
class Profile:
    """Content hash of a trace, and its profile as plain data."""

    content_hash: str
    data: dict[str, Any]


def profile_trace(
    spark: SparkSession | None,
    blocks: Sequence[TraceBlock],
    schema: pa.Schema,
    span_us: tuple[int, int],
    progress: Progress,
    keeping: "Callable[[Work, Decisive], Work]" = lambda work, _: work,
) -> Profile:
    """Hash and profile a written trace block by block.

    In threads of this process if there is no Spark. The result does not depend on how the trace is cut into files and
    tasks.

    Args:
        keeping: Keeps the profiles of blocks, see `adapt.traces.block_cache`.
    """
    profiler = Profiler.over(span_us, sum(block.rows for block in blocks), schema)

    def work(index: int) -> Iterator[pa.RecordBatch]:
        block = blocks[index]
        yield profiler.as_row(block.index, block.first_row, read_pieces(block.pieces, schema.names))

    kept = keeping(work, profiler.decisive)
    if spark is None:
        return profiler.collected(InProcessRunner(progress).rows(BlockRows("profiling", len(blocks), kept, TOLD)))
    tasks = [[block.index] for block in blocks]
    with spark_failures("profiling the trace"), watched(spark, "profiling", progress):
        return profiler.reduced(in_tasks(spark, tasks, kept, TOLD), len(blocks))


@dataclass(frozen=True, slots=True)
class Profiler:
    """Profiles a trace block by block, in Spark tasks."""

    schema: pa.Schema  # schema of the trace
    grid: Grid  # time bins for rates
    clock: ClockGrid  # time bins for the activity of streams
    middle: int  # number of the first row in the second half of the trace

    @classmethod
    def over(cls, span_us: tuple[int, int], rows: int, schema: pa.Schema) -> "Profiler":
        """Profiler of a trace of this span, rows and schema."""
        return cls(schema, Grid.over(*span_us), ClockGrid.over(*span_us), rows // 2)

    def decisive(self, block: TraceBlock) -> list[Any] | None:
        """What decides the profile of a block besides its content.

        None in the middle of the trace, which moves as it grows.
        """
        in_first = min(max(self.middle - block.first_row, 0), block.rows)
        if 0 < in_first < block.rows:
            return None
        grids = [self.grid.start_us, self.grid.width_us, self.clock.start_us, self.clock.width_us]
        return ["profile", *grids, in_first > 0]

    def of_block(self, first_row: int, batches: Iterable[pa.RecordBatch]) -> bytes:
        """The profile of one block, packed for `merged`.

        Args:
            first_row: Number of its first row.
            batches: Its rows, in order.
        """
        return _packed(_block_profile(first_row, batches, self.schema.names, self.grid, self.clock, self.middle))

    def as_row(self, index: int, first_row: int, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
        """As `of_block`, as a row of the schema `TOLD`."""
        return pa.RecordBatch.from_pydict({"block": [index], "told": [self.of_block(first_row, batches)]})

    def collected(self, told: pa.Table) -> Profile:
        """Profile of the trace from the rows of `as_row`, in any order."""
        return self.merged(told.sort_by("block")["told"].to_pylist())

    def reduced(self, told: DataFrame, blocks: int) -> Profile:
        """As `collected`, with blocks merged in Spark tasks first.

        One row per block; the driver holds at most `MOST_HELD`. Which blocks are merged together depends on their
        number alone.
        """
        size = MERGED_BLOCKS

        def merge(rows: pa.Table) -> pa.Table:
            merged = self._merged_all(rows.sort_by("block")["told"].to_pylist())
            return pa.table({"block": [rows["block"][0].as_py() // size], "told": [_packed(merged.as_block())]})

        while blocks > MOST_HELD:
            told = told.groupBy(F.expr(f"block div {size}")).applyInArrow(merge, TOLD)
            blocks = -(-blocks // size)
        return self.collected(told.toArrow())

    def merged(self, told: Iterable[bytes]) -> Profile:
        """Profile of the trace from the profiles of its blocks, in order."""
        return self._merged_all(told).profile()

    def _merged_all(self, told: Iterable[bytes]) -> "_Merged":
        merged = _Merged.none(self.schema, self.grid, self.clock)
        for packed in told:
            merged.add(json.loads(zlib.decompress(packed)))
        return merged


def _packed(part: dict[str, Any]) -> bytes:
    return zlib.compress(json.dumps(part).encode(), level=1)


def _block_profile(
    first_row: int, batches: Iterable[pa.RecordBatch], names: Sequence[str], grid: Grid, clock: ClockGrid, middle: int
) -> dict[str, Any]:
    """The profile of one block as plain data that can be merged; see `Profiler` for the arguments."""
    rows = 0
    hasher = ColumnHasher(names)
    bins = np.zeros(grid.bins, np.int64)
    amounts: dict[str, list[Amounts]] = {name: [] for name in ("cost_us", "bytes") if name in names}
    missing = dict.fromkeys(amounts, 0)
    streams: list[HeavyKeys] = []
    observer = BlockObserver(names, first_row, middle, clock)
    for batch in batches:
        rows += len(batch)
        hasher.update(batch)
        times = times_of(batch)
        bins += np.diff(np.searchsorted(times, grid.edges_us))
        observer.see(batch)
        for name, held in amounts.items():
            column = batch.column(name)
            held.append(pc.fill_null(column, 0).cast(pa.float64(), safe=False).to_numpy())
            missing[name] += column.null_count
        if "stream" in names:
            streams.append(HeavyKeys.from_column(batch.column("stream"), len(batch)))
    used = np.flatnonzero(bins)
    return {
        "rows": rows,
        "digests": [hasher.digest()],
        "bins": [used.tolist(), bins[used].tolist()],
        # over the whole block at once, since a sum of floats depends on their grouping
        "totals": {name: [_total(held)] for name, held in amounts.items()},
        "missing": missing,
        LINT: observer.as_data(),
        "streams": _packed_heavy(streams) if streams else None,
    }


@dataclass(slots=True)
class _Merged:
    """Profiles of blocks, merged in order; of each block only the digest and the totals are held."""

    schema: pa.Schema
    grid: Grid
    bins: NDArray[np.int64]
    lint: EvidenceMerger
    rows: int = 0
    digests: list[str] = field(default_factory=list)
    totals: dict[str, list[float]] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    streams: HeavySums = field(default_factory=lambda: HeavySums(("rows",)))

    @classmethod
    def none(cls, schema: pa.Schema, grid: Grid, clock: ClockGrid) -> "_Merged":
        """The profile of no blocks."""
        lint = EvidenceMerger(clock, schema.field("key").type, "stream" in schema.names)
        return cls(schema, grid, np.zeros(grid.bins, np.int64), lint)

    def add(self, block: Mapping[str, Any]) -> None:
        """Add the next block, or several as one."""
        self.rows += block["rows"]
        self.digests += block["digests"]
        self.bins[block["bins"][0]] += block["bins"][1]
        for name, values in block["totals"].items():
            self.totals.setdefault(name, []).extend(values)
        for name, value in block["missing"].items():
            self.missing[name] = self.missing.get(name, 0) + value
        self.lint.add(block[LINT])
        if block["streams"]:
            names, counts, missed = block["streams"]
            kind = self.schema.field("stream").type
            self.streams.add(unpacked_keys(names, kind), {"rows": np.array(counts, np.int64)}, missed)

    def as_block(self) -> dict[str, Any]:
        """All of these as one block."""
        used = np.flatnonzero(self.bins)
        streams = None
        if "stream" in self.schema.names:
            names, counts, missed = self.streams.top(KEYS_A_GROUP)
            streams = [packed_keys(names), counts["rows"].tolist(), missed]
        return {
            "rows": self.rows,
            "digests": self.digests,
            "bins": [used.tolist(), self.bins[used].tolist()],
            "totals": self.totals,
            "missing": self.missing,
            LINT: self.lint.as_block(),
            "streams": streams,
        }

    def profile(self) -> Profile:
        """The profile of the trace."""
        totals = {name: sum(values, 0.0) for name, values in self.totals.items()}
        for name, total in totals.items():
            if not math.isfinite(total):
                raise BadInput(f"the total {name} of all rows exceeds {MOST:g}; the values are too large")
        columns = [[name, str(self.schema.field(name).type)] for name in self.schema.names]
        digests = b"".join(map(bytes.fromhex, self.digests))
        whole = hashlib.sha256(json.dumps([columns, self.rows]).encode() + digests)
        lint, bins = self.lint, self.bins
        heavy, distinct = lint.heavy, lint.sample.distinct()
        peak, evidence, rates = int(bins.argmax()), lint.evidence(), dict[str, Any]()
        if "ts" in self.schema.names:
            rates = {
                "rates": {"start_us": self.grid.start_us, "width_us": self.grid.width_us, "rows": bins.tolist()},
                "peak": {"start_us": self.grid.start_us + peak * self.grid.width_us, "rows": int(bins[peak])},
            }
        else:
            evidence = {name: held for name, held in evidence.items() if name not in OF_TIMES}
        return Profile(
            whole.hexdigest(),
            {
                "rows": self.rows,
                **rates,
                "distinct_keys": distinct.estimate(),
                "distinct_exact": len(distinct.smallest) < distinct.limit,
                "top_keys": [
                    [shown_key(key), int(n)] for key, n in zip(heavy.keys[:KEYS_KEPT], heavy.counts, strict=False)
                ],
                "rank_counts": heavy.counts[:RANKS_KEPT].tolist(),
                "top_missed": heavy.missed,
                "facts": lint.key_facts,
                "totals": totals,
                "missing": self.missing,
                "streams": _shown(self.streams) if "stream" in self.schema.names else {},
                LINT: evidence,
            },
        )


def _shown(streams: HeavySums) -> dict[str, int]:
    """Rows of the most frequent streams, by name."""
    names, amounts = streams.done()
    shown: dict[str, int] = {}
    for name, rows in zip(names[:KEYS_KEPT], amounts["rows"], strict=False):
        text = shown_key(name) or ("" if name.is_valid else "(null)")
        shown[text] = shown.get(text, 0) + int(rows)
    return shown


def _total(held: Sequence[Amounts]) -> float:
    with np.errstate(over="ignore"):  # reported when the blocks are merged
        return float(np.concatenate(held).sum())


def _packed_heavy(parts: Sequence[HeavyKeys]) -> list[Any]:
    """The most frequent keys of a block, as JSON values."""
    top = merge_heavy(parts).cut(KEYS_A_BLOCK)
    return [packed_keys(top.keys), top.counts.tolist(), top.missed]


@dataclass(frozen=True, slots=True)
class Written:
    """Written rows of a trace without a manifest."""

    blocks: Sequence[TraceBlock]  # blocks of rows
    schema: pa.Schema  # schema of all parts
    span_us: tuple[int, int]  # first and last time

    def profiled(self, spark: SparkSession | None, progress: Progress) -> Profile:
        """Hash and profile all rows; without Spark in this process."""
        return profile_trace(spark, self.blocks, self.schema, self.span_us, progress)


def settle(
    folder: Path,
    made: Provenance,
    rejects: Rejects,
    profiled: Callable[["Written"], Profile],
    evidence: Mapping[str, Any] | None = None,
    key_type: KeyType | None = None,
    key_columns: Sequence[str] = ("key",),
) -> None:
    """Turn a folder of parts into a trace by its manifest.

    Args:
        profiled: Returns the profile of the written rows.
        evidence: Lint evidence on the source, by name; see `Evidence.lint`.
        key_type: The type of the keys in the source. Default: that of their column.
        key_columns: Columns or expressions of the source that make the key.
    """
    parts = sorted(folder.glob(part_name(0).replace("00000", "*")))
    entries = [part_entry(folder, part) for part in parts]
    schema = pq.read_schema(arrow_source(parts[0])).remove_metadata()
    span_us = _span_us(parts) if "ts" in schema.names else None
    profile = profiled(Written(blocks_of(folder, entries), schema, span_us or (0, 0)))
    profile.data[LINT].update(evidence or {})
    key_type = key_type or key_type_of(schema.field("key").type)
    # a column alone does not say where an engine places its keys
    content = profile.content_hash
    content = content if key_type is key_type.storage else hash_of([content, key_type.value])
    aside = [file_entry(folder, path) for path in sorted((folder / FOLDER).glob("*.parquet"))]
    summary: dict[str, Any] = {
        "rows": sum(entry["rows"] for entry in entries),
        **({} if span_us is None else {"first_us": span_us[0], "last_us": span_us[1]}),
        "key_type": key_type.value,
        "key_columns": list(key_columns),
        "columns": list(schema.names),
        "types": [str(kind) for kind in schema.types],
        "rejects": {"rows": rejects.rows, "reasons": rejects.reasons, "examples": rejects.examples},
        "profile": profile.data,
    }
    write_manifest(folder, Manifest("trace", content, made, [*entries, *aside], summary))


def _span_us(parts: list[Path]) -> tuple[int, int]:
    """The first and last time; parts are in time order, so only the first row and the last are read."""
    first = pq.ParquetFile(arrow_source(parts[0])).read_row_group(0, columns=["ts"])["ts"][0]
    last_part = pq.ParquetFile(arrow_source(parts[-1]))
    last = last_part.read_row_group(last_part.num_row_groups - 1, columns=["ts"])["ts"][-1]
    return tuple(int(value.cast(pa.int64()).as_py()) for value in (first, last))  # type: ignore[return-value]
