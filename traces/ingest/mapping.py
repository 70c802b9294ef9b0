"""Columns of a trace, from expressions over the source.

Fields have the names of the options. A `[[stream]]` names its files (`paths`) or rows (`where`) and may override the
fields at the top of the file.
"""

import re
import tomllib
from collections.abc import Callable, Sequence
from collections.abc import Mapping as Fields
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from adapt.core.engines.spark.export import spark_key_type, stored_key_sql
from adapt.core.errors import BadInput, UsageError, did_you_mean, listed
from adapt.core.stream import KeyType, several
from adapt.core.toml import Element, called, elements, only
from adapt.core.units.amounts import unit_us
from adapt.traces.ingest.cleaning import UNIQUE
from adapt.traces.ingest.times import (
    USUAL_NAMES,
    WHOLE,
    LocalTimes,
    TimeFormat,
    as_timestamp,
    guess_format,
    is_in_range,
    stated_format,
    with_whole_casts,
)
from adapt.traces.read_errors import readable
from adapt.traces.sources.names import FormatName
from adapt.traces.sources.reading.blocks import PATH, PLACE
from adapt.traces.sources.reading.table_files import quoted
from adapt.traces.spark.lazy import Column, DataFrame, F
from adapt.traces.spark.session import spark_failures

AMOUNTS = {"cost": ("cost_us", "double"), "bytes": ("bytes", "bigint"), "partition": ("partition", "int")}
"""Trace column and type of each quantity, by its option."""

_BEYOND = {"bigint": 1 << 63, "int": 1 << 31}
"""The first number beyond a type."""

_WHOLE_ONLY = ("key", "partition", "dedup")
"""Options that reject fractions where a column is cast."""

RESERVED = ("ts", "key", "stream", "cost_us", "bytes", "partition")
"""The trace's own columns."""

ALL_COLUMNS = "*"
"""Deduplicates rows by all columns of the trace."""

NESTED = ("struct", "array", "map", "variant")
"""Beginnings of Spark's types for nested values."""

OF_THE_RUN = (
    *("user", "session_user", "current_user", "current_catalog", "current_database", "current_schema", "current_path"),
    *("current_date", "current_time", "current_timestamp", "current_timezone", "curdate", "localtime"),
    *("localtimestamp", "now", "version"),
)
"""SQL functions of who runs a query, when and where; Spark takes some for a column's name without parentheses."""

