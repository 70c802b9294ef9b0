"""Tables of keys and counts, perhaps by window."""

import json
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import MOST_TOTAL, Frequencies, MeasuredColumn, key_order
from adapt.core.errors import BadInput, UsageError, did_you_mean, listed
from adapt.core.keys.key_text import keys_from_texts
from adapt.core.out_of_sample.windows import CountedPane, rows_a_pane
from adapt.core.phrases import counted
from adapt.core.reading import Reading, Rejects
from adapt.core.stream import KeyType, Weight, several
from adapt.core.units.seals import hash_of
from adapt.traces.counting.key_columns import read_as
from adapt.traces.ingest.mapping import Mapping, key_parts
from adapt.traces.ingest.sieve import ISO_STEPS, SPARK_KINDS, UTC, layout_of, plain_format, plain_times
from adapt.traces.ingest.times import EPOCH_UNITS, ISO, USUAL_NAMES, TimeFormat
from adapt.traces.sources.frames import frame_name, frame_reader, is_frame, is_spark_frame
from adapt.traces.sources.names import FormatName
from adapt.traces.sources.reading.files import SourceFile, head_of, source_files
from adapt.traces.sources.reading.records import InDoubt, no_doubt
from adapt.traces.sources.sniff import ReadOptions, Recognized, offered_columns, recognize
from adapt.traces.sources.source import Source, beginning
from adapt.traces.spark.lazy import Later
from adapt.traces.spark.progress import silent
from adapt.traces.store.manifest import note_readings
from adapt.traces.store.tables import columns_hash

COUNTS = re.compile(
    r"(num(ber)?_?(of_?)?|n_?)?(counts?|cnt|rows?|records?|requests?|messages?|events?|hits|occurrences|freq(uency)?)"
    r"(\(.*\)|_star\(\))?|(row|record|doc|event|message|request|hit|key)s?_?(counts?|cnt)|n|num|requestcharge",
)
"""Usual names of a column of counts, in lower case."""

TIMES = re.compile(rf"{'|'.join(USUAL_NAMES)}|window(_?(start|begin))?|bucket|interval|minute|hour|day|timegenerated")
"""Usual names of a column of times or windows."""

COSTS = re.compile(r"cost(_us|_ms|_s|_ns)?|cpu_?(time)?(_us|_ms|_s|_ns)?|bytes|size|state_bytes")
"""Usual names of further columns."""

TOTALS = ("total", "sum", "grand total", "all", "(all)", "overall")
"""Keys of rows that hold a sum, in lower case."""


HEAD_ROWS = 1000
"""First rows that show whether a table holds counts."""

_MOST_PRINTED = 1 << 20
"""Most bytes of a table that a program printed for people."""

_APART = re.compile(r" +\| +|[ \t]{2,}")
_RULE = re.compile(r"[-+=|\s]+")
_END = re.compile(r"\s*(\(\d+ rows?\))?\s*")
"""Lines within a printed table, and behind it."""

MOST_BYTES = 1 << 33
"""Most bytes of counts that are held."""


_NARROW = {pa.int8(): KeyType.INT8, pa.int16(): KeyType.INT16, pa.int32(): KeyType.INT32, pa.int64(): KeyType.INT64}


ERRORS = ("error", "err", "+/-")
"""Names of the column of how much a count may be too high, in lower case."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of counts."""

    mapping: Mapping  # key, time of the window, and what weighs in place of the counts
    count: str
    error: str = ""  # how much a count may be too high; empty if exact


@dataclass(frozen=True, slots=True)
class CountsTable:
    """Counts as they were read."""

    frequencies: Frequencies
    panes: tuple[CountedPane, ...]  # their windows in order, a few at once if there are many; empty without times
    content_hash: str  # of the files, or of the frame
    inputs: list[dict[str, Any]]  # name, bytes and sha256 of each file
    key: str = "key"  # name of the column of keys


@dataclass(frozen=True, slots=True)
class _Read:
    """A table in memory, and where each row is from."""

    rows: pa.Table
    place: Callable[[int], str]  # names the source of a row
    name: str  # names the source
    inputs: Callable[[], list[dict[str, Any]]]  # name, bytes and sha256 of each file
    has_header: bool = True


