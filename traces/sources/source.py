"""Source files as one Spark table, with the place of each row."""

import json
import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import astuple, replace
from functools import cached_property
from hashlib import sha256
from itertools import chain, groupby
from math import inf
from pathlib import Path
from typing import Any, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapt.core.errors import BadInput
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.locations.location import is_stored
from adapt.traces.read_errors import readable
from adapt.traces.sources.formats.delimited import Delimited
from adapt.traces.sources.formats.json_lines import JsonFields, JsonLines, fields_of, json_schema, with_json_fields
from adapt.traces.sources.formats.text import Pattern
from adapt.traces.sources.reading.blocks import (
    PATH,
    PLACE,
    Block,
    BlockFormat,
    Task,
    Walk,
    again,
    blocks_of_walks,
    cut,
    has_blocks,
    ranges,
    read_blocks,
    reader_schema,
    walk,
    warn_of_packed,
)
from adapt.traces.sources.reading.files import SourceFile
from adapt.traces.sources.reading.records import WHOLE_LINE, InDoubt, RecordFormat, field_paths
from adapt.traces.sources.reading.table_files import (
    StoredTables,
    quoted,
)
from adapt.traces.spark.lazy import DataFrame, SparkSession, T
from adapt.traces.spark.progress import Progress, watched
from adapt.traces.spark.runner import attempt_id, grouped, in_tasks
from adapt.traces.spark.session import literal_path, spark_failures
from adapt.traces.store import disk
from adapt.traces.store.manifest import file_sha256, sha256_of

OWN = (*PLACE, PATH)
"""Columns of the reader, which hide source columns of the same name."""

MOST_REFUSED = 1 << 20
"""Most refused rows that this process holds."""

