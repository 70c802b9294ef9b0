"""ORC sources, with typed columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.orc

from adapt.traces.locations.arrow import arrow_source
from adapt.traces.sources.reading.files import SourceFile
from adapt.traces.sources.reading.table_files import marked

_OF_SPARK = {
    (pa.timestamp("ns"), b"timestamp"): pa.timestamp("ns", "UTC"),
    (pa.int64(), b"timestamp_ntz"): pa.timestamp("us"),
}


@dataclass(frozen=True, slots=True)
class OrcFiles:
    """ORC."""

    name: ClassVar[str] = "ORC"

    def schema_of(self, file: SourceFile) -> pa.Schema:
        """Columns of a file.

        Times that Spark wrote are moments, or local times as whole microseconds; others without a zone are local.
        """
        typed = (field.with_type(_type_of(field)) for field in _opened(file).schema)
        return pa.schema([marked(field, "union" if _has_union(field.type) else "") for field in typed])

    def pieces_of(self, file: SourceFile) -> list[int]:
        """Rows of each stripe of a file."""
        opened = _opened(file)
        return [opened.read_stripe(at, columns=[]).num_rows for at in range(opened.nstripes)]

    def read_pieces(self, file: SourceFile, pieces: Sequence[int], columns: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns of stripes."""
        opened = _opened(file)
        for piece in pieces:
            yield pa.Table.from_batches([opened.read_stripe(piece, columns=list(columns))])


def _type_of(field: pa.Field) -> pa.DataType:
    """The type of a column, where Spark wrote times that of these."""
    given = (field.metadata or {}).get(b"spark.sql.catalyst.type", b"")
    return _OF_SPARK.get((field.type, given), field.type)


def _has_union(kind: pa.DataType) -> bool:
    nested = [kind.field(at).type for at in range(kind.num_fields)]
    return pa.types.is_union(kind) or any(map(_has_union, nested))


def _opened(file: SourceFile) -> pa.orc.ORCFile:
    source = arrow_source(file.path)
    return pa.orc.ORCFile(str(source) if isinstance(source, Path) else source)
