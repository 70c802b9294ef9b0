"""Guess format, delimiter and header from a source's first bytes."""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from string import whitespace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.errors import BadInput, UsageError
from adapt.traces.sources.formats.avro import avro_files
from adapt.traces.sources.formats.console import ENVELOPE, console_format, envelopes, is_dump
from adapt.traces.sources.formats.delimited import Delimited
from adapt.traces.sources.formats.json_layout import JSON, TIMES, JsonLayout, json_layout, named
from adapt.traces.sources.formats.json_lines import JsonLines
from adapt.traces.sources.formats.logs import log_of
from adapt.traces.sources.formats.orc import OrcFiles
from adapt.traces.sources.formats.parquet import ParquetFiles
from adapt.traces.sources.formats.text import log_format, pattern_format
from adapt.traces.sources.frames import frame_schema, is_frame
from adapt.traces.sources.names import FormatName
from adapt.traces.sources.reading.blocks import BlockFormat
from adapt.traces.sources.reading.files import LONGEST_HEAD, Container, SourceFile, head_of, source_files
from adapt.traces.sources.reading.records import BOM, RecordFormat, field_paths, quoted_name, refuse_utf16
from adapt.traces.sources.reading.table_files import stored_tables

HEAD_BYTES = 1 << 18
LOOKED_AT = 200
DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", " ": "space"}


_BEGINS = {b"PAR1": FormatName.PARQUET, b"ORC": FormatName.ORC, b"Obj\x01": FormatName.AVRO}
"""First bytes of binary formats."""

