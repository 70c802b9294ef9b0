"""Several streams in one trace, each read and mapped separately."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from adapt.core.errors import BadInput, EnvironmentFailure, UsageError
from adapt.core.stream import KeyType
from adapt.traces.ingest.cleaning import UNIQUE
from adapt.traces.ingest.mapping import (
    ALL_COLUMNS,
    RESERVED,
    Mapping,
    as_column,
    check_word,
    chosen_time,
    key_parts,
    key_type_of_rows,
    mapped,
    may_keep,
    selected,
    settled_format,
)
from adapt.traces.ingest.sieve import Sieve, first_times, plain_format, read_for, sieve_of, value_of
from adapt.traces.ingest.sifting import sifting
from adapt.traces.ingest.times import (
    MOST_LOOKED_AT,
    USUAL_NAMES,
    TimeFormat,
    local_times,
    time_column,
    with_years,
)
from adapt.traces.sources.reading.blocks import PATH, PLACE
from adapt.traces.sources.reading.files import SourceFile, head_of
from adapt.traces.sources.reading.records import InDoubt
from adapt.traces.sources.reading.table_files import quoted
from adapt.traces.sources.sniff import ReadOptions, Recognized, recognize
from adapt.traces.sources.source import Sift, Source
from adapt.traces.spark.connect import is_remote
from adapt.traces.spark.lazy import Column, DataFrame, F, SparkSession
from adapt.traces.spark.progress import Progress
from adapt.traces.spark.session import set_zone, spark_failures

ZONE = "spark.sql.session.timeZone"

_HEAD_BYTES, _HEAD_LINES = 1 << 14, 20
"""Where the names of columns are looked for."""

SAMPLE_ROWS, LOOKED_AT = 1000, 20

NO_STREAM = "matches no stream of the mapping"

_OF = "_of"
_DATED = "_dated"


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of a source."""

    name: str  # value of `stream` in its rows; empty for a single stream, whose mapping gives it
    mapping: Mapping  # its expressions
    reading: ReadOptions = field(default_factory=ReadOptions)  # format of its files
    time_zone: str = "UTC"  # zone of its times without one
    paths: tuple[str, ...] = ()  # globs of its files, by path or label; empty for all
    where: str = ""  # an expression that holds for its rows; empty for all rows of its files

    def __post_init__(self) -> None:
        _ = self.mapping.us_per_cost

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything that may name columns of its files."""
        return (*self.mapping.expressions().values(), *self.mapping.keep, self.where)

    def has(self, file: SourceFile) -> bool:
        """Whether a file may hold rows of this stream."""
        return not self.paths or any(
            fnmatchcase(name, glob)
            for glob in self.paths
            for name in (file.label, str(file.path), Path(file.label).name)
        )


@dataclass(frozen=True, slots=True)
class Settled:
    """A stream with its guesses filled in."""

    stream: Stream  # the stream, with its time column
    form: TimeFormat

    def as_data(self) -> dict[str, Any]:
        """The stream as recorded in the manifest."""
        return {**asdict(self.stream), "time_format": self.form.name}


@dataclass(frozen=True, slots=True)
class Group:
    """Files with rows of the same streams and one format."""

    files: tuple[SourceFile, ...]  # the files, in the order that breaks ties
    places: tuple[int, ...]  # position of each among all files
    streams: tuple[Stream, ...]  # streams that they may hold; a row belongs to the first that it matches
    recognized: Recognized  # their format


class Several:
    """The files of all streams as one table of rows.

    Attributes:
        files: The files, in the order that breaks ties.
        inputs: As in `Source`, of all groups.
        settled: The streams as they were read.
        guesses: Guessed settings, in words.
        rows: Number of rows, rejected ones included; known after `mapped`.
        null_text: Text of null keys; empty if keys have their own null.
        local_times: What local times occur twice or not at all, by stream; see `LocalTimes.as_data`.
        key_type: Type of the keys; known after `mapped`.
        left: Number of those in the table that `mapped` returned.
    """

    def __init__(
        self,
        spark: SparkSession,
        groups: Sequence[Group],
        staging: Path,
        progress: Progress,
        runs: Path | None = None,
        most_held: int = 0,
        *,
        ordered: bool = True,
        here: bool = False,
    ) -> None:
        """Survey the files.

        Args:
            staging: An empty folder.
            runs: Where plain rows are put as sorted runs, rather than into the table; None for the table.
            most_held: As in `Source`, for each group.
            ordered: Whether lines are in order of arrival.
            here: As in `Source`.
        """
        placed = {place: file for group in groups for place, file in zip(group.places, group.files, strict=True)}
        self.files = tuple(placed[place] for place in sorted(placed))
        self.settled: tuple[Settled, ...] = ()
        self.rows = self.left = 0
        self.null_text = ""
        self.local_times: list[dict[str, Any]] = []
        self.key_type: KeyType | None = None
        self._ordered = ordered
        self._runs = runs
        self._spark = spark
        self._parts: list[tuple[Source, tuple[int, ...], tuple[Stream, ...]]] = []
        for number, group in enumerate(groups):
            found = group.recognized
            own = staging / str(number)
            source = Source(spark, group.files, found.form, own, progress, found.by_file, most_held, here=here)
            self._parts.append((source, group.places, group.streams))
        inputs = [one for source, _, _ in self._parts for one in source.inputs]
        if len(groups) > 1:  # members of one archive may be of several groups
            inputs = list({tuple(one.items()): one for one in inputs}.values())
        self.inputs = inputs
        guesses = [guess for group in groups for guess in group.recognized.guesses]
        self.guesses = tuple(dict.fromkeys(guesses))

    def plain(self, folder: Path) -> tuple[Sieve, pa.Table] | None:
        """Put all good rows into runs without Spark.

        Gives the sieve, and the refused rows.

        None if a row or an expression needs Spark; nothing is kept of the attempt then.
        """
        (source, _, own), *others = self._parts
        if others or len(own) > 1 or own[0].name or own[0].where or not source.typed:
            return None
        before = self.guesses, self.null_text
        form: TimeFormat | None = None
        sieve: Sieve | None = None
        found: tuple[int, pa.Table] | None = None
        with suppress(InDoubt), _header_hinted(source, own):
            stream = self._timed(source, own[0], lambda some: first_times(source.first_rows(SAMPLE_ROWS, some)))
            mapping = stream.mapping
            if not mapping.time:
                form = TimeFormat("")
            elif not mapping.dedup and may_keep([*mapping.kept(source.columns)]):
                check_word(mapping.time, "time", source.columns, source.paths)
                some = source.first_rows(SAMPLE_ROWS, read_for(mapping.time, source.typed)).to_batches()
                times = pa.concat_arrays([value_of(mapping.time, rows) for rows in some] or [pa.array([], pa.string())])
                form = plain_format(mapping, source.columns, times)
            if form is not None and not mapping.dedup and may_keep([*mapping.kept(source.columns)]):
                _check_names(mapping, source)
                sieve = sieve_of(mapping, form, stream.time_zone, source.typed)
            if sieve is not None and sieve.fits(source.first_rows(SAMPLE_ROWS, sieve.read)):
                found = source.sifted(sieve.read, sifting(sieve, folder))
        if form is None or sieve is None or found is None:
            self.guesses, self.null_text = before
            return None
        if form.guessed:
            self.guesses = (*self.guesses, f"time format {form.name}{form.makes}")
        self.settled, self.key_type, self.rows = (Settled(stream, form),), sieve.key_type, found[0]
        return sieve, found[1]

    def mapped(self) -> DataFrame:
        """All rows, with the columns of the trace.

        The reader's own columns stay; `_reason` is set in rejected rows.
        """
        parts: list[tuple[str, DataFrame]] = []
        for source, places, own in self._parts:
            with _header_hinted(source, own):
                parts += self._of(source, places, own)
        self.rows = sum(source.rows for source, _, _ in self._parts)
        self.left = sum(source.left for source, _, _ in self._parts)
        _check_kinds(parts)
        rows = parts[0][1]
        with spark_failures("the expressions"):
            for _, part in parts[1:]:
                rows = rows.unionByName(part, allowMissingColumns=True)
            ours = [name for name in RESERVED if name in rows.columns]
            kept = [name for name in rows.columns if name not in (*PLACE, *ours, UNIQUE)]
            rows = rows.select(*PLACE, *map(quoted, [*ours, *kept, *[name for name in rows.columns if name == UNIQUE]]))
            if any(each.stream.mapping.dedup == ALL_COLUMNS for each in self.settled):
                rows = rows.withColumn(UNIQUE, F.struct(*map(quoted, [*ours, *kept])))
        return rows

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the files of the first streams."""
        return self._parts[0][0].columns

    def texts(self, lines: dict[int, list[int]] | None) -> Any:
        """Text of rows by position among all files; see `Source.texts`."""
        found: list[Any] = []
        for source, places, _ in self._parts:
            asked = None if lines is None else {at: lines[place] for at, place in enumerate(places) if place in lines}
            if asked != {}:
                texts = source.texts(asked)
                if isinstance(texts, pa.Table):
                    files = pa.chunked_array([pa.array(places, pa.int32())]).take(texts["_file"])
                    found.append(texts.set_column(0, "_file", files))
                else:
                    found.append(_renumbered(texts, places))
        if isinstance(found[0], pa.Table):
            return pa.concat_tables(found)
        rows = found[0]
        for more in found[1:]:
            rows = rows.unionByName(more)
        return rows

    def _of(self, source: Source, places: Sequence[int], own: Sequence[Stream]) -> list[tuple[str, DataFrame]]:
        """Rows of one group of files: a table per stream, and one of the rows that match no stream."""
        timed = [self._timed(source, stream) for stream in own]
        wheres = [stream.where for stream in own if stream.where]
        wanted = {name for stream in timed for name in stream.mapping.wanted(source.columns)}
        wanted |= {name for text in wheres for name in Mapping("", time=text).wanted(source.columns)}
        read = [name for name in (*source.columns, PATH) if name in wanted]
        many = len(self._parts) > 1 or len(own) > 1
        if not wheres:  # a single stream, then
            stream = timed[0]
            with _errors_of(stream, many=many):
                form = self._form(stream, source.sample(SAMPLE_ROWS, stream.mapping.wanted(source.columns)), source)
            sift = None if many or stream.name else self._sift(stream, form, source)
            rows = _renumbered(source.frame(read, sift), places)
            with _errors_of(stream, many=many):
                return [(stream.name, self._one(rows, stream, form, source))]
        frame = _renumbered(source.frame(read), places)
        numbered = frame.withColumn(_OF, _whose(frame, own, source))
        found = []
        for at, stream in enumerate(timed):
            rows = numbered.where(F.col(_OF) == at).drop(_OF)
            with _errors_of(stream, many=many):
                form = self._form(stream, rows.where("_reason is null").limit(SAMPLE_ROWS), source)
                found.append((stream.name, self._one(rows, stream, form, source)))
        if all(stream.where for stream in own):
            nobodys = numbered.where(f"{_OF} is null").select(*PLACE).withColumn("_reason", F.lit(NO_STREAM))
            found.append(("", nobodys))
        return found

    def _timed(
        self, source: Source, stream: Stream, first: Callable[[Sequence[str]], str | None] | None = None
    ) -> Stream:
        """The stream with its time column, its cost unit, and the time format and partition that the source knows.

        Args:
            first: The first of some columns that has times. Default: as Spark finds it.
        """
        mapping = stream.mapping
        for key in () if stream.where else key_parts(mapping.key, source.columns):
            lacking = source.without(key)
            if lacking is None:
                continue
            raise BadInput(
                f"{lacking.label} has no column {key!r}, the key of the other files; make --key an expression"
                " over the columns of both, such as coalesce(a, b), or give the file its own [[stream]] in a --mapping"
            )
        if not mapping.time:
            some = source.readable[:MOST_LOOKED_AT]
            first = first or (lambda some: time_column(source.sample(SAMPLE_ROWS, some), some))
            with spark_failures("--time"):
                known = [name for name in source.times if name in source.readable]
                chosen = _day_and_clock(source) or (known or [chosen_time(partial(first, some), source.readable)])[0]
            unread = [name for name in source.columns if name.lower() in USUAL_NAMES and name not in source.readable]
            if unread and not chosen:
                source.first_rows(1, unread)  # refused, with the reason
            mapping = replace(mapping, time=chosen)
            found = f"from {mapping.time}" if mapping.time else "in no column (name one with --time)"
            self.guesses = (*self.guesses, f"time{_named(stream)} {found}")
        if mapping.cost and not mapping.cost_unit:
            mapping = replace(mapping, cost_unit=mapping.unit_of_cost)
            self.guesses = (*self.guesses, f"{mapping.cost}{_named(stream)} in {mapping.cost_unit}")
        self.null_text = self.null_text or source.null_texts.get(mapping.key, "")
        if not mapping.partition:
            mapping = replace(mapping, partition=source.partitions.get(mapping.key, ""))
        if not mapping.time_format and mapping.time in source.times:
            mapping = replace(mapping, time_format=source.times[mapping.time])
        return replace(stream, mapping=mapping)

    def _form(self, stream: Stream, sample: DataFrame, source: Source) -> TimeFormat:
        """Time format of a stream; without a name if it has no times."""
        if not stream.mapping.time:
            self.settled = (*self.settled, Settled(stream, TimeFormat("")))
            return self.settled[-1].form
        with self._in_zone(stream.time_zone):
            form = settled_format(stream.mapping, sample, source.columns, source.paths)
        if form.guessed:
            self.guesses = (*self.guesses, f"time format{_named(stream)} {form.name}{form.makes}")
        self.settled = (*self.settled, Settled(stream, form))
        return form

    def _sift(self, stream: Stream, form: TimeFormat, source: Source) -> Sift | None:
        """What takes the plain rows of a stream out of its table, if most of the first are plain."""
        texts = source.texts_by_name
        sieve = sieve_of(stream.mapping, form, stream.time_zone, texts) if texts else None
        if sieve is None or self._runs is None or not {*sieve.kinds} <= {*texts.names}:
            return None
        if not sieve.fits(source.first_rows(SAMPLE_ROWS, sieve.read)):
            return None
        return sifting(sieve, self._runs)

    def _one(self, rows: DataFrame, stream: Stream, form: TimeFormat, source: Source) -> DataFrame:
        mapping = stream.mapping
        if stream.name:
            kept = tuple(text for text in mapping.keep if "=" in text or text in source.columns)
            dedup = "" if mapping.dedup == ALL_COLUMNS else mapping.dedup
            mapping = replace(mapping, stream=_literal(stream.name), keep=kept, dedup=dedup)
        columns = source.columns
        if not mapping.time:
            return mapped(rows, mapping, form, columns, source.paths, None, self._keyed(rows, mapping, columns, source))
        with self._in_zone(stream.time_zone):
            times, time = selected(rows, mapping.time, "time", columns, source.paths), as_column(mapping.time, columns)
            kind = times.schema["time"].dataType.simpleString()
            with spark_failures("reading the source"):
                dated, form = with_years(rows, time, form, ordered=self._ordered)
                if dated is not time:
                    rows, columns = rows.withColumn(_DATED, dated), (*columns, _DATED)
                    mapping, time, kind = replace(mapping, time=_DATED), F.col(_DATED), "string"
                local = local_times(rows, time, kind, form, stream.time_zone, ordered=self._ordered)
            self.local_times += [] if local is None else [local.as_data()]
            key_type = self._keyed(rows, mapping, columns, source)
            return mapped(rows, mapping, form, columns, source.paths, local, key_type)

    def _keyed(self, rows: DataFrame, mapping: Mapping, columns: Sequence[str], source: Source) -> KeyType:
        """Type of the keys of a stream."""
        _check_no_nanos(mapping.key, source)
        key_type = key_type_of_rows(rows, mapping, columns, source.paths)
        self.key_type = key_type if self.key_type is None else _widest(self.key_type, key_type)
        return key_type

    @property
    def timed(self) -> bool:
        """Whether the rows have times."""
        lacking = [each.stream for each in self.settled if not each.stream.mapping.time]
        if lacking and len(lacking) < len(self.settled):
            raise UsageError(f"stream {lacking[0].name!r} has no times, but others do; give its time, or omit it")
        return not lacking

    @contextmanager
    def _in_zone(self, zone: str) -> Iterator[None]:
        """Set the zone of times without one; Spark uses that at the time of analysis, not of execution."""
        before = self._spark.conf.get(ZONE)
        if zone == before:
            yield
            return
        if is_remote():  # which analyses when it executes
            raise EnvironmentFailure(
                f"Spark Connect reads all streams in one time zone, not in {before} and {zone}; use --master"
            )
        try:
            set_zone(self._spark, zone)
            yield
        finally:
            self._spark.conf.set(ZONE, str(before))