def read_counts(
    source: Any,
    key_type: KeyType | None = None,
    measured: Sequence[str] = (),
    mapping: Mapping = Mapping(""),
    count: str = "",
) -> CountsTable:
    """Read the counts of a file, folder or frame.

    Files are text, JSON, Parquet, ORC or Avro.

    Args:
        source: A file, a folder or a frame of pandas, polars, Arrow or DuckDB.
        key_type: Type of keys written as text (default: string).
        measured: Further columns to sum by key; others are ignored.
        mapping: Columns of keys, of times of windows, and of a cost or bytes by which keys weigh; guessed if empty, but
            for the latter.
        count: Column of counts; guessed if empty.

    Raises:
        BadInput: a count is missing, negative or a percentage; or two columns may be the key.
    """
    read = _of_frame(source) if is_frame(source) else _of_files(source, count)
    if not len(read.rows):
        raise BadInput(f"{read.name} has no rows; write one key,count per line")
    chosen, guesses = _chosen(read, mapping, count, measured)
    counts = _numbers(read, chosen.count)
    loads, weight = _loads(read, chosen.mapping, counts)
    keys, key_type = _keys(read, chosen.mapping.key, key_type)
    window, starts = _windows(read, chosen.mapping)
    kept = ~_totals(keys, counts, window)
    notes = [] if kept.all() else [f"ignored the row {keys[int(np.argmin(kept))].as_py()!r}, the sum of the other keys"]
    _refuse_shares(read, chosen.count, counts[kept], window[kept])
    encoded = keys.filter(pa.array(kept)).dictionary_encode(null_encoding="encode")
    codes, distinct = encoded.indices.to_numpy(), encoded.dictionary
    counts, loads, window = counts[kept], loads[kept], window[kept]
    pairs = len(np.unique(window * len(distinct) + codes))
    if pairs < len(codes):
        notes.append(f"{counted(len(codes) - pairs, 'row')} had the key of an earlier one; their counts are summed")
    summed = _summed(codes, loads, len(distinct), read, mapping.cost or mapping.bytes or chosen.count)
    whole = _frequencies(distinct, summed, float(counts.sum()), key_type, weight)
    order = np.argsort(whole.rows_of(distinct))
    if chosen.error and weight is not Weight.COUNT:
        raise UsageError(f"--{weight}: {read.name} has errors of its counts ({chosen.error}), not of {weight}; omit it")
    if chosen.error:
        errors = np.minimum(_sums(codes, _numbers(read, chosen.error)[kept], len(distinct)), summed)[order]
        whole = _with_errors(whole, errors)
        order = np.argsort(whole.rows_of(distinct))
        notes.append(_OF_A_SKETCH)
    columns = []
    for name in measured:
        values = _numbers(read, name)[kept]
        own = np.asarray(_summed(codes, values, len(distinct), read, name), np.float64)
        columns.append(MeasuredColumn(name, own[order], float(own.sum())))
    of_keys = partial(_frequencies, key_type=key_type, weight=weight)
    panes = () if chosen.error else _panes(distinct, codes, (counts, loads), window, starts, of_keys)
    inputs = read.inputs()
    content = inputs[0]["sha256"] if len(inputs) == 1 else hash_of([inputs, asdict(chosen)])
    reading = {"trace": read.name, **Reading(len(read.rows), Rejects(), tuple(guesses)).as_data()}
    note_readings(Path(read.name), {content: reading} if guesses else {})
    for note in ([f"guessed: {', '.join(guesses)}"] if guesses else []) + notes:
        logging.getLogger(__name__).warning("%s: %s", read.name, note)
    return CountsTable(replace(whole, measured=tuple(columns)), panes, content, inputs, chosen.mapping.key)


_OF_A_SKETCH = (
    "each count may be too high by its error, and keys that are not in the table have no count: shares are of the total"
    " of the table, and load within the errors counts as spread evenly"
)


def has_counts(source: Any, mapping: Mapping) -> bool:
    """Whether a file or frame holds counts by key, rather than rows.

    A column is named as one of counts, and no key of the first rows occurs twice in a window.

    Raises:
        BadInput: no key is named, and several columns may be it, or none.
    """
    passing = isinstance(source, pa.RecordBatchReader)  # which can be read once
    if passing or (isinstance(source, str) and not Path(source).is_file()):
        return False
    try:
        if not count_column(source):
            return False
        read = _of_frame(source, HEAD_ROWS) if is_frame(source) else _first_of_files(Path(source))
        chosen, _ = _chosen(read, mapping, "", ())
    except (BadInput, UsageError):
        if not mapping.key:
            raise
        return False
    except InDoubt:  # rows, which Spark reads
        return False
    time = [chosen.mapping.time] if chosen.mapping.time else []
    named = [*key_parts(chosen.mapping.key, read.rows.column_names), *time]
    rows = read.rows.select(named)
    if any(map(pa.types.is_nested, rows.schema.types)):
        return False
    distinct = len(rows.group_by(named).aggregate([]))
    windows = len(rows.group_by(time).aggregate([])) if time else 1
    return distinct == len(rows) and 2 * windows <= max(len(rows), 2)


