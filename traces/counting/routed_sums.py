"""Sums of all rows by listed key, cell and channel."""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Counts
from adapt.core.counting.timeline import Panes
from adapt.core.keys.hashes import HashedKeys
from adapt.core.keys.key_index import KeyIndex
from adapt.core.keys.names import HashName
from adapt.core.out_of_sample.windows import rows_a_pane
from adapt.core.partitioning.measures.cells import Hasher, Hashers, cells_of, size_of
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.stream import Weight
from adapt.core.units.row_or_time_span import Length
from adapt.core.units.seals import as_json, hash_of
from adapt.traces.block_cache import keep_bytes, read_kept_bytes, rows_held
from adapt.traces.counting.exact import WEIGHT_COLUMNS, chosen_weight, too_heavy, weights_of, zeros
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.runner import BlockSums, added, may_overflow, runner_for
from adapt.traces.spark.session import Spark
from adapt.traces.store.manifest import program_versions
from adapt.traces.store.trace import Trace, read_pieces

LISTED = -1
"""The group of listed keys, whose cells are their rows."""

_CELLS_A_PARTITION = 1 << 23


def routed_sums(
    trace: Trace,
    groups: Sequence[Hashers],
    amounts: Sequence[Weight],
    listed: pa.Array | None = None,
    grid: Panes | None = None,
    *,
    spark_options: Spark = None,
    progress: Progress = silent,
) -> pa.Table:
    """Sum every row in one pass over the trace.

    Memory grows with the listed keys and the cells, not with the trace. Distinct keys of a batch are routed once.
    Whole numbers are summed exactly, costs in the order of rows and blocks.

    Args:
        groups: Hashers whose values together make a cell; the first group has number 0.
        amounts: What to add up.
        listed: Distinct keys that are summed one by one, as group `LISTED`, instead of by cell.
        grid: Windows by rows. Default: one.

    Returns:
        Columns group, pane, cell, and one per amount, of its name; only cells with load.
    """
    blocks = trace.blocks()
    keys = pa.array([], pa.string()) if listed is None else listed
    sizes = [len(keys), *map(size_of, groups)]
    hashers: list[Hasher] = []
    for hasher in (hasher for group in groups for hasher in group):
        if hasher not in hashers:
            hashers.append(hasher)
    numbered = [[hashers.index(hasher) for hasher in group] for group in groups]
    index, whole = KeyIndex(keys), len(keys) == 0
    columns = ["key", *(WEIGHT_COLUMNS[each] for each in amounts if each is not Weight.COUNT)]

    def work(place: int) -> Iterator[pa.RecordBatch]:
        block = blocks[place]
        sums: dict[tuple[int, int], list[Counts]] = {}

        def add(group: int, pane: int, cells: NDArray[np.int64] | NDArray[np.int32], held: list[Counts]) -> None:
            into = sums.setdefault((group, pane), [zeros(sizes[group + 1], each) for each in amounts])
            for sum_of, each in zip(into, held, strict=True):
                np.add.at(sum_of, cells, each)

        row = block.first_row
        for batch in read_pieces(block.pieces, columns, ["key"]):
            values, places = encoded(batch.column("key"))
            known, others = np.zeros(0, np.int64), np.arange(len(values))
            if not whole:
                rows = index.rows_of(HashedKeys.from_column(values, HashName.MURMUR3))
                known, others = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
            unlisted = values.take(pa.array(others)) if len(known) else values
            placed = [hasher.channels_of(unlisted) for hasher in hashers]
            cells = [
                cells_of([placed[at] for at in numbered[number]], group, len(others))
                for number, group in enumerate(groups)
            ]
            for pane, first, end in _by_pane(row, batch.num_rows, grid):
                held = _by_key(batch.slice(first, end - first), places[first:end], len(values), amounts)
                if len(known):
                    add(LISTED, pane, rows[known], [each[known] for each in held])
                of_others = [each[others] for each in held] if len(known) else held
                for number, at in enumerate(cells):
                    add(number, pane, at, of_others)
            row += batch.num_rows
        yield from (_as_rows(*group, found, amounts, place) for group, found in sums.items())

    most = sum(sizes) * (1 if grid is None else int(grid.numbers(np.array([trace.rows - 1]))[0]) + 1)
    kinds = ", ".join(f"{each} {'double' if each is Weight.COST else 'bigint'}" for each in amounts)
    asked = BlockSums(
        "routing all rows",
        len(blocks),
        work,
        f"group bigint, pane bigint, cell bigint, {kinds}, block bigint",
        ["group", "pane", "cell"],
        {each.value: each for each in amounts},
        "block",
        most=most,
        partitions=-(-len(blocks) * sum(sizes) // _CELLS_A_PARTITION),
        together=partial(_together, amounts=amounts),
    )
    rows = rows_held(blocks, lambda _: sum(sizes), None if Weight.COST in amounts else most)
    found = runner_for(rows, spark_options, progress).sums(asked)
    for each in amounts:
        if found[each.value].null_count:
            raise too_heavy(trace.path, each)
    return found


def _by_pane(first_row: int, rows: int, grid: Panes | None) -> Iterator[tuple[int, int, int]]:
    """The window of each part of a batch, and its first and last row, exclusive."""
    if grid is None:
        yield 0, 0, rows
        return
    panes = grid.numbers(np.arange(first_row, first_row + rows))
    starts = np.flatnonzero(np.diff(panes, prepend=-1)).tolist()
    yield from ((int(panes[start]), start, end) for start, end in pairwise([*starts, rows]))


def encoded(column: pa.Array) -> tuple[pa.Array, NDArray[np.int32]]:
    """Distinct keys of a column, and the place of each row's key."""
    if not isinstance(column, pa.DictionaryArray):
        column = pc.dictionary_encode(column, null_encoding="encode")
    values, codes = column.dictionary, column.indices
    if codes.null_count:
        values, codes = pa.concat_arrays([values, pa.nulls(1, values.type)]), codes.fill_null(len(values))
    places = codes.to_numpy(zero_copy_only=False)
    met = np.bincount(places, minlength=len(values)) > 0
    if met.all():
        return values, places
    numbers = np.cumsum(met, dtype=np.int32) - 1
    return values.filter(pa.array(met)), numbers[places]


def _by_key(part: pa.RecordBatch, places: NDArray[np.int32], keys: int, amounts: Sequence[Weight]) -> list[Counts]:
    """The sums of rows by key; shapes (keys,)."""
    sums = [zeros(keys, each) for each in amounts]
    for each, sum_of in zip(amounts, sums, strict=True):
        weights = weights_of(part, each)
        if weights is None:
            sum_of += np.bincount(places, minlength=keys)
        else:
            np.add.at(sum_of, places, weights)
    return sums


def _together(rows: pa.Table, amounts: Sequence[Weight]) -> pa.Table:
    """Rows of some blocks as one row for each cell, unless their order matters or a sum may overflow."""
    if Weight.COST in amounts or any(may_overflow(rows[each.value]) for each in amounts):
        return rows
    sums = added(rows, ["group", "pane", "cell"], {each.value: each for each in amounts})
    return sums.append_column("block", pa.array(np.zeros(len(sums), np.int64)))


def _as_rows(group: int, pane: int, found: list[Counts], amounts: Sequence[Weight], place: int) -> pa.RecordBatch:
    cells = np.flatnonzero(np.any([each != 0 for each in found], axis=0))
    same = [np.full(len(cells), each) for each in (group, pane)]
    parts = [*same, cells, *(each[cells] for each in found), np.full(len(cells), place)]
    return pa.RecordBatch.from_arrays(
        [pa.array(part) for part in parts], names=["group", "pane", "cell", *amounts, "block"]
    )


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
    """
    rows = rows_a_pane(trace.rows)
    if rows is None:
        return None
    chosen = chosen_weight(trace, weight)
    version = program_versions()["adapt-streams"]
    decisive = [trace.manifest.content_hash, chosen.value, rows, today.content_hash(), version]
    kept = folder / f"{hash_of(decisive)[:32]}.loads"
    shape = (today.channels, -(-trace.rows // rows))
    data = read_kept_bytes(kept)
    if data is not None:
        return np.array(json.loads(data), np.float64).reshape(shape)
    sums = routed_sums(
        trace,
        [(today.partitioner(),)],
        [chosen],
        grid=Panes(Length(rows, in_rows=True)),
        spark_options=spark_options,
        progress=progress,
    )
    loads = np.zeros(shape)
    loads[sums["cell"].to_numpy(), sums["pane"].to_numpy()] = sums[chosen.value].to_numpy()
    keep_bytes(kept, as_json(loads.tolist()))
    return loads
