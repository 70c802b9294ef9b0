"""The source files as one Spark table: where each row stands, why it is refused, and its columns."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from adapt.core.errors import BadInput
from adapt.traces.progress import Progress, watched
from adapt.traces.session import spark_failures
from adapt.traces.sources.blocks import Block, cut, read_block, reader_schema, sha256_of
from adapt.traces.sources.files import SourceFile
from adapt.traces.sources.format import WHOLE_LINE, RecordFormat
from adapt.traces.sources.json_lines import JsonLines, json_schema, with_json_fields
from adapt.traces.sources.parquet import parquet_columns, read_parquet
from adapt.traces.tasks import grouped, in_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OWN = ("_file", "_line", "_reason", "_text", "_path")
"""The reader's own columns; columns of a source that are named so are hidden by them."""


class Source:
    """The source files, looked through once: hashed, cut into blocks, their columns known.

    Attributes:
        files: In the order that breaks ties.
        inputs: Name, bytes and sha256 of each file, for the manifest.
        columns: The columns that expressions can name, beside `_path`; none of the names in `OWN`.
    """

    def __init__(
        self, spark: "SparkSession", files: Sequence[SourceFile], form: RecordFormat | None, progress: Progress
    ) -> None:
        """Look through the files.

        Args:
            form: Their text format, or None for Parquet.

        Raises:
            BadInput: a file is truncated, damaged or cannot be read.
        """
        self.files = tuple(files)
        self._spark = spark
        self._form = form
        with spark_failures("reading the source"):
            with watched(spark, "looking through the files", progress):
                self._blocks, self.inputs = self._survey()
            self._ddl = ""
            if isinstance(form, JsonLines):
                with watched(spark, "finding the fields", progress):
                    self._ddl = json_schema(spark, self._records([WHOLE_LINE]))
                if not self._ddl:
                    raise BadInput(f"{self.files[0].label}: no line is a JSON object with a field")
        self.columns = self._columns()

    def frame(self, wanted: Sequence[str]) -> "DataFrame":
        """All rows: `_file`, `_line`, `_reason`, `_text` (null unless a record is refused), `wanted` and `_path`."""
        if self._form is None:
            return read_parquet(self._spark, self.files, wanted)
        if self._ddl:
            return with_json_fields(self._records([WHOLE_LINE]), self._ddl, wanted)
        return self._records(wanted)

    def texts(self, lines: dict[int, tuple[int, int]]) -> "DataFrame":
        """The text of rows: `_file`, `_line`, `_text`, of at least the lines from first to last of each file named."""
        if self._form is None:
            return read_parquet(self._spark, self.files, [], with_text=True).select("_file", "_line", "_text")
        holding = []
        for at, block in enumerate(self._blocks):
            first, last = lines.get(block.file, (1, 0))
            following = self._blocks[at + 1] if at + 1 < len(self._blocks) else None
            ends_before = following is not None and following.file == block.file and following.line <= first
            if block.line <= last and not ends_before:
                holding.append(at)
        return self._records([], with_text=True, only=holding).select("_file", "_line", "_text")

    def _columns(self) -> tuple[str, ...]:
        if self._form is None:
            names = parquet_columns(self._spark, self.files)
        elif self._ddl:
            from pyspark.sql.types import StructType

            names = tuple(cast(StructType, StructType.fromDDL(self._ddl)).names)
        else:
            names = self._form.columns
        return tuple(name for name in names if name not in OWN)

    def _survey(self) -> tuple[list[Block], list[dict[str, Any]]]:
        """Cut every file into blocks and hash it, in Spark tasks."""
        files, form = self.files, self._form

        def look(at: int) -> Iterator[pa.RecordBatch]:
            blocks = [] if form is None else cut(at, files[at], form)
            told = [at, sha256_of(files[at].path), [[block.offset, block.size, block.line] for block in blocks]]
            yield pa.RecordBatch.from_pydict({"told": [json.dumps(told)]})

        tasks = grouped(range(len(files)), [file.size for file in files])
        told = [json.loads(row[0]) for row in in_tasks(self._spark, tasks, look, "told string").collect()]
        told.sort(key=lambda file: int(file[0]))
        blocks = [Block(at, files[at], *place) for at, _, places in told for place in places]
        inputs = {
            files[at].path: {
                "name": files[at].label.removesuffix(f"/{files[at].member}"),
                "bytes": Path(files[at].path).stat().st_size,
                "sha256": sha256,
            }
            for at, sha256, _ in told
        }
        return blocks, list(inputs.values())

    def _records(
        self, wanted: Sequence[str], *, with_text: bool = False, only: Sequence[int] | None = None
    ) -> "DataFrame":
        from pyspark.sql.pandas.types import from_arrow_schema

        form, blocks = self._form, self._blocks
        assert form is not None, "Parquet has no blocks"

        def read(at: int) -> Iterator[pa.RecordBatch]:
            return read_block(blocks[at], form, wanted, with_text=with_text)

        chosen = range(len(blocks)) if only is None else only
        tasks = grouped(chosen, [blocks[at].size or blocks[at].source.size for at in chosen])
        return in_tasks(self._spark, tasks, read, from_arrow_schema(reader_schema(wanted)))