def count_column(source: Any) -> str:
    """The first column with a name of counts; empty without one."""
    printed = None if is_frame(source) else _printed(source_files([str(source)]), "")
    return next(filter(_is_named_count, offered_columns([source]) if printed is None else printed.column_names), "")


def _of_frame(frame: Any, first: int | None = None) -> _Read:
    if is_spark_frame(frame):
        rows = (frame if first is None else frame.limit(first)).toArrow()
    else:
        rows = frame_reader(frame).read_all().slice(0, first)
    name = frame_name(frame)
    return _Read(
        rows, lambda row: f"{name} row {row + 1}", name, lambda: [{"name": name, "sha256": columns_hash(rows)}]
    )


def _first_of_files(path: Path) -> _Read:
    """The first rows of the first file."""
    files, found = _recognized(path)
    printed = _printed(files, "")
    rows = beginning(files[0], found.form, HEAD_ROWS) if printed is None else printed
    return _Read(rows, str, str(path), list)


def _recognized(path: Path) -> tuple[Sequence[SourceFile], Recognized]:
    files = source_files([str(path)])
    if not any(file.size for file in files):
        raise BadInput(f"{path} has no rows; write one key,count per line")
    head = head_of(files[0], 1 << 12).decode("utf-8-sig", "replace").lstrip().lower().replace(" ", "")
    plain = ReadOptions(FormatName.CSV, delimiter=",", header=True) if head.startswith("key,count") else ReadOptions()
    return files, recognize(files, plain)


def _of_files(path: Path, count: str) -> _Read:
    """All columns of files, each row with its line."""
    files, found = _recognized(path)
    if (printed := _printed(files, count)) is not None:
        seal = [{"name": files[0].label, "bytes": files[0].size, "sha256": columns_hash(printed)}]
        return _Read(printed, lambda row: f"{files[0].label} row {row + 1}", files[0].label, lambda: seal)

    def refuse() -> None:
        raise BadInput(
            f"{path} has lines without an object, fields of several types, or numbers of more than 64 bits; write"
            ' objects such as {"key": "a", "count": 3}'
        )

    with TemporaryDirectory(prefix="adapt-") as staging, no_doubt(refuse):
        spark: Any = Later(refuse)  # only it reads such JSON
        source = Source(spark, files, found.form, Path(staging), silent, found.by_file, MOST_BYTES, here=True)
        rows = source.held(source.columns)
    if rows is None:
        raise BadInput(f"{path} has more than {MOST_BYTES >> 30} GB of counts; sum them by key first")
    wrong = rows["_reason"].is_valid().index(True).as_py()

    def place(row: int) -> str:
        return f"{files[rows['_file'][row].as_py()].label} line {rows['_line'][row].as_py()}"

    if wrong >= 0:
        raise BadInput(f"{place(wrong)}: {rows['_reason'][wrong]}")
    delimited = source.delimited
    has_header = delimited is None or delimited.header is not None
    return _Read(rows.select(list(source.columns)), place, _named(files, path), lambda: source.inputs, has_header)