_NAMED = re.compile(r"(\w+)\s*=(?!=)\s*(.*\S)\s*", re.DOTALL)
_PATH = re.compile(r"[\w.`]+")
_WORD = re.compile(r"\w+")
_TEXT = re.compile(r"""(`[^`]*`)|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_SEPARATOR = re.compile(r"""`[^`]*`|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[(),\[\]]""")
_CALL = re.compile(rf"\b({'|'.join(OF_THE_RUN)})\s*\(\s*\)", re.IGNORECASE)
_UNIT_SUFFIX = re.compile(r"[\w. `]*_(us|ms|s|ns)`?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Mapping:
    """Source columns or Spark SQL expressions for the columns of a trace."""

    # key, time, cost, bytes, stream, partition: columns or expressions; an empty time is guessed, an empty partition
    # is known in some formats
    key: str
    time: str = ""
    cost: str = ""
    bytes: str = ""
    stream: str = ""
    time_format: str = ""  # iso, an epoch unit, or a Spark datetime pattern; empty to guess
    keep: tuple[str, ...] = ()  # source columns that the trace keeps, or NAME=EXPRESSION
    # of rows equal in this, only the first in the source is kept; `*` compares all columns of the trace. Rows where
    # it is missing are kept. Empty keeps repeated rows
    dedup: str = ""
    # what 1 of the cost means: us, ms, s, ns or a duration; empty to read it from the name of the cost's column
    cost_unit: str = ""
    partition: str = ""

    def expressions(self) -> dict[str, str]:
        """The given expressions, by option."""
        given = {name: getattr(self, name) for name in ("key", "time", "cost", "bytes", "stream", "partition", "dedup")}
        return {name: text for name, text in given.items() if text and (name, text) != ("dedup", ALL_COLUMNS)}

    @property
    def unit_of_cost(self) -> str:
        """Unit of the cost, stated or read from its column's name.

        Empty without a cost.
        """
        if self.cost_unit or not self.cost:
            return self.cost_unit
        named = _UNIT_SUFFIX.fullmatch(self.cost)
        if named is None:
            raise UsageError(f"--cost {self.cost!r} needs a unit: add --cost-unit us, ms, s or ns")
        return named[1].lower()

    @property
    def us_per_cost(self) -> Fraction:
        """Microseconds that 1 in the cost column means; 1 without a cost."""
        unit = self.unit_of_cost or "us"
        try:
            return unit_us(unit)
        except UsageError as error:
            raise UsageError(f"--cost-unit {error}") from None

    def kept(self, columns: Sequence[str]) -> dict[str, str]:
        """Source columns or expressions to keep, by name in the trace."""
        kept: dict[str, str] = {}
        for text in dict.fromkeys(self.keep):
            named = None if text in columns else _NAMED.fullmatch(text)
            name, value = named.groups() if named else (text, text)
            if name in kept:
                raise UsageError(f"--keep gives two columns the name {name!r}; rename one")
            if named is None and text not in columns:
                expression = "" if _WORD.fullmatch(text) else "; name an expression, as in --keep 'NAME=EXPRESSION'"
                raise UsageError(f"--keep: column {text!r} does not exist{expression or did_you_mean(text, columns)}")
            kept[name] = value
        return kept

    def wanted(self, columns: Sequence[str]) -> list[str]:
        """Source columns that the expressions may name."""
        texts = " ".join([*self.expressions().values(), *self.keep])
        words = {*_WORD.findall(texts)}
        return [name for name in (*columns, PATH) if name in words or _quotes(texts, name)]


def _quotes(texts: str, column: str) -> bool:
    """Whether expressions may name a column that is not a plain word."""
    return _WORD.fullmatch(column) is None and (column in texts or column.replace("`", "``") in texts)


def chosen_time(first: Callable[[], str | None], columns: Sequence[str]) -> str:
    """The guessed time column: a usual name, else the first of times.

    Empty if no column has times.

    Args:
        first: Finds the latter.
    """
    by_name = {name.lower(): name for name in reversed(columns)}
    for name in USUAL_NAMES:
        if name in by_name:
            return by_name[name]
    return first() or ""


def settled_format(
    mapping: Mapping, sample: DataFrame, columns: Sequence[str], paths: Sequence[str] = ()
) -> TimeFormat:
    """Time format of the mapping: stated, or the best on a sample."""
    if mapping.time_format:
        return stated_format(sample.sparkSession, mapping.time_format, mapping.time)
    times = selected(sample, mapping.time, "time", columns, paths)
    with spark_failures(f"--time {mapping.time!r}"):
        return guess_format(times, shown_time(mapping, columns), times.schema["time"].dataType.simpleString())


def shown_time(mapping: Mapping, columns: Sequence[str]) -> str:
    """The column or expression of the time, as SQL."""
    return f"`{mapping.time}`" if mapping.time in columns and not _PATH.fullmatch(mapping.time) else mapping.time