Sift: TypeAlias = Callable[[int, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Takes rows out of a task's batches, and yields the others; called in a Spark task, with its number."""


class Source:
    """The source files, surveyed once: hashed, cut into blocks, their columns known.

    They are parsed once, by our readers in Spark tasks, and staged as Parquet for Spark, or, where they are
    small, held as one Arrow table.

    Attributes:
        files: The files, in the order that breaks ties.
        inputs: Name, bytes and sha256 of each file, or the store's version of an object, for the manifest.
        columns: Columns for expressions, without `_path` and the other names in `OWN`.
        paths: Fields within columns, such as `event.user.id`.
        times: Time formats of columns, where known.
        null_texts: Text that is read as null, by column.
        partitions: Column of the partition that a row lies in, by the column of its key, where known.
        delimited: Its form, if it is delimited text.
        rows: Number of rows, rejected ones included; known after `frame`.
        left: Number of those in the table that `frame` returned last.
    """

    def __init__(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        form: RecordFormat | BlockFormat,
        staging: Path,
        progress: Progress,
        by_file: Mapping[int, RecordFormat] | None = None,
        most_held: int = 0,
        *,
        here: bool = False,
    ) -> None:
        """Survey the files.

        Args:
            form: Their format.
            staging: An empty folder for parsed rows.
            by_file: Formats of files whose columns differ from those of the first, by position.
            most_held: Most bytes of parsed rows that this process reads and holds, instead of Spark tasks.
            here: Whether this process surveys the files, so that Spark starts only where it is needed.
        """
        self.files = tuple(files)
        self.rows = self.left = 0
        self._spark = spark
        self._form = form
        self.times = dict(form.times)
        self.null_texts = form.missing if isinstance(form, Pattern) else {}
        self.partitions = dict(form.partitions)
        self.delimited = form if isinstance(form, Delimited) else None
        self._forms = [(by_file or {}).get(at, form) for at in range(len(files))]
        self._staging = staging
        self._most_held = most_held
        self._here = here or most_held > 0
        self._progress = progress
        warn_of_packed(files)
        if self._here:
            self._blocks, self.inputs = self._survey()
        else:
            with spark_failures("reading the source"), watched(spark, "surveying the files", progress):
                self._blocks, self.inputs = self._survey()
        self._is_json = isinstance(form, JsonLines)
        self._fields = self._inferred() if here and self._is_json else None
        self.columns = self._columns()
        self.paths = () if isinstance(form, RecordFormat) and not self._is_json else field_paths(self._schema())

    def _inferred(self) -> JsonFields | None:
        """The fields of JSON, where this process reads them as Spark does."""
        found = JsonFields()
        forms, tasks = self._as_fields(found), self._tasks(range(len(self._blocks)))
        try:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(lambda task: list(map(len, _read([self._blocks[at] for at in task], forms, []))), tasks))
            return JsonFields(fields_of(found.met))
        except InDoubt:
            return None

    def _as_fields(self, fields: JsonFields) -> list[JsonFields]:
        """These fields in the layout of each file; files of one layout share a format."""
        layouts = [cast(JsonLines, form).layout for form in self._forms]
        own = {layout: replace(fields, layout=layout) for layout in layouts}
        return [own[layout] for layout in layouts]

    @cached_property
    def _lines(self) -> DataFrame:
        """JSON objects as text."""
        return self._staged([WHOLE_LINE])

    @cached_property
    def _ddl(self) -> str:
        """Schema of JSON in Spark."""
        with spark_failures("reading the source"), watched(self._spark, "finding the fields", self._progress):
            ddl = json_schema(self._spark, self._lines)
        if not ddl:
            raise BadInput(
                f"{self.files[0].label}: no line is a JSON object with a field; write one object per line, e.g."
                " with `jq -c .`"
            )
        return ddl

    def is_cut(self, name: str) -> bool:
        """Whether a column of Parquet has times that are cut to microseconds."""
        if not isinstance(self._form, StoredTables) or self._form.form.name != "Parquet":
            return False
        for file in self.files:
            schema = self._form.form.schema_of(file)
            at = schema.get_field_index(name)
            if at < 0 or not pa.types.is_timestamp(schema.types[at]) or schema.types[at].unit != "ns":
                continue
            with file.opened() as opened:
                for rows in pq.ParquetFile(opened).iter_batches(columns=[name]):
                    if (rows.column(0).cast(pa.int64()).drop_null().to_numpy() % 1000).any():
                        return True
        return False

    def without(self, name: str) -> SourceFile | None:
        """The first file without a column that other files have.

        None for JSON, where rows name their fields.
        """
        if name not in self.columns or self._is_json:
            return None
        form = self._form
        if isinstance(form, RecordFormat):
            lacks = (file for file, each in zip(self.files, self._forms, strict=True) if name not in each.columns)
        else:
            lacks = (file for file in self.files if name not in form.columns_of(file))
        return next(lacks, None)

    @property
    def readable(self) -> tuple[str, ...]:
        """Columns whose type Spark can read."""
        odd = self._form.refused if isinstance(self._form, StoredTables) else {}
        return tuple(name for name in self.columns if name not in odd)

    @property
    def texts_by_name(self) -> pa.Schema:
        """Columns of text, if rows are read as text."""
        texts = isinstance(self._form, RecordFormat) and not self._is_json
        return pa.schema([field for field in self.typed if texts and field.name not in self._form.types])

    @property
    def typed(self) -> pa.Schema:
        """Columns with the types that Spark gives them.

        None of JSON that only Spark reads.
        """
        kinds = (self._fields or self._form).types
        names = () if self._is_json and self._fields is None else (*self.readable, PATH)
        return pa.schema([(name, kinds.get(name, pa.string())) for name in names])

    def frame(self, wanted: Sequence[str], sift: Sift | None = None) -> DataFrame:
        """All rows with their place and the wanted columns.

        `_text` is null unless the row is rejected.

        Args:
            sift: Takes rows out before they become part of the table; only for columns of `texts_by_name`.
        """
        return self._objects(wanted) if self._is_json else self._staged(wanted, sift)

    def sifted(self, wanted: Sequence[str], sift: Sift) -> tuple[int, pa.Table] | None:
        """Number of rows, and those refused; others are taken out here.

        None if a good row is left, or too many are refused.
        """
        blocks, tasks = self._blocks, self._tasks(range(len(self._blocks)))

        def work(task: int) -> tuple[int, list[pa.RecordBatch]]:
            met = [0]
            read = _counted_in(_read([blocks[at] for at in tasks[task]], self._here_forms, wanted), met)
            refused = [batch.select(list(PLACE)) for batch in sift(task, read)]
            return met[0], refused

        rows, refused = 0, list[pa.RecordBatch]()
        with ThreadPoolExecutor(os.cpu_count()) as pool, ExitStack() as failed:
            failed.callback(pool.shutdown, cancel_futures=True)
            for done, (read, others) in enumerate(pool.map(work, range(len(tasks))), 1):
                self._progress("reading", done, len(tasks))
                rows += read
                refused += others
                if any(each["_reason"].null_count for each in others) or sum(map(len, refused)) > MOST_REFUSED:
                    return None
        return rows, pa.Table.from_batches(refused, reader_schema([], {}))

    def batches(self, wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows with their place, parsed in this process."""
        return _read(self._blocks, self._here_forms, wanted)

    def first_rows(self, rows: int, wanted: Sequence[str]) -> pa.Table:
        """The first good rows of the source, in memory."""
        return _first_good(self._blocks, self._here_forms, rows, wanted)

    @cached_property
    def _here_forms(self) -> Sequence[RecordFormat | BlockFormat]:
        """Formats of the files, as this process reads them."""
        return self._forms if self._fields is None else self._as_fields(self._fields)

    def sample(self, rows: int, wanted: Sequence[str]) -> DataFrame:
        """The first good rows of the source, with the wanted columns."""
        with spark_failures("reading the source"):
            if self._is_json:
                return self._objects(wanted).where("_reason is null").limit(rows)
            return _in_spark(self._spark, self.first_rows(rows, wanted))

    def texts(self, lines: Mapping[int, Sequence[int]] | None) -> Any:
        """Text of rows: `_file`, `_line`, `_text`.

        It is a table where this process reads the files, else a data frame.

        Args:
            lines: Wanted lines of each text file, rising; None for all. Tables give all rows.
        """
        forms, blocks = self._forms, self._blocks
        asked = None if lines is None else _by_block(blocks, lines)

        def read(at: int) -> Iterator[pa.RecordBatch]:
            for batch in _read([blocks[at]], forms, [], with_text=True):
                if asked is None:
                    yield batch
                else:
                    yield batch.filter(pc.is_in(batch.column("_line"), value_set=pa.array(asked[at], pa.int64())))

        tasks = self._tasks(range(len(blocks)) if asked is None else sorted(asked))
        schema, columns = reader_schema([], {}), ["_file", "_line", "_text"]
        if self._here:
            batches = (batch for task in tasks for at in task for batch in read(at))
            return pa.Table.from_batches(batches, schema).select(columns)
        from pyspark.sql.pandas.types import from_arrow_schema

        return in_tasks(self._spark, tasks, read, from_arrow_schema(schema)).select(*columns)

    def _schema(self) -> pa.Schema:
        """Arrow types of the columns."""
        if self._is_json and self._fields is None:
            from pyspark.sql.pandas.types import to_arrow_schema

            return to_arrow_schema(cast(T.StructType, T.StructType.fromDDL(self._ddl)))
        return pa.schema((self._fields or self._form).types)

    def _columns(self) -> tuple[str, ...]:
        names: tuple[str, ...]
        if self._fields is not None:
            names = self._fields.columns
        elif self._is_json:
            names = tuple(cast(T.StructType, T.StructType.fromDDL(self._ddl)).names)
        else:
            names = tuple(dict.fromkeys(name for form in self._forms for name in form.columns))
        return tuple(name for name in names if name not in OWN)

    def _survey(self) -> tuple[list[Block], list[dict[str, Any]]]:
        """Cut each file into blocks and hash it, ranges of long files side by side."""
        files, forms = self.files, self._forms
        firsts = [ranges(file, forms[at]) for at, file in enumerate(files)]
        hashes: dict[tuple[int, int], dict[str, str]] = {}
        walks: list[dict[int, Walk | None]] = [{} for _ in files]
        blocks: dict[int, list[Block]] = {}
        done = 0
        while asked := [
            (at, task) for at in range(len(files)) if at not in blocks for task in again(firsts[at], walks[at], done)
        ]:
            for at, first, content, walked, places in self._looked(asked, firsts, hashed=not done):
                walks[at][first] = walked and Walk(*walked)
                hashes.setdefault((at, first), content)
                if places is not None:
                    blocks[at] = [Block(at, files[at], *place) for place in places]
            done += 1
        for at in range(len(files)):
            if at not in blocks:
                found = [walked for _, walked in sorted(walks[at].items()) if walked is not None]
                blocks[at] = blocks_of_walks(at, files[at], found)
        inputs = {
            files[at].path: {
                "name": files[at].label.removesuffix(f"/{files[at].member}"),
                "bytes": files[at].path.stat().st_size,
                **_of_ranges([hashes[at, first] for first in firsts[at]]),
            }
            for at in range(len(files))
            if hashes[at, 0]
        }
        return [block for at in range(len(files)) for block in blocks[at]], list(inputs.values())

    def _looked(self, asked: Sequence[tuple[int, Task]], firsts: Sequence[range], *, hashed: bool) -> list[list[Any]]:
        """File, first byte, fingerprint, walk and blocks of some ranges; blocks of files with one range alone."""
        files, forms = self.files, self._forms

        def look(number: int) -> Iterator[pa.RecordBatch]:
            at, task = asked[number]
            file, walked, places = files[at], None, None
            whole = len(firsts[at]) == 1
            if whole:
                found = _cut(at, file, forms[at])
                places = [[block.offset, block.size, block.line] for block in found]
            else:
                walked = walk(file, cast(RecordFormat, forms[at]), task)
            content: dict[str, str] = {}
            if hashed and not (at and files[at - 1].path == file.path):  # an archive once, not for each member
                with readable(file.path):
                    content = _content(file.path, task.first, None if whole else firsts[at].step)
            told = [at, task.first, content, walked and astuple(walked), places]
            yield pa.RecordBatch.from_pydict({"told": [json.dumps(told)]})

        sizes = [min(files[at].size, firsts[at].step) for at, _ in asked]
        tasks = grouped(range(len(asked)), sizes)
        if self._here:
            told = []
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                for done, found in enumerate(pool.map(lambda at: list(look(at)), range(len(asked))), 1):
                    self._progress("surveying the files", done, len(asked))
                    told += [text for batch in found for text in batch["told"].to_pylist()]
        else:
            told = in_tasks(self._spark, tasks, look, "told string").toArrow()["told"].to_pylist()
        return list(map(json.loads, told))

    def _objects(self, wanted: Sequence[str]) -> DataFrame:
        """Wanted fields of the staged JSON objects."""
        fields = [name for name in wanted if name != PATH]
        return with_json_fields(self._lines, self._ddl, fields)

    def _staged(self, wanted: Sequence[str], sift: Sift | None = None) -> DataFrame:
        """Parse the text in Spark tasks that stage it as Parquet, and read that as a table; or hold it, if small.

        Staged columns have numbers, since a source may have names that Parquet does not allow.
        """
        form, forms, blocks, folder = self._form, self._forms, self._blocks, self._staging
        in_store = is_stored(folder)
        if form.columns == (WHOLE_LINE,):
            wanted = [*wanted, PATH]
        schema = reader_schema(wanted, form.types)
        numbers = [f"c{at}" for at in range(len(wanted))]
        numbered = pa.schema([*list(schema)[: len(PLACE)], *map(pa.field, numbers, schema.types[len(PLACE) :])])
        tasks = self._tasks(range(len(blocks)))

        def stage(task: int) -> Iterator[pa.RecordBatch]:
            left, met = 0, [0]
            read = _counted_in(_read([blocks[at] for at in tasks[task]], forms, wanted), met)
            settings = {"compression": "snappy", "use_dictionary": False, "write_statistics": False}
            with (
                disk.complete_file(folder / _staged_name(task), attempt_id()) as path,
                pq.ParquetWriter(path, numbered, **settings) as writer,
            ):
                for batch in read if sift is None else sift(task, read):
                    writer.write_batch(batch.rename_columns(numbered.names))
                    left += batch.num_rows
            yield pa.RecordBatch.from_pydict({"rows": [met[0]], "left": [left]})

        with spark_failures("reading the source"), watched(self._spark, "reading", self._progress):
            from pyspark.sql.pandas.types import from_arrow_schema

            kinds = from_arrow_schema(numbered, prefer_timestamp_ntz=True)
            held = self.held(wanted)
            if held is not None:
                self.rows = self.left = len(held)
                staged = _in_spark(self._spark, held.rename_columns(numbered.names))
            else:
                disk.make_folder(folder)
                each = [[task] for task in range(len(tasks))]
                counts = in_tasks(self._spark, each, stage, "rows bigint, left bigint").collect()
                self.rows, self.left = (sum(int(row[at]) for row in counts) for at in range(2))
                if in_store:
                    staged = in_tasks(self._spark, each, lambda task: _read_back(folder, task), kinds)
                else:
                    staged = self._spark.read.schema(kinds).parquet(literal_path(folder))
        names = zip(wanted, numbers, strict=True)
        return staged.select(*PLACE, *(quoted(number).alias(name) for name, number in names))

    def held(self, wanted: Sequence[str]) -> pa.Table | None:
        """All rows, parsed in this process.

        None if they are more than it may hold.
        """
        is_text = WHOLE_LINE in wanted
        forms, types = (self._forms, {}) if is_text else (self._here_forms, (self._fields or self._form).types)
        left = self._most_held
        batches: list[pa.RecordBatch] = []
        for batch in _read(self._blocks if left else (), forms, wanted):
            batches.append(batch)
            left -= batch.nbytes
            if left <= 0:
                return None
        return pa.Table.from_batches(batches, reader_schema(wanted, types)) if left else None

    def _tasks(self, chosen: Sequence[int]) -> list[list[int]]:
        """Blocks in groups, one per task."""
        return grouped(chosen, [self._blocks[at].size or self._blocks[at].source.size for at in chosen])


def beginning(file: SourceFile, form: RecordFormat | BlockFormat, rows: int) -> pa.Table:
    """The first good rows of a file; no more is read."""
    blocks = _cut(0, file, form) if has_blocks(form) else [Block(0, file)]
    if isinstance(form, JsonLines):
        fields = JsonFields(layout=form.layout)
        try:
            _first_good(blocks, [fields], rows, [])
            form = replace(fields, types=fields_of(fields.met))
        except InDoubt:
            raise BadInput(f"{file.label}: only Spark reads its fields") from None
    wanted = list(form.columns)
    return _first_good(blocks, [form], rows, wanted).select(wanted)


def _first_good(
    blocks: Sequence[Block], forms: Sequence[RecordFormat | BlockFormat], rows: int, wanted: Sequence[str]
) -> pa.Table:
    batches: list[pa.RecordBatch] = []
    for block in blocks:
        for batch in _read([block], forms, wanted):
            good = batch.filter(batch.column("_reason").is_null())
            batches.append(good.slice(0, rows - sum(map(len, batches))))
            if sum(map(len, batches)) >= rows:
                return pa.Table.from_batches(batches)
    return pa.Table.from_batches(batches, reader_schema(wanted, forms[0].types))


def _in_spark(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows as a data frame; PySpark fails at columns without a chunk."""
    from pyspark.sql.pandas.types import from_arrow_schema

    rows = rows if len(rows) else rows.schema.empty_table()
    return spark.createDataFrame(rows, from_arrow_schema(rows.schema, prefer_timestamp_ntz=True))


def _staged_name(task: int) -> str:
    return f"task-{task:06d}.parquet"


def _read_back(folder: Path, task: int) -> Iterator[pa.RecordBatch]:
    """The rows that a task staged in a store, which Spark itself cannot reach."""
    yield from pq.ParquetFile(arrow_source(folder / _staged_name(task)), pre_buffer=True).iter_batches()


def _content(path: Path, first: int, size: int | None) -> dict[str, str]:
    """Fingerprint of a file, or of some bytes of it; for an object its version, so that it is not read twice."""
    if is_stored(path):
        return {"version": path.found().version}
    return {"sha256": file_sha256(path) if size is None else sha256_of(path, first, size)}


def _of_ranges(contents: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Fingerprint of a file from those of its ranges."""
    if len(contents) == 1 or "version" in contents[0]:
        return dict(contents[0])
    return {"sha256_of_ranges": sha256("".join(each["sha256"] for each in contents).encode()).hexdigest()}


def _by_block(blocks: Sequence[Block], lines: Mapping[int, Sequence[int]]) -> dict[int, Sequence[int]]:
    """Wanted lines of each block that holds any; blocks of a file are in order."""
    asked: dict[int, Sequence[int]] = {}
    for at, block in enumerate(blocks):
        wanted = lines.get(block.file, ())
        following = blocks[at + 1] if at + 1 < len(blocks) else None
        ends = following.line if following is not None and following.file == block.file else inf
        first, end = bisect_left(wanted, block.line), bisect_left(wanted, ends)
        if first < end:
            asked[at] = wanted[first:end]
    return asked


def _cut(at: int, file: SourceFile, form: RecordFormat | BlockFormat) -> list[Block]:
    return form.cut(at, file) if has_blocks(form) else cut(at, file, form)


def _counted_in(read: Iterator[pa.RecordBatch], met: list[int]) -> Iterator[pa.RecordBatch]:
    """The batches of blocks, adding their number of rows to the first of `met`."""
    for batch in read:
        met[0] += batch.num_rows
        yield batch


def _read(
    blocks: Sequence[Block],
    forms: Sequence[RecordFormat | BlockFormat],
    wanted: Sequence[str],
    *,
    with_text: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Records of some blocks, in order.

    Args:
        forms: The format of each file.
        wanted, with_text: As in `read_blocks`.
    """
    for _, same in groupby(blocks, lambda block: id(forms[block.file])):
        some = list(same)
        form = forms[some[0].file]
        if has_blocks(form):
            yield from chain.from_iterable(form.read(block, wanted, with_text=with_text) for block in some)
        else:
            yield from read_blocks(some, form, wanted, with_text=with_text)