def _printed(files: Sequence[SourceFile], count: str) -> pa.Table | None:
    """A table as `nodetool` and `psql` print it: columns apart by bars in blanks, or by several blanks.

    Lines before its header, and from the first empty line or count of rows on, are of no concern.

    Args:
        count: Column of counts; if empty, a usual name.
    """
    if len(files) != 1 or files[0].size > _MOST_PRINTED:
        return None
    head = head_of(files[0], _MOST_PRINTED)
    lines = head.decode("utf-8", "replace").splitlines()
    cells = [_APART.split(line.strip(" |\t")) for line in lines]
    named = (each for each in cells if len(each) > 1 and (count in each if count else any(map(_is_named_count, each))))
    names = next(named, [])
    first = cells.index(names) + 1 if names else 0
    begun = [row for row, line in zip(cells[first:], lines[first:], strict=True) if not _RULE.fullmatch(line)][:1]
    is_table = begun and len(begun[0]) == len(names) and any(_number(cell) is not None for cell in begun[0])
    if not is_table or len(head) >= _MOST_PRINTED or any("," in name or ";" in name for name in names):
        return None
    if cells.count(names) > 1:
        raise BadInput(f"{files[0].label} has several tables; keep one")
    rows = []
    for at, row in enumerate(cells[first:], first):
        if _END.fullmatch(lines[at]):
            break
        if len(row) == len(names):
            rows.append(row)
        elif not _RULE.fullmatch(lines[at]):
            raise BadInput(f"{files[0].label} line {at + 1}: {len(row)} fields instead of {len(names)}")
    return pa.table({name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate(names)})


def _named(files: Sequence[SourceFile], path: Path) -> str:
    return files[0].label if len(files) == 1 else str(path)


def _chosen(read: _Read, named: Mapping, count: str, measured: Sequence[str]) -> tuple[_Columns, list[str]]:
    """The columns, and which of them were guessed, in words."""
    columns = read.rows.column_names
    given = {"key": named.key, "count": count, "time": named.time, "cost": named.cost, "bytes": named.bytes}
    keys = key_parts(named.key, columns)
    for option, name in [*given.items(), *(("key", part) for part in keys)]:
        if name and name not in columns and (option != "key" or name in keys):
            raise UsageError(f"--{option}: column {name!r} does not exist{did_you_mean(name, columns)}")
    for name in measured:
        if name not in columns:
            raise UsageError(
                f"{read.name} has no column {name!r}{did_you_mean(name, columns)}; the first line must be a header such"
                " as key,count,state_bytes"
            )
    if not read.has_header and not (named.key and count):
        if len(columns) != 2:
            raise BadInput(
                f"{read.place(0)}: expected 2 fields: key, count (got {len(columns)}); write a header that names them"
            )
        return _Columns(replace(named, key=named.key or columns[0]), count or columns[1]), []
    left = [name for name in columns if name not in (*given.values(), *keys)]
    error = next((name for name in left if name.strip().lower() in ERRORS), "")
    left = [name for name in left if name != error]
    time = named.time or _one(read, "time", [name for name in left if TIMES.fullmatch(name.lower())], optional=True)
    left = [name for name in left if name != time]
    count = count or _one(read, "count", _likely_counts(read, left))
    left = [name for name in left if name != count and name not in measured and not COSTS.fullmatch(name.lower())]
    key = named.key or _one(read, "key", [name for name in left if name.lower() == "key"] or left)
    chosen = {"key": key, "count": count, "time": time, "error": error}
    guesses = [
        f"{what} from {name}"
        for what, name in chosen.items()
        if name and not given.get(what) and name.strip().lower() != what
    ]
    return _Columns(replace(named, key=key, time=time), count, error), guesses


def _one(read: _Read, option: str, names: Sequence[str], *, optional: bool = False) -> str:
    """The only column of these."""
    if len(names) == 1 or (optional and not names):
        return names[0] if names else ""
    what = {"key": "key", "count": "count of a key", "time": "window of a count"}[option]
    if not names:
        raise BadInput(
            f"{read.name}: no column is the {what}; name it key, count or time, or with --{option}; available:"
            f" {listed(read.rows.column_names)}"
        )
    raise BadInput(f"{read.name}: {' and '.join(map(repr, names))} may each be the {what}; name one with --{option}")


def _likely_counts(read: _Read, names: Sequence[str]) -> list[str]:
    """Columns with the name of a count, else those of numbers alone."""
    for found in (
        [name for name in names if name.strip().lower() == "count"],
        [name for name in names if _is_named_count(name)],
    ):
        if found:
            return found
    beside = [name for name in names if not COSTS.fullmatch(name.lower())]
    return [name for name in beside if name.lower() != "key" and _are_numbers(read.rows[name])]


def _is_named_count(name: str) -> bool:
    return COUNTS.fullmatch(name.strip().lower().replace(" ", "_")) is not None


def _are_numbers(column: pa.ChunkedArray) -> bool:
    if pa.types.is_string(column.type):
        return all(_number(text or "") is not None for text in column.slice(0, 100).to_pylist())
    return bool(pa.types.is_integer(column.type) or pa.types.is_floating(column.type))


