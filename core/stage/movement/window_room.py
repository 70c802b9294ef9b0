"""Room for the rows in a window, checked before a run."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.errors import BadInput
from adapt.core.stage.conditions.arrivals import Chunk
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.movement.spilling import Memory
from adapt.core.values import duration


def check_room(chunks: Iterable[Chunk], settings: StageSettings, memory: Memory) -> None:
    """Check that some worker can hold each partition whose state grows.

    The rows of a partition that arrive within a window are all in its state once the last of them is processed,
    whatever the order, since none expires before. So this is the least that any run needs, if it loses no rows.
    """
    growth = settings.growth
    if growth is None:
        return
    most = max(memory.worker_bytes, *(change.bytes for change in memory.changes), 0.0)
    rows: NDArray[np.int64] = np.zeros(len(settings.partition_of), np.int64)
    held: NDArray[np.int64] = np.zeros(settings.partitions, np.int64)
    window = -1 if growth.window is None else growth.window
    kept: NDArray[np.int64] = np.empty((3, 0), np.int64)
    model = np.array([growth.group_bytes, growth.row_bytes, growth.rows_per_group, window], np.int64)
    read = 0
    for chunk in chunks:
        more = _columns(chunk, read, sized=growth.sized)
        if settings.join is not None and chunk.sides is not None:
            more = more[:, chunk.sides >= 0]
        first = kept.shape[1]
        kept = np.ascontiguousarray(np.concatenate([kept, more], axis=1))
        passed, worst = _fill(kept, first, settings.partition_of, model, rows, held, most)
        if worst >= 0:
            window_of = f" in a window of {duration(window / 1e6)}" if window >= 0 else ""
            raise BadInput(
                f"by row {read + worst + 1:,} partition {settings.partition_of[kept[1, first + worst]]} needs more than"
                f" {most:,.0f} bytes for its rows{window_of}, the most that any worker has; give workers more memory,"
                " keep less state, or use more partitions"
            )
        kept = kept[:, passed:] if window >= 0 else kept[:, :0]
        read += len(chunk.groups)


def _columns(chunk: Chunk, before: int, *, sized: bool) -> NDArray[np.int64]:
    """Times, groups and sizes, shape (3, rows)."""
    zeros = np.zeros(len(chunk.groups), np.int64)
    sizes = zeros if chunk.sizes is None or not sized else np.asarray(chunk.sizes, np.int64)
    if sizes.min(initial=0) < 0:
        raise BadInput(
            f"after row {before:,} a row has {sizes.min():,} bytes, but state cannot shrink as rows are added; fix"
            " column 'bytes'"
        )
    return np.stack([zeros if chunk.times is None else chunk.times, np.asarray(chunk.groups, np.int64), sizes])


@compiled
def _fill(
    kept: NDArray[np.int64],
    first: int,
    partition_of: NDArray[np.int32],
    model: NDArray[np.int64],
    rows: NDArray[np.int64],
    held: NDArray[np.int64],
    most: float,
) -> tuple[int, int]:
    """Add rows from `first` on; returns the first row still in the window, and the first that needs too much or -1."""
    group_bytes, row_bytes, rows_per_group, window = model
    passed = 0
    for row in range(first, kept.shape[1]):
        while window >= 0 and kept[0, passed] < kept[0, row] - window:
            group = kept[1, passed]
            rows[group] -= 1
            held[partition_of[group]] -= row_bytes + kept[2, passed] + (group_bytes if rows[group] == 0 else 0)
            passed += 1
        group = kept[1, row]
        if rows_per_group > 0 and rows[group] == rows_per_group:
            continue
        rows[group] += 1
        held[partition_of[group]] += row_bytes + kept[2, row] + (group_bytes if rows[group] == 1 else 0)
        if held[partition_of[group]] > most:
            return passed, row - first
    return passed, -1
