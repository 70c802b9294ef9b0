"""Exact load of each channel in each window of a trace."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa

from adapt.core.arrays import Floats
from adapt.core.counting.panes import Panes
from adapt.core.errors import EnvironmentFailure
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.out_of_sample.counted_panes import rows_a_pane
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.stream import Weight
from adapt.core.units.row_or_time_span import Length
from adapt.traces.counting.exact import too_heavy
from adapt.traces.counting.weights import WEIGHT_COLUMNS, chosen_weight, weights_of
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.runner import BlockSums, runner_for
from adapt.traces.spark.session import Spark
from adapt.traces.store.atomic import replace_whole
from adapt.traces.store.manifest import as_json, hash_of, program_versions
from adapt.traces.store.trace import Trace, read_pieces

_DOING = "routing all rows"


def channel_loads(
    trace: Trace,
    today: Plan,
    folder: Path,
    weight: Weight | None = None,
    *,
    spark_options: Spark = None,
    progress: Progress = silent,
) -> Floats | None:
    """Exact load of each channel in each window, cached in `folder`.

    Every row is routed, so that no estimate of keys that a lossy counter did not list is needed.

    Returns:
        Shape (channels, windows); None if the trace is too short for windows.

    Raises:
        UsageError: the trace lacks the column of the weight.
        BadInput: the trace is damaged, or its weights overflow.
    """
    rows = rows_a_pane(trace.rows)
    if rows is None:
        return None
    chosen = chosen_weight(trace, weight)
    version = program_versions()["adapt-streams"]
    decisive = [trace.manifest.content_hash, chosen.value, rows, today.content_hash(), version]
    kept = folder / f"{hash_of(decisive)[:32]}.loads"
    shape = (today.channels, -(-trace.rows // rows))
    with suppress(OSError, ValueError, TypeError):  # not cached, or damaged
        return np.array(json.loads(kept.read_bytes()), np.float64).reshape(shape)
    sums = runner_for(trace.rows, spark_options, progress).sums(
        _routed(trace, today.partitioner(), chosen, Panes(Length(rows, True)))
    )
    if sums["load"].null_count:
        raise too_heavy(trace.path, chosen)
    loads = np.zeros(shape)
    loads[sums["channel"].to_numpy(), sums["pane"].to_numpy()] = sums["load"].to_numpy()
    with suppress(EnvironmentFailure, OSError):  # without a cache, the next run routes again
        folder.mkdir(exist_ok=True)
        replace_whole(kept, as_json(loads.tolist()))
    return loads


def _routed(trace: Trace, today: Partitioner, weight: Weight, grid: Panes) -> BlockSums:
    """Work that sums the load of each channel and window."""
    blocks, channels = trace.blocks(), today.channels
    columns = ["key"] if weight is Weight.COUNT else ["key", WEIGHT_COLUMNS[weight]]

    def work(place: int) -> Iterator[pa.RecordBatch]:
        block = blocks[place]
        first, last = grid.numbers(np.array([block.first_row, block.first_row + block.rows - 1])).tolist()
        loads = np.zeros((last - first + 1) * channels, np.float64 if weight is Weight.COST else np.int64)
        row = block.first_row
        for batch in read_pieces(block.pieces, columns, ["key"]):
            panes = grid.numbers(np.arange(row, row + batch.num_rows)) - first
            weights = weights_of(batch, weight)
            cells = panes * channels + _channels(batch.column("key"), today)
            np.add.at(loads, cells, 1 if weights is None else weights)
            row += batch.num_rows
        held = np.flatnonzero(loads)
        parts = [first + held // channels, held % channels, loads[held], np.full(len(held), place)]
        yield pa.RecordBatch.from_arrays([pa.array(part) for part in parts], names=["pane", "channel", "load", "block"])

    kind = "double" if weight is Weight.COST else "bigint"
    schema = f"pane bigint, channel bigint, load {kind}, block bigint"
    return BlockSums(_DOING, len(blocks), work, schema, ["pane", "channel"], {"load": weight}, "block")


def _channels(keys: pa.Array, today: Partitioner) -> Channels:
    """The channel of each row; keys of a dictionary are hashed once."""
    if not isinstance(keys, pa.DictionaryArray):
        return today.channels_of(keys)
    of_value = today.channels_of(keys.dictionary)
    if not keys.null_count:
        return np.asarray(of_value[keys.indices.to_numpy()])
    of_null = int(today.channels_of(pa.nulls(1, keys.dictionary.type))[0])
    codes = keys.indices.fill_null(0).to_numpy()
    is_null = keys.indices.is_null().to_numpy(zero_copy_only=False)
    return np.asarray(np.where(is_null, of_null, of_value[codes]))
