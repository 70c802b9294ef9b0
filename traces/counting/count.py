"""Counting the keys of a trace: method, error, and purpose."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from adapt.core.counting.exact import KeyCounts, check_counts, frequencies_of, refuse_overflow
from adapt.core.counting.frequencies import Frequencies, in_byte_order, key_order
from adapt.core.counting.lossy import check_epsilon
from adapt.core.counting.names import CountMethod
from adapt.core.counting.sliding import DEFAULT_COUNTERS, SlidingWindow
from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.columns import ARROW_TYPES, key_type_of, one_array
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.measures.tally import ExactSums
from adapt.core.partitioning.problem.tracking import SERVED, Known, epsilon_for
from adapt.core.stream import KeyType, Weight
from adapt.core.units.durations import duration_text
from adapt.core.units.row_or_time_span import Length
from adapt.core.units.seals import hash_of
from adapt.traces.block_cache import cache_of, make_cache, note_use, rows_held
from adapt.traces.counting.exact import (
    chosen_weight,
    count_exactly,
    fit_table,
    key_sums,
    rows_of_sums,
    spark_key,
    too_heavy,
)
from adapt.traces.counting.lossy import count_lossy, rows_together
from adapt.traces.parts import part_name, plain_writer, remove_unfinished, write_part
from adapt.traces.spark.lazy import DataFrame, F
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.runner import runner_for
from adapt.traces.spark.session import Batches, Spark
from adapt.traces.store import frequencies as store
from adapt.traces.store.atomic import whole_folder
from adapt.traces.store.frequencies import read_frequencies
from adapt.traces.store.manifest import Manifest, Provenance, program_versions, read_manifest, write_manifest
from adapt.traces.store.tables import batches_hash
from adapt.traces.store.trace import Trace, blocks_of, part_entry, read_pieces

KEYS_A_PART = 1 << 22

_ORDER = "order"


def too_many_keys(trace: Trace) -> bool:
    """Whether a trace has more than `MOST_KEYS` keys."""
    return int(trace.profile["distinct_keys"]) > store.MOST_KEYS


def all_keys(
    trace: Trace, weight: Weight | None = None, *, spark_options: Spark = None, progress: Progress = silent
) -> Path:
    """Exact counts of all keys, as an artefact next to the trace.

    Tasks sort the counts and write them; this process reads each part once, for its hash.
    """
    chosen = chosen_weight(trace, weight)
    decisive = [trace.manifest.content_hash, "all keys", chosen.value, program_versions()["adapt-streams"]]
    kept = cache_of(trace.path) / f"{hash_of(decisive)[:32]}.freq"
    with suppress(BadInput):  # not kept, or damaged
        read_manifest(kept, "frequencies")
        note_use(kept)
        return kept
    keys = int(trace.profile["distinct_keys"])
    order = partial(_in_order, weight=chosen, key_type=trace.key_type, parts=-(-keys // KEYS_A_PART))
    asked = replace(key_sums(trace, [chosen], "counting keys"), narrow=order)
    runner = runner_for(rows_of_sums(trace), spark_options, progress)
    parameters = {"method": CountMethod.EXACT.value, "weight": chosen.value}
    made = Provenance("adapt.traces.counting.count", parameters, [trace.as_input], runner=runner.name.value)
    make_cache(kept.parent)
    with whole_folder(kept, force=True) as folder:
        runner.from_sums(asked, partial(_write, folder=folder, trace=trace.path, weight=chosen), "rows bigint")
        remove_unfinished(folder)
        _settle(folder, trace, chosen, made)
    return kept


def _in_order(sums: DataFrame, *, weight: Weight, key_type: KeyType, parts: int) -> DataFrame:
    """Sums in the order of counted keys, inside Spark."""
    if key_type.storage is KeyType.INT64:
        number = "double" if weight is Weight.COST else "bigint"
        schema = f"key {spark_key(key_type)}, {weight.value} {number}, {_ORDER} bigint"
        sums = sums.mapInArrow(_with_order, schema)
    by = [F.desc(weight.value), F.asc_nulls_first(_ORDER if key_type.storage is KeyType.INT64 else "key")]
    return sums.repartitionByRange(parts, *by).sortWithinPartitions(*by).select("key", weight.value)


def _with_order(batches: Batches) -> Batches:
    """Rows with a number that rises as the bytes of their integer keys."""
    for batch in batches:
        order = in_byte_order(batch.column("key"))
        signed = order.fill_null(0).to_numpy(zero_copy_only=False).view(np.int64) ^ np.int64(-(2**63))
        yield batch.append_column(_ORDER, pa.array(signed, mask=order.is_null().to_numpy(zero_copy_only=False)))


def _write(sums: Batches, *, folder: Path, trace: Path, weight: Weight) -> Batches:
    """Write sorted sums as a part of the counted keys."""
    from pyspark import TaskContext

    def parts() -> Batches:
        for batch in sums if TaskContext.get() is not None else _sorted(sums):
            if batch.column(weight.value).null_count:
                raise too_heavy(trace, weight)
            counts = batch.column(weight.value)
            check_counts(KeyCounts(batch.column("key"), counts.to_numpy(zero_copy_only=False), 0))
            keys = batch.column("key").cast(ARROW_TYPES[key_type_of(batch.column("key").type)])
            yield pa.RecordBatch.from_arrays([keys, counts, counts], names=list(store.COLUMNS))

    yield pa.RecordBatch.from_pydict({"rows": [write_part(parts(), folder, plain_writer)]})


def _sorted(sums: Batches) -> Batches:
    rows = pa.Table.from_batches(list(sums)).combine_chunks()
    order = key_order(one_array(rows.column(0)), rows.column(1).to_numpy())
    yield from rows.take(pa.array(order)).to_batches()


def _settle(folder: Path, trace: Trace, weight: Weight, made: Provenance) -> None:
    """Turn a folder of parts into an artefact by its manifest."""
    entries = [part_entry(folder, part) for part in sorted(folder.glob(part_name(0).replace("00000", "*")))]
    whole, costs = 0, ExactSums.from_groups(np.zeros(0, np.int32), np.zeros(0), 1)

    def read() -> Batches:
        nonlocal whole, costs
        for block in blocks_of(folder, entries):
            for batch in read_pieces(block.pieces, store.COLUMNS):
                counts = batch.column("count_low").to_numpy()
                if weight is Weight.COST:
                    costs = costs.plus(ExactSums.from_groups(np.zeros(len(counts), np.int32), counts, 1))
                else:
                    refuse_overflow(counts, float(whole))
                    whole += int(counts.sum())
                yield batch

    kind = ARROW_TYPES[trace.key_type]
    number = pa.float64() if weight is Weight.COST else pa.int64()
    content = batches_hash(pa.schema(list(zip(store.COLUMNS, (kind, number, number), strict=True))), read())
    keys = sum(entry["rows"] for entry in entries)
    total = float(costs.totals()[0]) if weight is Weight.COST else float(whole)
    nothing = frequencies_of(KeyCounts(pa.array([], kind), np.zeros(0, np.int64), trace.rows), weight, trace.key_type)
    facts = store.facts_of(replace(nothing, total=total, distinct=keys)) | {"keys": keys}
    manifest = Manifest("frequencies", hash_of([content, facts]), made, entries, facts)
    write_manifest(folder, manifest)


DEFAULT_CHANNELS = 10


@dataclass(frozen=True, slots=True)
class Counting:
    """How to count the keys of a trace."""

    method: CountMethod = CountMethod.LOSSY  # lossy, exact, or lossy over a sliding window
    # the error of lossy counting as a share of the total; None derives it from the three below
    epsilon: float | None = None
    channels: int = DEFAULT_CHANNELS  # the largest number of channels that the counts must support
    resources: Resources = field(default_factory=Resources)  # the loads that keys are pinned by
    # how many keys to pin besides those above the threshold; None is `SERVED`, or none with a window, which may be
    # too short for so small an error
    track: int | None = None
    window: SlidingWindow | None = None  # the window of a sliding counter
    weight: Weight | None = None  # what a row weighs; None is its cost if the trace has costs, else 1

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            if self.method is CountMethod.EXACT:
                raise UsageError("--epsilon needs lossy counting; exact counts have no error")
            check_epsilon(self.epsilon)
        if (self.window is not None) != (self.method is CountMethod.SLIDING):
            raise UsageError(
                "--method sliding and --window need each other; give both, e.g. --method sliding --window 1h"
            )

    def epsilon_on(self, trace: Trace) -> float:
        """The error to count a trace with; 0 if exact."""
        if self.method is CountMethod.EXACT:
            return 0.0
        served = SERVED if self.window is None else None
        track = served if self.track is None else self.track
        known = _known(trace, self.weight)
        needed = self.epsilon or epsilon_for(self.resources, self.channels, known, track)
        if self.epsilon or self.window is not None or self.track is not None:
            return needed
        return min(needed, epsilon_for(Resources(), DEFAULT_CHANNELS, known, SERVED))  # counted at ingest

    def listed_on(self, trace: Trace) -> int | None:
        """Most listed keys of exact counting; None where lossy counting is cheaper."""
        stated = self.epsilon or self.window or self.method is not CountMethod.LOSSY
        exact = not stated and fit_table(trace, chosen_weight(trace, self.weight))
        return int(2 / self.epsilon_on(trace)) if exact else None

    def rows_on(self, trace: Trace) -> int:
        """Rows that decide where a trace is counted."""
        epsilon = self.epsilon_on(trace)
        if (not epsilon and fit_table(trace, chosen_weight(trace, self.weight))) or self.listed_on(trace):
            return 0
        together = rows_together(trace, chosen_weight(trace, self.weight))
        return rows_held(trace.blocks(), lambda _: int(2 / epsilon), together) if epsilon else rows_of_sums(trace)

    def over_window(self, trace: Trace, text: str) -> "Counting":
        """The same over a sliding window as typed: a length, or `auto`.

        Args:
            text: `auto` derives the window from the distinct keys of the trace; it is at most the whole trace.
        """
        if text == "auto":
            known = _known(trace, self.weight)
            epsilon = self.epsilon or epsilon_for(self.resources, self.channels, known, self.track)
            rows = SlidingWindow.derived(known.domain, epsilon).length.size
            length = Length(min(rows, max(trace.rows, DEFAULT_COUNTERS)), in_rows=True)
        else:
            length = Length.parse(text, "--window")
            check_window(length, trace)
        return replace(self, method=CountMethod.SLIDING, window=SlidingWindow(length))

    def parameters(self, frequencies: Frequencies) -> dict[str, Any]:
        """The parameters for a manifest."""
        method = CountMethod.EXACT if frequencies.exact else self.method
        made: dict[str, Any] = {"method": method.value, "weight": frequencies.weight.value}
        if method is not CountMethod.EXACT:
            made["epsilon"] = frequencies.epsilon
        if self.window is not None:
            made |= {"window": str(self.window.length), "counters": self.window.counters}
        return made


def check_window(length: Length, trace: Trace) -> None:
    """Check that a window is at most the trace."""
    span_us = trace.last_us - trace.first_us
    if length.size > (trace.rows if length.in_rows else span_us):
        has = f"{trace.rows:,} rows" if length.in_rows else duration_text(span_us)
        raise UsageError(f"--window {length} is longer than the trace, which has {has}; give a shorter window")


def _known(trace: Trace, weight: Weight | None) -> Known:
    """What the profile of a trace holds on its keys: their number, and the least rows of the hottest ones."""
    distinct = int(trace.profile["distinct_keys"])
    if chosen_weight(trace, weight) is not Weight.COUNT:
        return Known(distinct)
    return Known(distinct, trace.rows, np.array(trace.profile["rank_counts"], np.int64))


def count_trace(
    trace: Trace, counting: Counting | None = None, *, spark_options: Spark = None, progress: Progress = silent
) -> Frequencies:
    """Count the keys of a trace, exactly if a table holds them.

    By default; otherwise, lossily.

    Of exact counts of more keys than this process holds, the heaviest are returned; all are cached next to the trace.
    """
    how = counting or Counting()
    if how.method is CountMethod.EXACT and too_many_keys(trace):
        counted, _ = read_frequencies(all_keys(trace, how.weight, spark_options=spark_options, progress=progress))
    elif how.method is CountMethod.EXACT:
        counted = count_exactly(trace, weight=how.weight, spark_options=spark_options, progress=progress)
    elif (most := how.listed_on(trace)) is not None:
        counted = count_exactly(trace, weight=how.weight, most=most, spark_options=spark_options, progress=progress)
    else:
        counted = count_lossy(
            trace,
            how.epsilon_on(trace),
            weight=how.weight,
            window=how.window,
            spark_options=spark_options,
            progress=progress,
        )
    return counted