def mapped(
    source: DataFrame,
    mapping: Mapping,
    form: TimeFormat,
    columns: Sequence[str],
    paths: Sequence[str] = (),
    local: LocalTimes | None = None,
    key_type: KeyType | None = None,
) -> DataFrame:
    """Rows with the columns of the trace.

    The reader's own columns stay; `_reason` is set in rejected rows.

    Args:
        columns: Columns of the source.
        paths: Fields within them, for messages.
        local: Which local times are of a second pass.
        key_type: The type of the key. Default: `key_type_of_rows`.
    """
    values: dict[str, Column] = {}
    kinds: dict[str, str] = {}
    odd: dict[str, Column] = {}
    key_type = key_type or key_type_of_rows(source, mapping, columns, paths)
    keys = []
    for at, text in enumerate(key_parts(mapping.key, columns)):
        value, refused = _value_of(source, text, columns)
        keys.append(value)
        if refused is not None:
            odd[f"_odd_key_{at}"] = refused
    for name, text in mapping.expressions().items():
        if name == "key":
            continue
        # analyzed separately, so that an error names the option
        kinds[name] = selected(source, text, name, columns, paths).schema[name].dataType.simpleString()
        values[name], refused = _value_of(source, text, columns)
        if refused is not None and name in _WHOLE_ONLY:
            odd[f"_odd_{name}"] = refused
    kept, made_texts = mapping.kept(columns), dict[str, Column]()
    for name, text in kept.items():
        if not may_keep([name]):
            other = f"give it as --{name}" if name in ("stream", *AMOUNTS) else "give it another, as NAME=COLUMN"
            raise UsageError(f"--keep {name!r} is a name that every trace uses itself; {other}")
        kind = selected(source, text, "keep", columns, paths).schema[0].dataType.simpleString()
        if kind.startswith(NESTED):
            raise UsageError(f"--keep {name!r} has type {kind}; a kept column must be text, a number, a time or binary")
        if kind == "string" and text not in columns:
            made_texts[name] = quoted(name)
    with spark_failures("the expressions"):
        raw = source.select(
            *PLACE,
            *(value.alias(f"_raw_{name}") for name, value in values.items()),
            *(value.alias(name) for name, value in odd.items()),
            *(value.alias(f"_raw_key_{at}") for at, value in enumerate(keys)),
            *(_value_of(source, text, columns)[0].alias(name) for name, text in kept.items()),
        )
        # each value is computed once, here; without times, rows keep the order of their places
        time = as_timestamp(F.col("_raw_time"), kinds["time"], form) if mapping.time else F.timestamp_micros(F.lit(0))
        if local is not None:
            time = local.applied(time, F.col("_raw_time"), kinds["time"], form)
        read = raw.withColumn("_time", time)
        for name in AMOUNTS:
            if name in values:
                number = F.col(f"_raw_{name}").cast("double")
                factor = mapping.us_per_cost if name == "cost" else Fraction(1)
                read = read.withColumn(f"_{name}", number if factor == 1 else _times(number, factor))
        known = is_in_range(F.col("_time"))
        checks = []
        if mapping.time:
            unreadable = F.when(_missing("_raw_time"), "time is missing").otherwise("time cannot be read")
            checks.append(F.when(~known, unreadable))
        checks += [F.when(F.col(each), f"{each.split('_')[2]} is not a whole number") for each in odd]
        result = {"ts": F.when(known, F.col("_time")), "key": _stored(key_type)}
        if "stream" in values:
            result["stream"] = F.col("_raw_stream").cast("string")
        for name, (column, kind) in AMOUNTS.items():
            if name in values:
                check = _amount_refused(name, kind, kinds[name])
                result[column] = F.when(check.isNull(), _amount(name, kind))
                checks.append(check)
        if key_type.storage is KeyType.STRING:
            made_texts["key"] = result["key"]
        if "stream" in result:
            made_texts["stream"] = result["stream"]
        for name, made in made_texts.items():  # made of bytes, it may be no text
            checks.append(F.when(~F.is_valid_utf8(made), f"{name} is not UTF-8 text"))
        trace = read.select(
            "_file",
            "_line",
            F.coalesce(F.col("_reason"), *checks).alias("_reason"),
            "_text",
            *(column.alias(name) for name, column in result.items()),
            *(quoted(name) for name in kept),
            *([_text_of("dedup", kinds["dedup"]).alias(UNIQUE)] if "dedup" in values else []),
        )
        if mapping.dedup == ALL_COLUMNS:
            return trace.withColumn(UNIQUE, F.struct(*result, *(quoted(name) for name in kept)))
        return trace


