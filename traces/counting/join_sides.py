"""Count both inputs of a join by key, in one pass each."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapt.core.counting.exact import KeyCounts, KeyTable
from adapt.core.counting.frequencies import Frequencies
from adapt.core.engines.spark.export import spark_key_type, stored_key_sql
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.joins.loads import Side, type_of_columns
from adapt.core.keys.typed_keys import row_of
from adapt.core.reading import Reading, Rejects
from adapt.core.stream import KeyType
from adapt.traces.counting.count_cache import counted
from adapt.traces.counting.counts_table import read_counts
from adapt.traces.counting.key_columns import KEY_TYPES, read_as, stored_keys
from adapt.traces.ingest.mapping import Mapping as Columns
from adapt.traces.ingest.mapping import key_parts
from adapt.traces.ingest.rejects import MaxRejects
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.locations.location import TOPIC_SCHEME, location
from adapt.traces.sources.formats.parquet import ParquetFiles
from adapt.traces.sources.frames import Query, frame_name, frame_reader, frame_schema, is_frame, is_spark_frame
from adapt.traces.sources.names import FormatName
from adapt.traces.sources.reading.files import STDIN, source_files
from adapt.traces.sources.reading.records import no_doubt
from adapt.traces.sources.reading.table_files import StoredTables, quoted
from adapt.traces.sources.sniff import ReadOptions, offered_columns, recognize
from adapt.traces.sources.source import Source
from adapt.traces.spark.lazy import F, Later
from adapt.traces.spark.progress import Progress
from adapt.traces.spark.session import Spark, session_in_zone, spark_failures, spark_session
from adapt.traces.store.manifest import is_trace
from adapt.traces.store.trace import open_trace


@dataclass(frozen=True, slots=True)
class SideOptions:
    """How an input of a join is read."""

    option: str  # that names the key, for errors
    key: str  # columns, separated by commas
    format: FormatName = FormatName.AUTO
    count: str = ""  # column of counts, if the input is a table of counts
    max_rejects: MaxRejects = field(default_factory=MaxRejects)
    spark: Spark = None


def side_of(sources: Sequence[Any], options: SideOptions, progress: Progress) -> Side:
    """Count files, a frame, a trace or a table of counts."""
    first = sources[0]
    if isinstance(first, str) and (first == STDIN or first.startswith(TOPIC_SCHEME)):
        raise UsageError(f"{first} cannot be an input of a join; ingest it, and give the trace")
    if isinstance(first, Query):
        first = first.opened(session_in_zone(spark_session(options.spark), "UTC"))
    if isinstance(first, str) and is_trace(Path(first), "frequencies"):
        return _of_counts(first, ("key",), counted(Path(first)).frequencies)
    if isinstance(first, str) and is_trace(Path(first)):
        return _of_trace(first, options)
    if not options.key:
        raise UsageError(f"{options.option} is required: the columns by which the inputs are joined")
    if options.count and len(sources) == 1 and options.count in offered_columns([first]):
        place = first if is_frame(first) else location(first)
        table = read_counts(place, mapping=Columns(options.key), count=options.count)
        return _of_counts(frame_name(first) if is_frame(first) else first, (table.key,), table.frequencies)
    if is_spark_frame(first):
        return _of_spark(first, options)
    return _of_frame(first, options) if is_frame(first) else _of_files(sources, options, progress)


def _of_counts(name: str, key: tuple[str, ...], frequencies: Frequencies) -> Side:
    counts = frequencies.count_low
    if not frequencies.exact or (counts != np.floor(counts)).any():
        raise BadInput(
            f"{name} holds counts that are not exact; a join needs exact ones, by `partition count --method exact`"
        )
    rows = counts.astype(np.int64)
    return _side(name, key, frequencies.key_type, KeyCounts(frequencies.keys, rows, int(rows.sum())))


def _side(name: str, key: tuple[str, ...], kind: KeyType, counted: KeyCounts, nulls: int = 0, **facts: Any) -> Side:
    missing = counted.keys.is_null().to_numpy(zero_copy_only=False).copy()
    if kind.columns:  # a row with a null in one column of its key has no key
        doubtful = pc.match_substring_regex(counted.keys, "null").fill_null(True).to_numpy(False)
        for at in np.flatnonzero(doubtful).tolist():
            missing[at] = None in (row_of(counted.keys[at].as_py(), kind) or (None,))
    if missing.any():
        nulls += int(counted.counts[missing].sum())
        counted = KeyCounts(counted.keys.filter(pa.array(~missing)), counted.counts[~missing], counted.rows)
    if not counted.rows:
        raise BadInput(f"{name} has no rows")
    return Side(name, key, kind, KeyCounts(counted.keys, counted.counts, counted.rows - nulls), nulls, **facts)


def _of_trace(name: str, options: SideOptions) -> Side:
    trace = open_trace(name)
    parts = [options.key or "key"] if options.key in ("", *trace.columns) else key_parts(options.key, trace.columns)
    _check(parts, [each for each in trace.columns if each != "ts"], options, name)
    rows, own = _Rows(parts), parts == ["key"] and trace.key_type.storage is not KeyType.INT64
    for batch in trace.batches(parts, parts if own else ()):
        rows.add(batch)
    kind = trace.key_type if parts == ["key"] else rows.key_type
    return _side(name, tuple(parts), kind, *rows.counted(), columns=tuple(trace.columns))


def _of_frame(frame: Any, options: SideOptions) -> Side:
    name, is_stream = frame_name(frame), isinstance(frame, pa.RecordBatchReader)
    schema = frame.schema if is_stream else frame_schema(frame)
    parts = key_parts(options.key, schema.names)
    _check(parts, schema.names, options, name)
    rows, size = _Rows(parts), 0
    reader = frame_reader(frame, parts)
    for batch in reader:
        rows.add(batch)
        size += batch.nbytes
    facts: dict[str, Any] = {
        "bytes": size if len(reader.schema) >= len(schema) else None,
        "columns": tuple(schema.names),
    }
    return _side(name, tuple(parts), rows.key_type, *rows.counted(), **facts)


def _of_spark(frame: Any, options: SideOptions) -> Side:
    kinds, name = dict(frame.dtypes), frame_name(frame)
    parts = key_parts(options.key, frame.columns)
    _check(parts, frame.columns, options, name)
    kind = type_of_columns([spark_key_type(kinds[each]) or _refuse(each, kinds[each]) for each in parts])
    key = F.expr(stored_key_sql(kind).format(*("`" + each.replace("`", "``") + "`" for each in parts)))
    for each in parts:
        key = F.when(quoted(each).isNotNull(), key)
    with spark_failures(f"reading {name}"):
        table = frame.select(key.alias("key")).groupBy("key").count().toArrow()
    keys, counts = table["key"].combine_chunks(), table["count"].combine_chunks().to_numpy()
    return _side(name, tuple(parts), kind, KeyCounts(keys, counts, int(counts.sum())), columns=tuple(frame.columns))


def _of_files(sources: Sequence[str], options: SideOptions, progress: Progress) -> Side:
    files = source_files(list(sources))
    found = recognize(files, ReadOptions(options.format))
    name = files[0].label if len(files) == 1 else sources[0]

    def refuse() -> None:
        raise BadInput(f"{name}: only Spark reads its fields; give it as a Spark DataFrame, or make it Parquet")

    with TemporaryDirectory(prefix="adapt-") as staging, no_doubt(refuse):
        spark: Any = Later(refuse)
        source = Source(spark, files, found.form, Path(staging), progress, found.by_file, here=True)
        parts = key_parts(options.key, source.columns)
        _check(parts, source.columns, options, name)
        rows, reasons = _Rows(parts), Counter[str]()
        for batch in source.batches(parts):
            wrong = batch.column("_reason")
            reasons.update(wrong.drop_null().to_pylist())
            batch = batch.filter(wrong.is_null()) if wrong.null_count < len(batch) else batch
            if source.delimited is not None:  # Spark reads an empty field of CSV as null
                keys = [pc.if_else(pc.equal(batch.column(each), ""), None, batch.column(each)) for each in parts]
                batch = pa.record_batch(keys, parts)
            rows.add(batch)
    reading = Reading(rows.rows + reasons.total(), Rejects(reasons.total(), dict(reasons.most_common())))
    options.max_rejects.check(name, reading)
    notes = [reading.sentence] if reasons else []
    stored = sum(file.size for file in files)
    is_parquet = isinstance(found.form, StoredTables) and isinstance(found.form.form, ParquetFiles)
    footers = [pq.read_metadata(arrow_source(file.path)) for file in files] if is_parquet else []
    groups = [each.row_group(at).total_byte_size for each in footers for at in range(each.num_row_groups)]
    size = sum(groups) if is_parquet else stored  # of columns that are not compressed
    facts: dict[str, Any] = {"bytes": size, "stored": stored, "files": len(files), "notes": tuple(notes)}
    return _side(name, tuple(parts), rows.key_type, *rows.counted(), columns=source.columns, **facts)


def _check(parts: Sequence[str], columns: Sequence[str], options: SideOptions, name: str) -> None:
    for each in parts:
        if each not in columns:
            raise UsageError(f"{options.option}: {name} has no column {each!r}{did_you_mean(each, columns)}")


def _refuse(column: str, kind: object) -> NoReturn:
    what = "a key must be text, a whole number, a boolean or a time"
    raise UsageError(f"key column {column!r} is of type {kind}; {what}")


class _Rows:
    """Rows by key, of batches with the columns of the key."""

    def __init__(self, parts: Sequence[str]) -> None:
        self._parts = parts
        self._kinds: list[KeyType] = []
        self._table: KeyTable | None = None
        self._nulls = 0
        self.rows = 0

    @property
    def key_type(self) -> KeyType:
        """The type of the keys; text without rows."""
        return type_of_columns(self._kinds or [KeyType.STRING] * len(self._parts))

    def counted(self) -> tuple[KeyCounts, int]:
        """Rows by key, and those without a key."""
        found = (self._table or KeyTable(KeyType.STRING)).counted()
        return KeyCounts(found.keys, found.counts, self.rows), self._nulls

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch."""
        columns = [batch.column(batch.schema.get_field_index(each)) for each in self._parts]
        if self._table is None:
            named = zip(self._parts, columns, strict=True)
            self._kinds = [
                KEY_TYPES.get(read_as(each.type)) or _refuse(name, read_as(each.type)) for name, each in named
            ]
            self._table = KeyTable(self.key_type)
        self.rows += len(batch)
        if len(columns) == 1:
            self._table.add(_stored(columns[0]))
            return
        names = [str(at) for at in range(len(columns))]
        rows = pa.table([each.cast(read_as(each.type)) for each in columns], names)
        for name in names:
            rows = rows.filter(pc.is_valid(rows[name]))
        self._nulls += len(batch) - len(rows)
        distinct = rows.group_by(names, use_threads=False).aggregate([([], "count_all")])
        texts = [_as_json(stored_keys(distinct[name].combine_chunks())) for name in names]
        keys = pc.binary_join_element_wise("[", pc.binary_join_element_wise(*texts, ","), "]", "")
        self._table.add_counts(KeyCounts(keys, distinct["count_all"].to_numpy(), len(rows)))


def _stored(column: pa.Array) -> pa.Array:
    kind = read_as(column.type)
    if pa.types.is_dictionary(column.type) and kind == pa.string():
        return column.cast(pa.dictionary(pa.int32(), pa.string()))
    if kind == pa.string() and pa.types.is_large_string(column.type):
        return column
    whole = KEY_TYPES[kind].storage is KeyType.INT64
    if kind == pa.string() or whole:
        return column.cast(pa.int64() if whole else kind)
    encoded = column.cast(kind).dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices, stored_keys(encoded.dictionary))


def _as_json(values: pa.Array) -> pa.Array:
    if pa.types.is_integer(values.type):
        return values.cast(pa.string())
    encoded = values.dictionary_encode()
    texts = [json.dumps(each, ensure_ascii=False) for each in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)
