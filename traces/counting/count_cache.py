"""Counted keys of a trace (cached), an artefact or a CSV."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.names import CountMethod
from adapt.core.counting.timeline import Panes
from adapt.core.errors import BadInput, EnvironmentFailure, UsageError
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.out_of_sample.windows import MOST_PANES, CountedPane, CountedPanes, rows_a_pane
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.stream import KeyType, Weight
from adapt.core.units.row_or_time_span import Length
from adapt.core.units.seals import hash_of
from adapt.traces.block_cache import cache_of, keep, make_cache, note_use, read_kept
from adapt.traces.counting.count import Counting, count_trace
from adapt.traces.counting.counts_table import CountsTable, read_counts
from adapt.traces.counting.exact import check_measurable, chosen_weight, with_columns
from adapt.traces.counting.lossy import count_panes, is_whole_in, key_type_in
from adapt.traces.counting.routed_sums import channel_loads
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.locations.location import is_stored
from adapt.traces.locations.run_folders import is_artefact
from adapt.traces.read_errors import damaged, readable
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.runner import added, runner_for
from adapt.traces.spark.session import Spark
from adapt.traces.store.frequencies import read_frequencies, write_frequencies
from adapt.traces.store.manifest import Provenance, program_versions, read_manifest
from adapt.traces.store.trace import Trace, open_trace

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

    from adapt.traces.spark.lazy import T


@dataclass(frozen=True, slots=True)
class CountsFiles:
    """Parquet counts: a file or a folder."""

    path: Path
    files: "Dataset"
    rows: int

    @property
    def schema(self) -> "T.StructType":
        """The schema as Spark reads it."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self.files.schema)

    @property
    def key_type(self) -> KeyType:
        """The type of the keys."""
        return key_type_in(self.schema, "key")

    @property
    def only_spark(self) -> bool:
        """Whether only Spark reads these files.

        They hold decimals or unsigned integers, or folders are named after a column.
        """
        kinds = self.files.schema.types
        return any("=" in Path(file).parent.name for file in self.files.files) or any(
            pa.types.is_decimal(kind) or pa.types.is_unsigned_integer(kind) for kind in kinds
        )

    def table(self, key: str, amounts: Mapping[str, str], wrong: str) -> pa.Table:
        """The rows under new names, amounts as int64 or float64.

        Args:
            key: The new name of the keys.
            amounts: Columns to read, by new name.
            wrong: The name of a column that marks rows with a null or negative amount.
        """
        schema = self.schema
        kinds = {name: pa.int64() if is_whole_in(schema, name) else pa.float64() for name in amounts.values()}
        try:
            read = self.files.to_table(columns=["key", *dict.fromkeys(amounts.values())])
        except (OSError, pa.ArrowException) as error:
            raise damaged(self.path, error, "get the files again") from error
        columns = {name: read[column].cast(kinds[column]) for name, column in amounts.items()}
        marks = [pc.fill_null(pc.less(column, 0), True) for column in columns.values()]
        return pa.table({key: read["key"].cast(ARROW_TYPES[self.key_type]), **columns, wrong: reduce(pc.or_, marks)})


def counts_files(path: Path) -> CountsFiles:
    """Open Parquet counts."""
    from pyarrow.dataset import FileSystemDataset, ParquetFileFormat, dataset

    try:
        if is_stored(path):
            form = ParquetFileFormat()
            objects = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.name[0] not in "._")
            pieces = [form.make_fragment(arrow_source(each)) for each in objects]
            files: Dataset = FileSystemDataset(pieces, pieces[0].physical_schema, form)
        else:
            files = dataset(path, format="parquet")
        return CountsFiles(path, files, files.count_rows())
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, error, "get the files again") from error


def summed_ascending(rows: pa.Table, key: str, amounts: Sequence[str]) -> pa.Table:
    """Amounts summed by key, floats in ascending order; null where integers overflow."""
    sums: dict[str, pa.ChunkedArray] = {}
    for amount in amounts:
        whole = pa.types.is_integer(rows[amount].type)
        ordered = rows.select([key, amount]).sort_by([(key, "ascending"), (amount, "ascending")])
        summed = added(ordered, [key], {amount: Weight.COUNT if whole else Weight.COST})
        sums |= {key: summed[key], amount: summed[amount]}
    return pa.table(sums)


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


@dataclass(frozen=True, slots=True)
class Counted:
    """Counted keys and their source."""

    frequencies: Frequencies  # the counted keys
    fingerprint: str  # content hash of the trace, or of the artefact or file of counts
    source: dict[str, Any]  # the input as a manifest records it
    # where a trace was counted, now or when its counts were cached; None if it is not a trace
    runner: str | None = None
    panes: CountedPanes = CountedPanes()  # windows of counts without a trace  # noqa: RUF009 - frozen
    trace: Trace | None = None  # the trace that was counted
    key: str = "key"  # name of the column of keys