def may_keep(names: Sequence[str]) -> bool:
    """Whether no trace uses these names itself."""
    return not any(name in RESERVED or name.startswith("_") for name in names)


def _times(number: Column, factor: Fraction) -> Column:
    return number * F.lit(float(factor.numerator)) / F.lit(float(factor.denominator))


def _text_of(name: str, kind: str) -> Column:
    """A value as text, to compare rows by; missing where it is empty."""
    if kind.startswith(NESTED):
        raise UsageError(f"--{name} has type {kind}; it must be text, a number, a time or binary: use concat_ws")
    return F.when(~_missing(f"_raw_{name}"), F.col(f"_raw_{name}").cast("string"))


def _value_of(source: DataFrame, text: str, columns: Sequence[str]) -> tuple[Column, Column | None]:
    """A column or expression, and whether its whole number had a fraction or was too large; None if it cannot."""
    if text in columns:
        return as_column(text, columns), None
    whole, refused = with_whole_casts(source, text)
    return F.expr(whole), F.expr(" or ".join(refused)) if refused else None


def selected(source: DataFrame, text: str, option: str, columns: Sequence[str], paths: Sequence[str] = ()) -> DataFrame:
    """An expression as a column named after its option."""
    from pyspark.errors import AnalysisException, ParseException

    given = f"--{option} {text!r}"
    check_word(text, option, columns, paths)
    # twice, so that Spark refuses them instead of calling the function
    words = {word for word in _WORD.findall(text) if word.lower() in OF_THE_RUN} - {*source.columns}
    twice = [f"1 as {word}" for word in sorted(words)] * 2
    try:
        found = (source.selectExpr("*", *twice) if twice else source).select(as_column(text, columns).alias(option))
        found.schema  # noqa: B018 - Spark Connect analyses no sooner
    except (AnalysisException, ParseException) as error:
        unknown = re.search(r"with name `?(.+?)`? cannot be resolved|No such struct field `(.+?)` in", str(error))
        if twice and not unknown:
            unknown = re.search(r"Reference `(.+?)`() is ambiguous", str(error))
        if unknown:
            name = text if unknown.group(2) and _PATH.fullmatch(text) else (unknown.group(1) or unknown.group(2))
            name = name.replace("`", "")
            raise UsageError(f"{given}: column {name!r} does not exist{_near(name, columns, paths)}") from error
        with spark_failures(given):
            raise
        raise
    if option == "key":
        code = _TEXT.sub(r"\1", text)
        if run := _CALL.search(code):
            raise UsageError(f"{given}: {run[0]} depends on who runs this, when or where; make the key of columns")
        if not Mapping(code).wanted(columns):
            raise UsageError(f"{given} names no column; make the key of columns: {listed(columns)}")
    return found


def check_word(text: str, option: str, columns: Sequence[str], paths: Sequence[str]) -> None:
    """Check that a bare word is a column of the source."""
    bare = _WORD.fullmatch(text) and text not in (*columns, PATH)
    if bare and not (text.isdigit() and option in (*AMOUNTS, "stream")):
        raise UsageError(f"--{option} {text!r}: column {text!r} does not exist{_near(text, columns, paths)}")


def _near(name: str, columns: Sequence[str], paths: Sequence[str]) -> str:
    """End of a message about an unknown column: the fields of its name, else columns and fields like it."""
    same = [path for path in paths if path.endswith(f".{name}")] or [path for path in paths if name in path.split(".")]
    return f"; did you mean {' or '.join(map(repr, same[:3]))}?" if same else did_you_mean(name, [*columns, *paths])


