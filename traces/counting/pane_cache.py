"""Counted keys per pane of a trace, cached next to it."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.timeline import Panes
from adapt.core.out_of_sample.windows import MOST_PANES, CountedPane, rows_a_pane
from adapt.core.stream import KeyType, Weight
from adapt.core.units.row_or_time_span import Length
from adapt.core.units.seals import hash_of
from adapt.traces.block_cache import keep, read_kept
from adapt.traces.counting.lossy import count_panes
from adapt.traces.counting.weights import chosen_weight
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.session import Spark
from adapt.traces.store.manifest import program_versions
from adapt.traces.store.trace import Trace

EPSILON = 1e-4
"""The error of a pane's counts, as a share of its total; short panes are exact."""

_FACTS = b"adapt.panes"


def counted_panes(
    trace: Trace,
    folder: Path,
    weight: Weight | None = None,
    *,
    spark_options: Spark = None,
    progress: Progress = silent,
) -> tuple[CountedPane, ...]:
    """The panes of a trace, cached in `folder`; empty if short."""
    rows = rows_a_pane(trace.rows)
    if rows is None:
        return ()
    chosen = chosen_weight(trace, weight)
    kept = kept_panes(folder, trace.manifest.content_hash, chosen, trace.key_type)
    if kept:
        return kept
    grid = Panes(Length(rows, in_rows=True))
    timeline = count_panes(trace, grid, EPSILON, weight=chosen, spark_options=spark_options, progress=progress)
    panes = tuple(
        CountedPane(pane.first_us, pane.summary.frequencies(EPSILON, chosen, trace.key_type)) for pane in timeline.panes
    )
    keep(_place(folder, trace.manifest.content_hash, chosen), _packed(panes))
    return panes


def kept_panes(folder: Path, content_hash: str, weight: Weight, key_type: KeyType) -> tuple[CountedPane, ...]:
    """The cached panes of a trace; empty if missing or damaged."""
    with suppress(KeyError, ValueError, TypeError):
        table = read_kept(_place(folder, content_hash, weight))
        return () if table is None else _unpacked(table, key_type)
    return ()


def _place(folder: Path, content_hash: str, weight: Weight) -> Path:
    version = program_versions()["adapt-streams"]
    return folder / f"{hash_of([content_hash, weight.value, EPSILON, MOST_PANES, version])[:32]}.panes"


def _packed(panes: tuple[CountedPane, ...]) -> pa.Table:
    """All panes as one table, facts per pane in its metadata."""
    held = [pane.frequencies for pane in panes]
    facts = [
        [pane.start_us, counted.total, counted.rows, counted.weight.value, counted.complete_above, counted.distinct]
        for pane, counted in zip(panes, held, strict=True)
    ]
    table = pa.table(
        {
            "pane": np.repeat(np.arange(len(held), dtype=np.int32), [len(counted.keys) for counted in held]),
            "key": pa.concat_arrays([counted.keys for counted in held]),
            "count_low": np.concatenate([counted.count_low for counted in held]),
            "count_high": np.concatenate([counted.count_high for counted in held]),
        }
    )
    return table.replace_schema_metadata({_FACTS: json.dumps(facts).encode()})


def _unpacked(table: pa.Table, key_type: KeyType) -> tuple[CountedPane, ...]:
    facts: list[list[Any]] = json.loads(table.schema.metadata[_FACTS])
    panes = []
    for number, (start_us, total, rows, weight, complete_above, distinct) in enumerate(facts):
        own = table.filter(pc.equal(table["pane"], number))
        frequencies = Frequencies(
            keys=own["key"].combine_chunks(),  # of one type in all panes
            count_low=own["count_low"].to_numpy(),
            count_high=own["count_high"].to_numpy(),
            total=total,
            rows=rows,
            weight=Weight(weight),
            epsilon=EPSILON,
            complete_above=complete_above,
            distinct=distinct,
            typed=key_type,
        )
        panes.append(CountedPane(start_us, frequencies))
    return tuple(panes)