_NOT_TEXT = tuple(_BEGINS.values())


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Stated format of a source; the rest is guessed."""

    format: FormatName = FormatName.AUTO  # the format, or auto
    delimiter: str = ""  # the character between fields; guessed if empty
    quote: str = '"'  # the quoting character; empty if fields are not quoted
    header: bool | None = None  # whether the first record names the columns; guessed if None
    columns: tuple[str, ...] = ()  # column names in order, instead of those of the header
    pattern: str = ""  # for text: a regular expression with named groups
    # for dumps of `kafka-console-consumer`: its properties, NAME=VALUE; what is not stated is guessed
    properties: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for option, text in (("--delimiter", self.delimiter), ("--quote", self.quote)):
            if len(text.encode()) > 1:
                raise UsageError(f"{option} must be one ASCII character (got {text!r})")
            if text and text in "\r\n":
                raise UsageError(f"{option} must not be a line end (got {text!r})")
        if self.delimiter and self.delimiter == self.quote:
            raise UsageError(
                f"--delimiter and --quote must differ (both are {self.quote!r}); turn quoting off with --quote ''"
            )
        if self.pattern and self.format not in (FormatName.AUTO, FormatName.TEXT):
            raise UsageError(f"--pattern needs --source-format text (got {self.format})")
        if self.properties and self.format not in (FormatName.AUTO, FormatName.CONSOLE):
            raise UsageError(f"--property needs --source-format console (got {self.format})")


@dataclass(frozen=True, slots=True)
class Recognized:
    """Format of a source, partly guessed."""

    form: RecordFormat | BlockFormat  # the format, with its settings
    guesses: list[str] = field(default_factory=list)  # guessed settings, in words
    by_file: Mapping[int, RecordFormat] = field(default_factory=dict)  # formats of files that differ, by position


def recognize(files: Sequence[SourceFile], options: ReadOptions) -> Recognized:
    """Recognize the format of files by their first bytes.

    The first file that is not empty counts.
    """
    head, name = b"", ""
    for file in files:
        head, name = head_of(file, HEAD_BYTES).removeprefix(BOM), file.label
        if head.strip():
            break
    if not head.strip():
        raise BadInput(f"{name} is empty")
    refuse_utf16(head, name)
    _refuse_other(head, name)
    guesses: list[str] = []
    kind = options.format
    if kind is FormatName.AUTO:
        stated = FormatName.TEXT if options.pattern else FormatName.CONSOLE if options.properties else None
        kind = stated or _guess_format(head, name)
        guesses.append(f"format {kind}")
    if kind in _NOT_TEXT and any(file.container is not Container.PLAIN for file in files):
        called = kind.upper() if kind is FormatName.ORC else kind.title()
        raise BadInput(f"{name}: {called} files cannot be read inside archives; unpack them first")
    match kind:
        case FormatName.PARQUET:
            return Recognized(stored_tables(ParquetFiles(), files), guesses)
        case FormatName.ORC:
            return Recognized(stored_tables(OrcFiles(), files), guesses)
        case FormatName.AVRO:
            return Recognized(avro_files(files), guesses)
        case FormatName.JSONL:
            return Recognized(JsonLines(), guesses)
        case FormatName.JSON | FormatName.DEBEZIUM | FormatName.OTLP:
            return _of_objects(files, options.format)
        case FormatName.KCAT:
            if not head.lstrip().startswith(b"{"):
                raise BadInput(
                    f"{name} does not hold envelopes of kcat -J; read other lines with --source-format text --pattern"
                )
            return Recognized(envelopes(), guesses)
        case FormatName.CONSOLE:
            dump = console_format(options.properties, _lines(head))
            return Recognized(dump, [*guesses, f"fields {', '.join(dump.columns)}"])
        case FormatName.CLF:
            return Recognized(log_format(), guesses)
        case FormatName.TEXT if options.pattern:
            return Recognized(pattern_format(options.pattern), guesses)
        case FormatName.TEXT:
            log = log_of(_lines(head))
            if log is None:
                raise UsageError("--source-format text needs --pattern, a regular expression with named groups")
            fields = ", ".join(log.form.columns)
            return Recognized(log.form, [*guesses, f"lines of {log.name}, fields {fields}"])
        case _:
            form = _delimited(_lines(head, "surrogateescape"), kind, options, guesses, name)
            return Recognized(form, guesses, _with_other_headers(files, form, kind, options))


def _of_objects(files: Sequence[SourceFile], stated: FormatName) -> Recognized:
    """The format of JSON files, each with its own layout."""
    layouts: dict[int, JsonLayout] = {}
    for at, file in enumerate(files):
        head = head_of(file, HEAD_BYTES).removeprefix(BOM)
        try:
            if head.strip():
                layouts[at] = json_layout(head, whole=len(head) < HEAD_BYTES - len(BOM))
        except BadInput as error:
            raise BadInput(f"{file.label}: {error}") from None
    wrapped = next((at for at, each in layouts.items() if each.within), None)
    bare = next((at for at, each in layouts.items() if not each.within), None)
    if wrapped is not None and bare is not None:
        raise BadInput(
            f"{files[wrapped].label} is one object around the array {named(layouts[wrapped].within)}, but"
            f" {files[bare].label} is not; read them apart, or each object as a row by --source-format jsonl"
        )
    what = next((each.what for each in layouts.values() if each.what != JSON), JSON)
    what = what if stated is FormatName.AUTO else stated.value
    forms = {each: JsonLines(TIMES.get(what, {}), {}, replace(each, what=what)) for each in layouts.values()}
    first = next(iter(forms.values()))
    of_lines = what == JSON and all(each.of_lines for each in forms)
    guesses = [f"format {FormatName.JSONL if of_lines else what}"] if stated is FormatName.AUTO else []
    guesses += [f"rows from {name}" for name in dict.fromkeys(named(each.within) for each in forms if each.within)]
    return Recognized(first, guesses, {at: forms[each] for at, each in layouts.items() if forms[each] is not first})


def _with_other_headers(
    files: Sequence[SourceFile], form: Delimited, kind: FormatName, options: ReadOptions
) -> dict[int, Delimited]:
    """Formats of files whose header differs from the first file's."""
    found: dict[int, Delimited] = {}
    if form.header is None or options.columns:
        return found
    for at, file in enumerate(files):
        head = head_of(file, HEAD_BYTES).removeprefix(BOM)
        lines = _body(_lines(head, "surrogateescape")) if head.strip() else []
        first = next(_rows(lines, form.delimiter, form.quote), None)
        if first is None or tuple(first) == form.header:
            continue
        other = _delimited(lines, kind, replace(options, header=True), [], file.label)
        same = set(other.columns) & set(form.columns)
        if same or options.header or _looks_like_header(list(_rows(lines, other.delimiter, other.quote))):
            found[at] = other
    return found


def _refuse_other(head: bytes, name: str) -> None:
    """Refuse formats that another tool converts."""
    if head[257:262] == b"ustar":
        raise BadInput(f"{name} is a tar archive; unpack it with `tar -xf`")
    if head.startswith(b"PARE"):
        raise BadInput(f"{name} is a Parquet file with an encrypted footer; decrypt it first")