def as_column(text: str, columns: Sequence[str]) -> Column:
    """The column of this name, else a Spark SQL expression."""
    if text in columns or text == PATH:
        return quoted(text)
    return F.expr(text)


def key_parts(text: str, columns: Sequence[str]) -> list[str]:
    """Columns or expressions of a key, separated by outer commas."""
    if text in columns:
        return [text]
    parts, depth, start = [], 0, 0
    for found in _SEPARATOR.finditer(text):
        mark = found[0]
        depth += (mark in "([") - (mark in ")]")
        if mark == "," and depth == 0:
            parts.append(text[start : found.start()].strip())
            start = found.end()
    parts.append(text[start:].strip())
    if "" in parts and len(parts) > 1:
        raise UsageError(f"--key must be columns or expressions separated by commas (got {text!r})")
    return [_unquoted(part, columns) for part in parts] if len(parts) > 1 else [text]


def _unquoted(part: str, columns: Sequence[str]) -> str:
    """The name of a column in backticks; other parts as they are."""
    name = part[1:-1].replace("``", "`") if len(part) > 1 and part[0] == part[-1] == "`" else part
    return name if name in columns else part


def key_text(parts: Sequence[str]) -> str:
    """Columns or expressions of a key as one text."""
    return ", ".join("`" + part.replace("`", "``") + "`" if len(key_parts(part, ())) > 1 else part for part in parts)


def key_type_of_rows(source: DataFrame, mapping: Mapping, columns: Sequence[str], paths: Sequence[str] = ()) -> KeyType:
    """The type of the key in a source."""
    types = []
    for text in key_parts(mapping.key, columns):
        kind = selected(source, text, "key", columns, paths).schema["key"].dataType.simpleString()
        types.append(_key_type(kind))
    return types[0] if len(types) == 1 else KeyType(several(types))


def _stored(key_type: KeyType) -> Column:
    names = (f"_raw_key_{at}" for at in range(max(1, len(key_type.columns))))
    return F.expr(stored_key_sql(key_type).format(*names))


def _key_type(kind: str) -> KeyType:
    if kind in ("double", "float"):
        raise UsageError(
            f"--key has type {kind}, in which equal numbers may be written differently: use bigint(...), which makes"
            " NaN null and rejects fractions, or string(...)"
        )
    if kind.startswith(NESTED):
        raise UsageError(
            f"--key has type {kind}; a key must be a single value: name a field, or use several, as in --key a,b"
        )
    found = spark_key_type(kind)
    if found is None:
        raise UsageError(f"--key has type {kind}, whose placement by engines is not known: use string(...)")
    return found


def _amount(name: str, kind: str) -> Column:
    """A quantity as the trace stores it; a fraction of a byte is cut off."""
    number = F.col(f"_{name}")
    return number if kind == "double" else F.coalesce(F.col(f"_raw_{name}").cast(kind), number.cast(kind))


def _amount_refused(name: str, kind: str, given: str) -> Column:
    """Why a row's quantity is rejected: it must be missing, or finite and not negative.

    Args:
        kind: Its type in the trace.
        given: Type of the expression.
    """
    number, raw = F.col(f"_{name}"), F.col(f"_raw_{name}")
    infinite = F.isnan(number) | (F.abs(number) == float("inf"))
    # Spark reads "5d" and "0x1p3" as Java does
    coded = raw.rlike("[A-DF-Za-df-z]") if given == "string" else F.lit(False)
    bad = (
        F.when(number.isNull() & ~_missing(f"_raw_{name}"), f"{name} is not a number")
        .when(infinite, f"{name} is not finite")
        .when(coded, f"{name} is not a number")
        .when(number < 0, f"{name} is negative")
    )
    if kind == "double" or (kind == "bigint" and given in WHOLE):
        return bad
    # the largest whole number does not fit once it is a double
    fits = raw.cast(kind).isNotNull() if given == "string" else F.lit(False)
    return bad.when((number >= float(_BEYOND[kind])) & ~fits, f"{name} is too large")


