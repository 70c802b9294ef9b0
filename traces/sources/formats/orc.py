"""ORC sources, whose rows are numbered piece by piece."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.orc

from adapt.traces.locations.arrow import arrow_source
from adapt.traces.sources.reading.files import SourceFile
from adapt.traces.sources.reading.table_files import marked
from adapt.traces.spark.lazy import DataFrame, F, Window
from adapt.traces.spark.session import spark_failures

_LOCAL, _MOMENT = pa.timestamp("ns"), pa.timestamp("ns", "UTC")


@dataclass(frozen=True, slots=True)
class OrcFiles:
    """ORC, whose rows are numbered here."""

    name: ClassVar[str] = "ORC"

    def schema_of(self, file: SourceFile) -> pa.Schema:
        """Columns of a file.

        Times that Spark wrote are moments; others without a zone are local.
        """
        moments = (field.with_type(_MOMENT) if _is_moment(field) else field for field in _opened(file).schema)
        return pa.schema([marked(field, "union" if _has_union(field.type) else "") for field in moments])

    def is_beyond_spark(self, file: SourceFile) -> bool:
        """Whether Spark fails on a file or misreads it.

        It fails at unions, and takes local times for those of its own zone.
        """
        try:
            return any(
                _has_union(field.type) or (field.type == _LOCAL and not _is_moment(field))
                for field in _opened(file).schema
            )
        except (OSError, pa.ArrowException):
            return False

    def rows_of(self, file: SourceFile) -> int:
        """Number of rows of a file."""
        return int(_opened(file).nrows)

    def pieces_of(self, file: SourceFile) -> list[int]:
        """Rows of each stripe of a file."""
        opened = _opened(file)
        return [opened.read_stripe(at, columns=[]).num_rows for at in range(opened.nstripes)]

    def read_pieces(self, file: SourceFile, pieces: Sequence[int], columns: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns of stripes."""
        opened = _opened(file)
        for piece in pieces:
            yield pa.Table.from_batches([opened.read_stripe(piece, columns=list(columns))])

    def numbered(self, rows: DataFrame) -> DataFrame:
        """Rows with their number in the file.

        The number is the rows in earlier pieces plus those earlier in the piece.

        A piece is read in order by one task, and Spark's increasing id counts its earlier rows.
        """
        risen = rows.select(
            "*", F.col("_metadata.file_block_start").alias("_piece"), F.monotonically_increasing_id().alias("_risen")
        )
        with spark_failures("counting the rows"):
            counted = risen.groupBy("_where", "_piece").agg(
                F.min("_risen").alias("_first"), F.count("_risen").alias("_n")
            )
            pieces = rows.sparkSession.createDataFrame(counted.toArrow())
        before = Window.partitionBy("_where").orderBy("_piece").rowsBetween(Window.unboundedPreceding, -1)
        starts = pieces.select(
            "_where", "_piece", (F.coalesce(F.sum("_n").over(before), F.lit(0)) - F.col("_first") + 1).alias("_offset")
        )
        return risen.join(F.broadcast(starts), ["_where", "_piece"]).withColumn(
            "_row", F.col("_risen") + F.col("_offset")
        )


def _is_moment(field: pa.Field) -> bool:
    """Whether Spark wrote the column from times with a zone."""
    return field.type == _LOCAL and (field.metadata or {}).get(b"spark.sql.catalyst.type") == b"timestamp"


def _has_union(kind: pa.DataType) -> bool:
    nested = [kind.field(at).type for at in range(kind.num_fields)]
    return pa.types.is_union(kind) or any(map(_has_union, nested))


def _opened(file: SourceFile) -> pa.orc.ORCFile:
    source = arrow_source(file.path)
    return pa.orc.ORCFile(str(source) if isinstance(source, Path) else source)