def _lines(head: bytes, errors: Literal["replace", "surrogateescape"] = "replace") -> list[str]:
    """The first whole lines that are not blank, with their line ends; `errors` says how bad bytes are decoded.

    There is at least one unless all bytes are blank; it may be cut off.
    """
    found = re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$", head.decode("utf-8", errors))
    lines = [line for line in found if line.strip(whitespace)]  # blank as bytes: text has more kinds of blanks
    if len(head) >= HEAD_BYTES - len(BOM) and len(lines) > 1:
        lines.pop()
    return lines[:LOOKED_AT]


def _guess_format(head: bytes, name: str) -> FormatName:
    for begins, kind in _BEGINS.items():
        if head.startswith(begins):
            return kind
    if b"\0" in head[:4096]:
        raise BadInput(f"{name} is neither text nor Parquet, ORC or Avro; state its format with --source-format")
    lines = _lines(head)
    if re.match(rb"\s*(\[\s*)?\{", head):
        return FormatName.KCAT if ENVELOPE.match(lines[0]) else FormatName.JSON
    if is_dump(lines):
        return FormatName.CONSOLE
    matches = log_format()
    sample = pa.array(lines)
    if 2 * pc.sum(pc.match_substring_regex(sample, matches.pattern).cast(pa.int64())).as_py() > len(lines):
        return FormatName.CLF
    if log_of(lines) is not None:
        return FormatName.TEXT
    return FormatName.TSV if _guess_delimiter(_body(lines)) == "\t" else FormatName.CSV


def _delimited(
    lines: Sequence[str], kind: FormatName, options: ReadOptions, guesses: list[str], name: str
) -> Delimited:
    comment, lines = _comment(lines), _body(every := lines)
    remarks = [line.rstrip("\r\n") for line in every if comment and line.startswith(comment)]
    delimiter = options.delimiter or ("\t" if kind is FormatName.TSV else "")
    if comment == _SEPARATOR:
        delimiter = delimiter or remarks[0][len(comment) :][:1]
    if not delimiter:
        delimiter = _guess_delimiter(lines)
        guesses.append(f"delimiter {DELIMITERS[delimiter]}")
    quote = options.quote
    if quote == '"' and _is_single_quoted(lines, delimiter):
        quote = "'"
        guesses.append("quote '")
    rows = list(_rows(lines, delimiter, quote))
    if not rows:
        raise BadInput(
            f"{name}: a quote in the first line is never closed, or the line is too long; --quote '' turns quoting off"
        )
    first = rows[0]
    header, named = options.header, None
    if header is None:
        header = _looks_like_header(rows)
        named = None if header else _named_above(remarks, delimiter, len(first))
        guesses.append("names of a comment" if named else "a header line" if header else "no header line")
    if header and any("\udc80" <= letter <= "\udcff" for cell in first for letter in cell):
        raise BadInput(f"{name}: the header is not UTF-8 text; convert the file, e.g. with `iconv -f latin1 -t utf-8`")
    if options.columns:
        names = options.columns
        if len(names) != len(first):
            raise UsageError(f"--columns must name all {len(first)} columns of {name} (got {len(names)})")
    elif header:
        names = tuple(cell.strip() or f"_c{at}" for at, cell in enumerate(first))
    else:
        names = named or tuple(f"_c{at}" for at in range(len(first)))
    missing = "-" if named and comment == "#" else ""
    return Delimited(_distinct(names), delimiter, quote, tuple(first) if header else None, comment, missing)


_SEPARATOR = "sep="
"""Beginning of the line by which Excel states the delimiter."""


def _comment(lines: Sequence[str]) -> str:
    """What comments begin with, if the first line is one."""
    return next((each for each in ("#", _SEPARATOR) if lines and lines[0].startswith(each)), "")


def _body(lines: Sequence[str]) -> list[str]:
    """The lines without comments; all if there are no others."""
    comment = _comment(lines)
    return [line for line in lines if not (comment and line.startswith(comment))] or list(lines)


def _named_above(remarks: Sequence[str], delimiter: str, fields: int) -> tuple[str, ...] | None:
    """Names of the columns in a comment, as in Zeek's and W3C's logs."""
    for line in reversed(remarks):
        cells = re.sub(r"^#\s*(fields:?(\s+|$))?", "", line, flags=re.IGNORECASE).split(delimiter)
        if len(cells) == fields and fields > 1 and not any(_NUMBER_OR_TIME.match(cell) for cell in cells):
            return tuple(cell.strip() for cell in cells)
    return None