def _numbers(read: _Read, name: str) -> Floats:
    """The numbers of a column; errors name the line."""
    column = read.rows[name]
    try:
        values = column.cast(pa.float64()).combine_chunks()
        if not values.null_count:
            numbers = values.to_numpy()
            if (np.isfinite(numbers) & (numbers >= 0)).all():
                return np.asarray(numbers)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    shown = name if read.has_header else "count"
    found = []
    for row, value in enumerate(column.to_pylist()):
        number = _number("" if value is None else str(value))
        if number is None:
            percentages = "; give counts, not percentages" if str(value).rstrip().endswith("%") else ""
            raise BadInput(
                f"{read.place(row)}: the {shown} must be a number, at least 0 (got"
                f" {'' if value is None else str(value)!r}){percentages}"
            )
        found.append(number)
    return np.array(found)


def _number(text: str) -> float | None:
    """A number as written in files; `1_000` is not one."""
    try:
        number = -1.0 if "_" in text else float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _keys(read: _Read, name: str, key_type: KeyType | None) -> tuple[pa.Array, KeyType]:
    """The column of keys, of their type in the source; several columns as a JSON array, as in traces."""
    parts = key_parts(name, read.rows.column_names)
    if len(parts) > 1:
        found = [_keys(read, part, None) for part in parts]
        for part in (part for part, (_, kind) in zip(parts, found, strict=True) if kind is KeyType.BINARY):
            raise BadInput(f"{read.name}: key {part} has type binary; in a key of several columns, give it as text")
        rows = zip(*(column.to_pylist() for column, _ in found), strict=True)
        texts = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows]
        return pa.array(texts, pa.string()), KeyType(several([kind for _, kind in found]))
    column = read.rows[name].combine_chunks()
    column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        kind = read_as(column.type)
        column = column.cast(pa.int64()) if pa.types.is_integer(kind) else column
        own = _NARROW.get(kind) or (KeyType.BINARY if pa.types.is_binary(kind) else None)
        if own is None:
            other = "give it as text, whole numbers or bytes"
            raise BadInput(f"{read.name}: key {name} has type {kind}; {other}")
        return column, key_type if key_type is not None and key_type.storage is own.storage else own
    if key_type in (None, KeyType.STRING):
        return column.cast(pa.string()), KeyType.STRING
    try:
        return keys_from_texts(column.to_pylist(), key_type), key_type
    except BadInput:
        for row, text in enumerate(column.to_pylist()):
            try:
                keys_from_texts([text], key_type)
            except BadInput as error:
                raise BadInput(f"{read.place(row)}: {error}") from error
        raise


def _loads(read: _Read, mapping: Mapping, counts: Floats) -> tuple[Floats, Weight]:
    """What the keys of each row weigh."""
    if mapping.cost:
        return _numbers(read, mapping.cost) * float(mapping.us_per_cost), Weight.COST
    if mapping.bytes:
        return _numbers(read, mapping.bytes), Weight.BYTES
    return counts, Weight.COUNT


def _windows(read: _Read, mapping: Mapping) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The window of each row, and the start of each window in microseconds since 1970; numbered windows have none."""
    if not mapping.time:
        return np.zeros(len(read.rows), np.int64), np.zeros(0, np.int64)
    times = _times(read, mapping)
    starts, window = np.unique(times, return_inverse=True)
    return window.astype(np.int64), starts


def _times(read: _Read, mapping: Mapping) -> NDArray[np.int64]:
    """Times in microseconds since 1970; numbers that cannot be times number the windows."""
    name = mapping.time
    column = read.rows[name].combine_chunks()
    kind, row = column.type, column.is_null().index(True).as_py()
    if row >= 0:
        raise BadInput(f"{read.place(row)}: the {name} is missing")
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zone = kind.tz if pa.types.is_timestamp(kind) else None
        return np.asarray(column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64()))
    form, sample = TimeFormat(ISO), column if kind in SPARK_KINDS else column.cast(pa.string())
    try:
        form = plain_format(mapping, read.rows.column_names, sample.slice(0, HEAD_ROWS))
    except (BadInput, InDoubt):
        if _are_numbers(read.rows[name]):
            return np.round(_numbers(read, name)).astype(np.int64)
    if form.name in EPOCH_UNITS:
        return np.round(_numbers(read, name) * EPOCH_UNITS[form.name]).astype(np.int64)
    layout = layout_of(form, UTC)
    texts, steps = column.cast(pa.string()), np.array(ISO_STEPS, np.int64) if layout is None else layout
    times, plain = plain_times(texts, steps, zoned=False)
    if plain.all():
        return times
    row = int(np.argmin(plain))
    raise BadInput(
        f"{read.place(row)}: the {name} cannot be read as a time (got {column[row].as_py()!r}); write it as"
        " 2024-03-01T10:00:00Z, or number the windows"
    )


def _totals(keys: pa.Array, counts: Floats, window: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Rows that hold the sum of the others of their window."""
    found = np.zeros(len(counts), np.bool_)
    if not pa.types.is_string(keys.type) or len(counts) < 3:
        return found
    named = np.flatnonzero(pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(keys)), value_set=pa.array(TOTALS)))
    for row in named:
        others = counts[window == window[row]].sum() - counts[row]
        found[row] = counts[row] > 0 and abs(others - counts[row]) <= 1e-9 * others
    return found