@contextmanager
def _header_hinted(source: Source, streams: Sequence[Stream]) -> Iterator[None]:
    """Say of a wrong column that one of the first lines names it, if that was not taken for a header."""
    try:
        yield
    except UsageError as error:
        if source.delimited is None or any(stream.reading.columns for stream in streams):
            raise
        guessed = any(stream.reading.header is None for stream in streams)
        texts = [text for stream in streams for text in stream.texts]
        words = {*texts, *(word for text in texts for word in re.findall(r"\w+", text))} - {*source.columns, ""}
        head = head_of(source.files[0], _HEAD_BYTES).decode(errors="replace").splitlines()[:_HEAD_LINES]
        lines = [[cell.strip(" '\"") for cell in re.split(r"[,;\t|]", line)] for line in head]
        for number, cells in enumerate(lines, 1):
            named = next((cell for cell in cells if cell in words), "")
            if named and number == 1 and source.delimited.header is None and guessed:
                raise UsageError(
                    f"{error}; the first line, which was taken for data, has {named!r}: read it as the names of columns"
                    " by `adapt ingest --header`"
                ) from error
            if named and (head[0].startswith(("#", "sep=")) or len(cells) != len(lines[0])):
                raise UsageError(
                    f"{error}; line {number} has {named!r}: if it names the columns, leave out the lines before it by"
                    f" `tail -n +{number} FILE | adapt ingest -`"
                ) from error
        raise


