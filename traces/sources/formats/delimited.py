"""Delimited text: CSV and TSV."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from adapt.traces.sources.reading.records import (
    BOM,
    NEVER,
    OPEN_QUOTE,
    Bytes,
    Parsed,
    Records,
    chosen_by,
    delimited_records,
    text_of,
)


@dataclass(frozen=True, slots=True)
class Delimited:
    """Delimited text with its settings."""

    columns: tuple[str, ...]  # column names, in order
    delimiter: str = ","  # the character between fields
    quote: str = '"'  # the quoting character; empty if fields are not quoted
    header: tuple[str, ...] | None = None  # the first record of each file, or None if files have no header
    comment: str = ""  # beginning of lines that are no records
    missing: str = ""  # text that is read as null; empty for none
    types: ClassVar[dict[str, pa.DataType]] = {}
    times: ClassVar[dict[str, str]] = {}
    partitions: ClassVar[dict[str, str]] = {}

    @property
    def line_hider(self) -> int:
        """As `RecordFormat.line_hider`."""
        return ord(self.quote) if self.quote else NEVER

    def records(self, data: Bytes, *, at_end: bool) -> Records:
        """Records, each ended by a line end outside quotes."""
        records = delimited_records(data, ord(self.delimiter), self.line_hider, at_end=at_end)
        return chosen_by(self.comment, data, records, wanted=False)

    def rows(self, data: Bytes, records: Records) -> tuple[Bytes, Records]:
        """The records themselves."""
        return data, records

    def parse(self, data: Bytes, records: Records, wanted: Sequence[str]) -> Parsed:
        """Wanted columns; a record with the wrong number of fields is rejected."""
        good = records.fields == len(self.columns)
        if good.all() and not self.comment:
            return Parsed(self._read(data[records.starts[0] : records.ends[-1]], wanted) if len(records) else {})
        reasons = pa.array([None if ok else self._reason(n) for ok, n in zip(good, records.fields, strict=True)])
        read = self._read(self._of(data, records, good), wanted) if good.any() else {}
        # row among the columns read, null for rejected records
        rows = pa.array(np.cumsum(good) - 1, mask=~good)
        nothing = pa.nulls(len(records), pa.string())
        return Parsed({name: read[name].take(rows) if name in read else nothing for name in wanted}, reasons)

    def _of(self, data: Bytes, records: Records, good: NDArray[np.bool_]) -> Bytes:
        """Bytes of the good records."""
        if not self.comment:
            return _without(data, records, ~good)
        texts = text_of(data, records.where(good)).cast(pa.large_binary()).to_pylist()
        return np.frombuffer(b"\n".join(texts), np.uint8)

    def _reason(self, fields: int) -> str:
        if fields == OPEN_QUOTE:
            return "a quote is never closed"
        return f"{fields} fields instead of {len(self.columns)}"

    def _read(self, data: Bytes, wanted: Sequence[str]) -> dict[str, pa.Array]:
        if data[:3].tobytes() == BOM:
            # a value within a file keeps a byte order mark, which Arrow drops at the start of a buffer
            data = np.concatenate((np.frombuffer(b"\n", np.uint8), data))
        table = pa.csv.read_csv(
            pa.py_buffer(data),
            pa.csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=list(self.columns)),
            pa.csv.ParseOptions(
                delimiter=self.delimiter, quote_char=self.quote or False, newlines_in_values=bool(self.quote)
            ),
            pa.csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(self.columns, pa.string()),
                strings_can_be_null=bool(self.missing),
                quoted_strings_can_be_null=False,
                null_values=[self.missing],
                include_columns=list(wanted) or list(self.columns[:1]),
            ),
        )
        return {name: table.column(name).combine_chunks() for name in wanted}


def _without(data: Bytes, records: Records, bad: NDArray[np.bool_]) -> Bytes:
    """Bytes of a buffer without the bad records and their line ends."""
    following = np.append(records.starts[1:], len(data))
    depth = np.zeros(len(data) + 1, np.int8)
    depth[records.starts[bad]] += 1
    depth[following[bad]] -= 1
    kept: Bytes = data[np.cumsum(depth[:-1], dtype=np.int8) == 0]
    return kept