def _refuse_shares(read: _Read, name: str, counts: Floats, window: NDArray[np.int64]) -> None:
    """Refuse shares of a whole, which say nothing of its rows."""
    if (counts == np.floor(counts)).all():
        return
    sums = np.bincount(window, counts)
    for whole in (100.0, 1.0):
        if (np.abs(sums - whole) <= 0.005 * whole).all():
            raise BadInput(f"{read.name}: column {name} sums to {whole:g}, as shares do; give counts")


def _summed(codes: NDArray[np.int64], values: Floats, size: int, read: _Read, name: str) -> Any:
    """Sums by key, in ascending order of the values; whole ones as integers."""
    with np.errstate(over="ignore"):
        total = float(values.sum())
    if total >= MOST_TOTAL:
        shown = name if read.has_header else "count"
        raise BadInput(
            f"{read.name}: the sum of column {shown} is {total:.3g}; it must be below 2^63, about 9.2e18: use a larger"
            " unit"
        )
    return _sums(codes, values, size)


def _sums(codes: NDArray[np.int64], values: Floats, size: int) -> Any:
    order = np.lexsort((values, codes))
    sums = np.bincount(codes[order], values[order], size)
    return sums.astype(np.int64) if (sums == np.floor(sums)).all() and sums.sum() < 2**53 else sums


def _frequencies(keys: pa.Array, loads: Any, rows: float, key_type: KeyType, weight: Weight) -> Frequencies:
    own = loads.astype(np.float64) if weight is Weight.COST else loads
    return frequencies_of(KeyCounts(keys, own, round(rows)), weight, key_type)


def _with_errors(exact: Frequencies, errors: Any) -> Frequencies:
    """Counts that may be too high, as those of a sketch that lists its hottest keys; shape (keys,)."""
    low, high = exact.count_low - errors, exact.count_high
    order = key_order(exact.keys, low)
    return replace(
        exact,
        keys=exact.keys.take(pa.array(order)),
        count_low=low[order],
        count_high=high[order],
        epsilon=float(errors.max()) / (exact.total or 1.0),
        complete_above=float(high.min()),
    )


def _panes(
    keys: pa.Array,
    codes: NDArray[np.int64],
    amounts: tuple[Floats, Floats],
    window: NDArray[np.int64],
    starts: NDArray[np.int64],
    of_keys: Callable[[pa.Array, Any, float], Frequencies],
) -> tuple[CountedPane, ...]:
    """The windows; several at once if a trace of these rows would have fewer.

    Args:
        amounts: The count and the load of each row.
    """
    counts, loads = amounts
    rows = np.bincount(window, counts, max(len(starts), 1))
    total = float(rows.sum())
    size = rows_a_pane(int(total))
    if len(starts) < 2 or size is None:
        return ()
    most = -(-total // size)
    pane_of = np.arange(len(rows))
    if len(rows) > most:
        pane_of = np.minimum(np.round((np.cumsum(rows) - rows) * most / total), most - 1).astype(np.int64)
    panes = []
    for pane in np.unique(pane_of):
        within = pane_of[window] == pane
        sums = _sums(codes[within], loads[within], len(keys))
        seen = np.flatnonzero(sums)
        if len(seen):
            start = int(starts[np.flatnonzero(pane_of == pane)[0]])
            own = of_keys(keys.take(pa.array(seen)), sums[seen], float(counts[within].sum()))
            panes.append(CountedPane(start, own))
    return tuple(panes)
