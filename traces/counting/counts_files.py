"""Parquet files of key,count, read and summed in this process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.stream import KeyType, Weight
from adapt.traces.counting.frames import is_whole_in, key_type_in
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.locations.location import is_stored
from adapt.traces.read_errors import damaged
from adapt.traces.spark.runner import added

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