def only_stream(mapping: Mapping, reading: ReadOptions, time_zone: str) -> tuple[Stream, ...]:
    """All files as one unnamed stream."""
    return (Stream("", mapping, reading, time_zone),)


def grouped(
    files: Sequence[SourceFile], streams: Sequence[Stream], recognized: Recognized | None = None
) -> list[Group]:
    """Files grouped by their streams.

    Args:
        recognized: Their format, where it is known.
    """
    groups = []
    for whose, places in _shared_out(files, streams).items():
        own = tuple(streams[at] for at in whose)
        some = tuple(files[at] for at in places)
        groups.append(Group(some, places, own, recognized or recognize(some, own[0].reading)))
    return groups


def _shared_out(files: Sequence[SourceFile], streams: Sequence[Stream]) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Positions of files by the streams that they may hold.

    A stream without `where` takes all rows of its files, so later streams have none of them.
    """
    groups: dict[tuple[int, ...], tuple[int, ...]] = {}
    for place, file in enumerate(files):
        whose: tuple[int, ...] = ()
        for at, stream in enumerate(streams):
            if stream.has(file):
                whose = (*whose, at)
                if not stream.where:
                    break
        if not whose:
            raise BadInput(f"{file.label} matches no [[stream]] of the mapping; add a stream whose paths match it")
        if other := next((at for at in whose if streams[at].reading != streams[whose[0]].reading), None):
            raise BadInput(
                f"{file.label} has two formats, in the streams {streams[whose[0]].name!r} and"
                f" {streams[other].name!r}; give both streams one format, or different paths"
            )
        groups[whose] = (*groups.get(whose, ()), place)
    if idle := [stream.name for at, stream in enumerate(streams) if not any(at in whose for whose in groups)]:
        raise BadInput(f"stream {idle[0]!r} of the mapping has no file: earlier streams take all that its paths match")
    return groups


def _whose(frame: DataFrame, own: Sequence[Stream], source: Source) -> Column:
    """Number of a row's stream, or null; an unreadable row belongs to the first."""
    columns, choice = source.columns, F.when(F.col("_reason").isNotNull(), F.lit(0))
    for at, stream in enumerate(own):
        if stream.where:
            with _errors_of(stream, many=True):
                kind = selected(frame, stream.where, "where", columns, source.paths).schema[0].dataType.simpleString()
                if kind != "boolean":
                    raise UsageError(f"where {stream.where!r} has type {kind}; it must be boolean")
            choice = choice.when(as_column(stream.where, columns), F.lit(at))
        else:
            choice = choice.otherwise(F.lit(at))
    return choice