def _missing(name: str) -> Column:
    return F.col(name).isNull() | (F.trim(F.col(name).cast("string")) == "")


_TEXTS = (
    *("key", "time", "cost", "cost-unit", "bytes", "partition", "time-format", "time-zone"),
    *("pattern", "delimiter", "quote"),
)
_LISTS = ("keep", "columns", "property")
OF_STREAM = (*_TEXTS, *_LISTS, "format", "header")
"""Fields that a stream may override."""

_TOP = (*OF_STREAM, "stream", "dedup", "shift-clock", "max-lateness", "hash-keys", "sample-keys", "max-rejects")
_OWN = (*OF_STREAM, "name", "paths", "where", "shift-clock")


@dataclass(frozen=True, slots=True)
class StreamFields:
    """One stream of a mapping file."""

    name: str  # value of `stream` in its rows
    paths: tuple[str, ...]  # globs of its files; empty for all files
    where: str  # a Spark SQL expression that holds for its rows; empty for all rows
    shift_clock: str  # how far its clock is shifted, with a sign to shift it back; empty to keep it
    options: Fields[str, Any]  # other options, by name


@dataclass(frozen=True, slots=True)
class MappingFile:
    """Content of a mapping file."""

    options: Fields[str, Any]  # values by option
    streams: tuple[StreamFields, ...]  # the streams; a row belongs to the first that it matches


def read_mapping_file(path: Path) -> MappingFile:
    """Read a mapping file."""
    with readable(path):
        if not path.exists():
            raise BadInput(f"{path} does not exist; --mapping takes a TOML file")
        text = path.read_bytes()
    try:
        document = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not valid TOML: {error}") from error
    top = {name: value for name, value in document.items() if name != "stream" or isinstance(value, str)}
    options = _options(str(path), top, _TOP)
    given = [] if isinstance(document.get("stream"), str) else elements(document, "stream")
    streams = tuple(_stream(str(path), fields) for fields in given)
    names = [stream.name for stream in streams]
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadInput(
            f"{path}: two streams are named {twice[0]!r}; names must differ, but a stream may have several paths"
        )
    return MappingFile(options, streams)


def _stream(file: str, fields: Fields[str, Any]) -> StreamFields:
    where = f"{file}: {called('stream', fields)}"
    only(where, fields, _OWN)
    element = Element(where, fields, _OWN)
    name, shift = element.text("name"), element.text_or_none("shift-clock") or ""
    if shift and re.search(r"[*?]", name):
        raise BadInput(f"{where}: the name of a stream with shift-clock must not contain * or ?")
    own = {field: value for field, value in fields.items() if field in OF_STREAM}
    paths = [fields["paths"]] if isinstance(fields.get("paths"), str) else fields.get("paths", [])
    return StreamFields(
        name, _texts(where, "paths", paths), element.text_or_none("where") or "", shift, _options(where, own, OF_STREAM)
    )


def _options(where: str, fields: Fields[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    element = Element(where, fields, known)
    options: dict[str, Any] = {}
    for name in fields:
        if name in (*_LISTS, "shift-clock"):
            given = fields[name]
            options[name] = _texts(where, name, [given] if isinstance(given, str) and name != "columns" else given)
        elif name == "key" and not isinstance(fields[name], str):
            options[name] = key_text(_texts(where, name, fields[name]))
        elif name in ("header", "hash-keys"):
            options[name] = element.truth(name, False)
        elif name == "format":
            options[name] = element.choice(name, FormatName)
        elif name == "max-rejects" and isinstance(fields[name], int):
            options[name] = str(element.whole(name, 0))
        else:
            options[name] = element.text(name)
    return options


def _texts(where: str, name: str, given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
        wanted = "a text or a list of texts" if name == "key" else "a list of strings"
        raise BadInput(f"{where}: {name} must be {wanted} (got {given!r})")
    return tuple(given)
