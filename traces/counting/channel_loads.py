"""Exact load of each channel in each window of a trace."""

import json
from pathlib import Path

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.counting.timeline import Panes
from adapt.core.out_of_sample.windows import rows_a_pane
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.stream import Weight
from adapt.core.units.row_or_time_span import Length
from adapt.core.units.seals import as_json, hash_of
from adapt.traces.block_cache import keep_bytes, read_kept_bytes
from adapt.traces.counting.routed_sums import routed_sums
from adapt.traces.counting.weights import chosen_weight
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.session import Spark
from adapt.traces.store.manifest import program_versions
from adapt.traces.store.trace import Trace


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