def _renumbered(rows: DataFrame, places: Sequence[int]) -> DataFrame:
    """Rows of some of the files, with `_file` as the position among all."""
    if list(places) == list(range(len(places))):
        return rows
    return rows.withColumn("_file", F.element_at(F.array(*map(F.lit, places)), F.col("_file") + 1))


def _check_kinds(parts: Sequence[tuple[str, DataFrame]]) -> None:
    seen: dict[str, tuple[str, str]] = {}
    for name, part in parts:
        for column, kind in part.dtypes:
            if column in (*PLACE, UNIQUE):
                continue
            first, known = seen.setdefault(column, (name, kind))
            if known != kind:
                raise UsageError(
                    f"{column} is {known} in stream {first!r} and {kind} in stream {name!r}; convert both to one type,"
                    " e.g. with string(...)"
                )


def _check_names(mapping: Mapping, source: Source) -> None:
    """Check columns in the order of Spark's checks, up to the first that it may refuse for another reason."""
    for option, text in mapping.expressions().items():
        for part in key_parts(text, source.columns) if option == "key" else (text,):
            check_word(part, option, source.columns, source.paths)
            known = part in source.typed.names and source.typed.field(part).type in (pa.string(), pa.int64())
            if not known and option != "time":
                return
    for text in mapping.kept(source.columns).values():
        check_word(text, "keep", source.columns, source.paths)


