"""What is learnt of a trace in the one pass after it is written: its content hash, rates, heaviest keys, oddities."""

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.frequencies.sketches import DistinctSketch, HeavyKeys, distinct_keys, merge_heavy
from adapt.core.hashing.hashes import HASHES
from adapt.core.hashing.names import HashName
from adapt.core.partitioners.key_text import key_to_text
from adapt.traces.artefacts.column_hash import ColumnHasher
from adapt.traces.artefacts.trace import TraceBlock, read_pieces
from adapt.traces.progress import Progress, watched
from adapt.traces.session import spark_failures
from adapt.traces.tasks import in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_BINS = 600
KEYS_A_BLOCK = 1000
RANKS_KEPT = 1000
KEYS_KEPT = 100
SHOWN_KEY = 200
"""Characters of a key that a profile keeps, so that a profile stays small whatever the keys."""

_STEPS_S = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200)
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Grid:
    """Equal bins of time that hold the whole trace; microseconds."""

    start_us: int
    width_us: int
    bins: int

    @classmethod
    def over(cls, first_us: int, last_us: int) -> "Grid":
        """At most `MOST_BINS` bins of a round width, beginning at a multiple of it."""
        span = last_us - first_us + 1
        widths = [round(step * 1e6) for step in _STEPS_S] + [_DAY_S * 1_000_000 * 2**power for power in range(24)]
        width = next(width for width in widths if span <= (MOST_BINS - 1) * width)
        start = first_us // width * width
        return cls(start, width, int((last_us - start) // width + 1))


@dataclass(frozen=True, slots=True)
class Profile:
    """The content hash of a trace and its profile as plain data."""

    content_hash: str
    data: dict[str, Any]


def profile_trace(
    spark: "SparkSession",
    blocks: Sequence[TraceBlock],
    schema: pa.Schema,
    span_us: tuple[int, int],
    progress: Progress,
) -> Profile:
    """Hash and profile a written trace, block by block on Spark; the same result for any cut into files and tasks."""
    grid = Grid.over(*span_us)
    names = schema.names

    def work(index: int) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"told": [json.dumps(block_profile(blocks[index], names, grid))]})

    with spark_failures("profiling the trace"), watched(spark, "profiling", progress):
        tasks = [[block.index] for block in blocks]
        told = [json.loads(row[0]) for row in in_tasks(spark, tasks, work, "told string").collect()]
    return merged_profile(sorted(told, key=lambda block: int(block["index"])), schema, grid)