def _is_single_quoted(lines: Sequence[str], delimiter: str) -> bool:
    """Whether fields are quoted by apostrophes."""
    fields = [field.strip() for line in lines for field in line.rstrip("\r\n").split(delimiter)]
    quoted = sum(len(field) > 1 and field[0] == field[-1] == "'" for field in fields)
    return 2 * quoted >= len(lines) and not any('"' in field for field in fields)


def _rows(lines: Sequence[str], delimiter: str, quote: str) -> Iterator[list[str]]:
    """Fields of the lines, up to a quote that is never closed."""
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
    reader = csv.reader(lines, delimiter=delimiter, quotechar=quote or None, quoting=quoting, strict=False)
    with suppress(csv.Error):  # a field beyond the module's limit: an open quote
        yield from reader


def _guess_delimiter(lines: Sequence[str]) -> str:
    """The delimiter that gives the most lines the same number of fields; more fields win."""

    def fitness(delimiter: str) -> tuple[float, int]:
        counts = [len(row) for row in _rows(lines, delimiter, '"')] or [1]
        usual = max(set(counts), key=counts.count)
        if usual == 1:
            return 0.0, 0
        share = counts.count(usual) / len(counts)
        # a comma that almost always fits is better evidence than a space that always does
        return share - (0.2 if delimiter == " " else 0.0), usual

    best = max(DELIMITERS, key=fitness)
    return best if fitness(best)[0] > 0 else ","


_NUMBER_OR_TIME = re.compile(
    r"^\s*([-+]?[\d.,:eE]+|\d{4}-\d\d?-\d\d?([T ].*)?|\d\d?[/.]\d\d?[/.]\d{2,4}.*|NA|NaN|null)?\s*$"
)


def _looks_like_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has distinct words, over columns of numbers or times."""
    first, rest = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    named = [cell for cell in first if cell.strip()]
    # pandas leaves out the name of its index; a line may end by a delimiter
    blank = [at for at, cell in enumerate(first) if not cell.strip()]
    if not named or any(_NUMBER_OR_TIME.match(cell) for cell in named) or not {*blank} <= {0, len(first) - 1}:
        return False
    if (blank or len(set(named)) < len(named)) and not rest:
        return False
    if not rest:
        return True
    for at, cell in enumerate(first):
        values = [row[at] for row in rest]
        if sum(bool(_NUMBER_OR_TIME.match(value)) for value in values) * 2 > len(values):
            return True
        if cell in values:
            return False
    return not blank and all(re.fullmatch(r"\s*[A-Za-z_][\w .\-]*\s*", cell) for cell in first)


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with repeated ones numbered."""
    given = {*names}
    result: dict[str, None] = {}
    for name in names:
        numbered = (f"{name}_{number}" for number in count(2) if f"{name}_{number}" not in given)
        free = name if name not in result else next(other for other in numbered if other not in result)
        result[free] = None
    return tuple(result)


def offered_columns(sources: Sequence[Any]) -> tuple[str, ...]:
    """Columns and nested fields of a source, in its order."""
    if is_frame(sources[0]):
        schema = frame_schema(sources[0])
        return (*schema.names, *field_paths(schema))
    files = source_files(sources)
    form = recognize(files, ReadOptions()).form
    if isinstance(form, JsonLines):
        return tuple(json_fields(files, form))
    if isinstance(form, RecordFormat):
        return form.columns
    schema = pa.schema(form.types)
    return (*schema.names, *field_paths(schema))


def json_fields(files: Sequence[SourceFile], form: JsonLines) -> dict[str, bool]:
    """Fields of JSON by their paths, and whether they hold arrays."""
    found: dict[str, bool] = {}
    head = head_of(files[0], HEAD_BYTES if form.layout.of_lines else LONGEST_HEAD).removeprefix(BOM)
    data = np.frombuffer(head, np.uint8)
    data, rows = form.rows(data, form.records(data, at_end=len(head) < HEAD_BYTES - len(BOM)).where(slice(LOOKED_AT)))
    for start, end in zip(rows.starts, rows.ends, strict=True):
        with suppress(ValueError):  # the last line may be cut off
            for name, is_array in _paths(json.loads(data[start:end].tobytes())):
                found[name] = found.get(name, False) or is_array
    return found


def _paths(value: Any) -> Iterator[tuple[str, bool]]:
    for name, held in value.items() if isinstance(value, Mapping) else ():
        own = quoted_name(name)
        if isinstance(held, Mapping) and held:
            yield from ((f"{own}.{path}", is_array) for path, is_array in _paths(held))
        else:
            yield own, isinstance(held, list)