def counted(
    path: Path,
    counting: Counting | None = None,
    *,
    key_type: KeyType | None = None,
    measure: Sequence[str] = (),
    spark_options: Spark = None,
    progress: Progress = silent,
) -> Counted:
    """Counted keys of a trace, an artefact, or a table of counts.

    A trace is counted once per set of options; the counts are cached next to it by content hash.

    Args:
        path: The trace, artefact or table, as `read_counts` reads it.
        counting: How to count a trace; lossy by default.
        key_type: The type of the keys in a CSV (default: string).
        measure: Columns to sum per key: `count`, `cost` and `bytes` of a trace, headings of a CSV, the measured columns
            of an artefact.
    """
    how = counting or Counting()
    with readable(path):
        if not path.exists():
            raise BadInput(f"{path} does not exist; give a trace, counted keys, or a table of key,count")
        if not is_artefact(path):
            _refuse_options(how, path, spark_options)
            return of_table(read_counts(path, key_type, measure))
    manifest = read_manifest(path)
    source = manifest.as_input(path.name)
    if key_type is not None:
        raise UsageError(f"--key-type needs a CSV of counts; {path} records the type of its keys")
    if manifest.kind == "trace":
        trace = open_trace(path)
        found, ran = _kept_or_counted(trace, how, tuple(measure), spark_options, progress)
        return Counted(found, manifest.content_hash, source, ran, trace=trace)
    if manifest.kind == "frequencies":
        frequencies, _ = read_frequencies(path)
        if how.weight not in (None, frequencies.weight):
            raise UsageError(
                f"--weight {how.weight}: {path} holds counts by {frequencies.weight}; count the trace again"
            )
        _refuse_unmeasured(frequencies, measure, path)
        _refuse_options(replace(how, weight=None), path, spark_options)
        trace_hash = next((str(item["content_hash"]) for item in manifest.made.inputs if "content_hash" in item), None)
        fingerprint = trace_hash or manifest.content_hash
        panes = kept_panes(cache_of(path), fingerprint, frequencies.weight, frequencies.key_type)
        return Counted(frequencies, fingerprint, source, panes=CountedPanes(panes))
    raise BadInput(f"{path} is a {manifest.kind}; give a trace, counted keys, or a table of key,count")


def of_table(table: CountsTable) -> Counted:
    """Counts of a table, with their windows."""
    panes = CountedPanes(table.panes)
    return Counted(table.frequencies, table.content_hash, table.inputs[0], panes=panes, key=table.key)


def panes_of(counted: Counted, *, spark_options: Spark = None, progress: Progress = silent) -> CountedPanes:
    """The panes of counted keys; for an artefact, those that are cached."""
    if counted.trace is None:
        return counted.panes
    return windows_of(counted.trace, counted.frequencies.weight, spark_options=spark_options, progress=progress)


def windows_of(
    trace: Trace, weight: Weight | None = None, *, spark_options: Spark = None, progress: Progress = silent
) -> CountedPanes:
    """The panes of a trace, and the way to route its rows.

    None without times.
    """
    if "ts" not in trace.columns:
        return CountedPanes()
    folder = cache_of(trace.path)
    panes = counted_panes(trace, folder, weight, spark_options=spark_options, progress=progress)

    def route(today: Plan) -> Floats | None:
        return channel_loads(trace, today, folder, weight, spark_options=spark_options, progress=progress)

    return CountedPanes(panes, route)


def _refuse_options(how: Counting, path: Path, spark: Spark) -> None:
    exact, conf = how.method is CountMethod.EXACT or None, (spark and spark.conf) or None
    given = {"weight": how.weight, "exact": exact, "epsilon": how.epsilon, "window": how.window, "spark-conf": conf}
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"--{option} needs a trace; {path} already holds counts")


def _refuse_unmeasured(frequencies: Frequencies, measure: Sequence[str], path: Path) -> None:
    for source in measure:
        try:
            frequencies.column(source)
        except UsageError as error:
            raise UsageError(f"{path}: {error}; count the trace again with --measure {source}") from error


def _what_decides(trace: Trace, how: Counting, measure: Sequence[str]) -> dict[str, Any]:
    """All options that distinguish two counts of a trace."""
    return {
        **({"measured": sorted(measure)} if measure else {}),
        "version": program_versions()["adapt-streams"],
        "method": how.method.value,
        "epsilon": how.epsilon_on(trace),
        "listed": how.listed_on(trace),
        "weight": chosen_weight(trace, how.weight).value,
        "window": how.window and [how.window.length.size, how.window.length.in_rows, how.window.counters],
    }


def _kept_or_counted(
    trace: Trace, how: Counting, measure: Sequence[str], spark_options: Spark, progress: Progress
) -> tuple[Frequencies, str | None]:
    """Cached counts, or new ones, which are cached if possible; and where they were counted.

    Counts with measured columns build on cached ones without.
    """
    check_measurable(trace, measure)
    name = hash_of([trace.manifest.content_hash, _what_decides(trace, how, measure)])
    kept = cache_of(trace.path) / f"{name[:32]}.freq"
    with suppress(BadInput):  # not cached, or damaged
        frequencies, manifest = read_frequencies(kept)
        if manifest.made.inputs[0]["content_hash"] == trace.manifest.content_hash:
            note_use(kept)
            return frequencies, manifest.made.runner
    ran = runner_for(how.rows_on(trace), spark_options, progress).name.value
    if measure:
        counted, _ = _kept_or_counted(trace, how, (), spark_options, progress)
        frequencies = with_columns(trace, counted, measure, spark_options=spark_options, progress=progress)
    else:
        frequencies = count_trace(trace, how, spark_options=spark_options, progress=progress)
    command = "adapt.traces.counting.count_cache.counted"
    made = Provenance(command, how.parameters(frequencies), [trace.as_input], runner=ran)
    with suppress(EnvironmentFailure, OSError):  # without a cache, the next run counts again
        make_cache(kept.parent)
        write_frequencies(frequencies, kept, made, force=True)
    return frequencies, ran