def block_profile(block: TraceBlock, names: Sequence[str], grid: Grid) -> dict[str, Any]:
    """The part of the profile that one block gives, as plain data that merges."""
    hasher = ColumnHasher(names)
    bins = np.zeros(grid.bins, np.int64)
    facts = {"null_keys": 0, "empty_keys": 0, "longest_key": 0, "whole_seconds": 0, "whole_minutes": 0}
    totals = {name: 0.0 for name in ("cost_us", "bytes") if name in names}
    missing = dict.fromkeys(totals, 0)
    heavy: list[HeavyKeys] = []
    distinct = DistinctSketch(np.zeros(0, np.uint64))
    streams: dict[str, int] = {}
    for batch in read_pieces(block.pieces, names):
        hasher.update(batch)
        times = batch.column("ts").cast(pa.int64()).to_numpy()
        bins += np.bincount((times - grid.start_us) // grid.width_us, minlength=grid.bins)
        facts["whole_seconds"] += int(np.count_nonzero(times % 1_000_000 == 0))
        facts["whole_minutes"] += int(np.count_nonzero(times % 60_000_000 == 0))
        keys = batch.column("key")
        facts["null_keys"] += keys.null_count
        if not pa.types.is_integer(keys.type):
            lengths = pc.binary_length(keys)
            facts["empty_keys"] += pc.sum(pc.equal(lengths, 0)).as_py() or 0
            facts["longest_key"] = max(facts["longest_key"], pc.max(lengths).as_py() or 0)
        known = distinct_keys(keys)
        high, _ = HASHES[HashName.XXHASH64].positions(known)
        # null and the empty key hash alike; null is told apart by its own hash
        hashes = np.where(known.is_null().to_numpy(zero_copy_only=False), np.uint64(42), high)
        distinct = distinct.merged(DistinctSketch.of(hashes))
        heavy.append(HeavyKeys.of(keys, len(keys)))
        for name in totals:
            totals[name] += float(pc.sum(batch.column(name)).as_py() or 0)
            missing[name] += batch.column(name).null_count
        if "stream" in names:
            for entry in batch.column("stream").value_counts().to_pylist()[:KEYS_KEPT]:
                shown = "(null)" if entry["values"] is None else entry["values"][:SHOWN_KEY]
                streams[shown] = streams.get(shown, 0) + entry["counts"]
    top = merge_heavy(heavy).cut(KEYS_A_BLOCK)
    used = np.flatnonzero(bins)
    return {
        "index": block.index,
        "rows": block.rows,
        "digest": hasher.digest(),
        "bins": [used.tolist(), bins[used].tolist()],
        "facts": facts,
        "totals": totals,
        "missing": missing,
        "distinct": base64.b64encode(distinct.smallest.astype("<u8").tobytes()).decode(),
        "heavy": [_packed(top.keys), top.counts.tolist(), top.missed],
        "streams": streams,
    }


def merged_profile(told: Sequence[dict[str, Any]], schema: pa.Schema, grid: Grid) -> Profile:
    """The profile of the whole from those of its blocks, in order."""
    columns = [[name, str(schema.field(name).type)] for name in schema.names]
    rows = sum(block["rows"] for block in told)
    whole = hashlib.sha256(json.dumps([columns, rows]).encode())
    bins = np.zeros(grid.bins, np.int64)
    distinct = DistinctSketch(np.zeros(0, np.uint64))
    facts: dict[str, int] = {}
    totals: dict[str, float] = {}
    missing: dict[str, int] = {}
    streams: dict[str, int] = {}
    for block in told:
        whole.update(bytes.fromhex(block["digest"]))
        bins[block["bins"][0]] += block["bins"][1]
        distinct = distinct.merged(DistinctSketch(np.frombuffer(base64.b64decode(block["distinct"]), "<u8")))
        for name, value in block["facts"].items():
            facts[name] = max(facts.get(name, 0), value) if name == "longest_key" else facts.get(name, 0) + value
        for into, name in ((totals, "totals"), (missing, "missing"), (streams, "streams")):
            for key, value in block[name].items():
                into[key] = into.get(key, 0) + value  # type: ignore[assignment, operator]
    kind = schema.field("key").type
    heavy = merge_heavy(
        HeavyKeys(_unpacked(keys, kind), np.array(counts, np.int64), missed)
        for keys, counts, missed in (block["heavy"] for block in told)
    )
    peak = int(bins.argmax())
    return Profile(
        whole.hexdigest(),
        {
            "rows": rows,
            "rates": {"start_us": grid.start_us, "width_us": grid.width_us, "rows": bins.tolist()},
            "peak": {"start_us": grid.start_us + peak * grid.width_us, "rows": int(bins[peak])},
            "distinct_keys": distinct.estimate(),
            "distinct_exact": len(distinct.smallest) < distinct.limit,
            "top_keys": [[_shown(key), int(n)] for key, n in zip(heavy.keys[:KEYS_KEPT], heavy.counts, strict=False)],
            "rank_counts": heavy.counts[:RANKS_KEPT].tolist(),
            "top_missed": heavy.missed,
            "facts": facts,
            "totals": totals,
            "missing": missing,
            "streams": dict(sorted(streams.items(), key=lambda item: (-item[1], item[0]))[:KEYS_KEPT]),
        },
    )


def _packed(keys: pa.Array) -> list[Any]:
    """Keys as JSON values: whole numbers as they are, text and binary in base 64."""
    if pa.types.is_integer(keys.type):
        return list(keys.to_pylist())
    packed = [
        None if key is None else base64.b64encode(key).decode() for key in keys.cast(pa.large_binary()).to_pylist()
    ]
    return list(packed)


def _unpacked(keys: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_integer(kind):
        return pa.array(keys, kind)
    return pa.array([None if key is None else base64.b64decode(key) for key in keys], pa.binary()).cast(kind)


def _shown(key: pa.Scalar) -> str | None:
    """A key as text, cut short and saying so; null stays null."""
    if not key.is_valid:
        return None
    text = key_to_text(key.as_py())
    return text if len(text) <= SHOWN_KEY else f"{text[:SHOWN_KEY]}… ({len(text)} characters)"