def _check_no_nanos(key: str, source: Source) -> None:
    """Refuse a key of nanoseconds, of which different ones would become one key."""
    for part in filter(source.is_cut, (each.strip("`") for each in key_parts(key, source.columns))):
        raise UsageError(
            f"--key {part} has nanoseconds, which a trace cuts to microseconds, so that different keys may become one;"
            " write it in microseconds, as text, or as whole numbers"
        )


def _widest(one: KeyType, other: KeyType) -> KeyType:
    """The type of keys of two streams: the wider of two integers."""
    if one is other:
        return one
    if one.storage is not KeyType.INT64 or other.storage is not KeyType.INT64:
        raise UsageError(
            f"the key is {one} in one stream and {other} in another; convert both to one type, e.g. with string(...)"
        )
    return max(one, other, key=lambda each: int(each.value.removeprefix("int")))


@contextmanager
def _errors_of(stream: Stream, *, many: bool) -> Iterator[None]:
    """Names the stream in an error, if there are several."""
    try:
        yield
    except (UsageError, BadInput) as error:
        if not many or not stream.name:
            raise
        raise type(error)(f"stream {stream.name!r}: {error}") from error


def _day_and_clock(source: Source) -> str:
    """The time of day after its date, where they are two columns of text; else empty."""
    named = {name.lower(): name for name in source.columns}
    if not {"date", "time"} <= named.keys() or source.delimited is None:
        return ""
    clock = source.first_rows(LOOKED_AT, [named["time"]])[named["time"]].to_pylist()
    if not clock or not all(re.fullmatch(r"\s*\d{1,2}:\d\d(:\d\d(\.\d+)?)?\s*", text or "") for text in clock):
        return ""
    return f"concat_ws(' ', {named['date']}, {named['time']})"


def _literal(text: str) -> str:
    """A string literal of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _named(stream: Stream) -> str:
    return f" of {stream.name}" if stream.name else ""
