"""Interface of text formats: records in bytes, parsed into columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.traces.sources.reading.records import Bytes, Records

NOT_UTF8 = "not UTF-8 text"

BOM = b"\xef\xbb\xbf"
"""Byte order mark that UTF-8 text may begin with."""

_WIDE = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""Byte order marks of UTF-16 and UTF-32."""

_LOOKED_AT = 1024
"""Bytes in which UTF-16 without a mark is recognized by its NULs."""

WHOLE_LINE = "_line_text"
"""The only column of a format whose lines Spark parses."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """Columns of parsed records."""

    # columns by name, text unless the format's `types` say otherwise, one row per record; null in rejected records
    columns: dict[str, pa.Array]
    reasons: pa.Array | None = None  # why a record is rejected, or null; None if all are good


@runtime_checkable
class RecordFormat(Protocol):
    """A text format with its settings; plain data for Spark tasks."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""

    @property
    def header(self) -> tuple[str, ...] | None:
        """The first record of each file, or None without headers."""

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """Types of the columns that are not text."""

    @property
    def times(self) -> Mapping[str, str]:
        """Time formats of columns, where known."""

    @property
    def partitions(self) -> Mapping[str, str]:
        """Partition column by key column, where known."""

    @property
    def line_hider(self) -> int:
        """The byte between which records may hold line ends, or `NEVER`."""

    def records(self, data: Bytes, *, at_end: bool) -> Records:
        """Records of a buffer."""

    def parse(self, data: Bytes, records: Records, wanted: Sequence[str]) -> Parsed:
        """Wanted columns of the records, whose bytes are UTF-8."""


def refuse_utf16(head: bytes, name: str) -> None:
    """Refuse UTF-16 and UTF-32."""
    encoding = next((encoding for mark, encoding in _WIDE.items() if head.startswith(mark)), _unmarked(head))
    if encoding:
        raise BadInput(f"{name} is {encoding[:6].upper()} text; convert it with `iconv -f {encoding} -t utf-8`")


def _unmarked(head: bytes) -> str:
    """Encoding of UTF-16 without a mark, in which most of every other byte is NUL; empty for other text."""
    even, odd = head[:_LOOKED_AT:2], head[1:_LOOKED_AT:2]
    for nuls, letters, encoding in ((odd, even, "utf-16le"), (even, odd, "utf-16be")):
        if len(nuls) > 3 and 2 * nuls.count(0) > len(nuls) and not letters.count(0):
            return encoding
    return ""


def text_of(data: Bytes, records: Records) -> pa.Array:
    """Records, which rise, as a column of text, not checked for UTF-8."""
    # a column of the records and of what lies between them
    offsets = np.column_stack((records.starts, records.ends)).ravel()
    pieces = max(len(offsets) - 1, 0)
    every = pa.LargeStringArray.from_buffers(pieces, pa.py_buffer(offsets), pa.py_buffer(data))
    return every.take(pa.array(np.arange(0, pieces, 2)))


def is_utf8(data: Bytes, records: Records) -> NDArray[np.bool_] | None:
    """Mask of the records that are UTF-8, or None if all are."""
    raw = memoryview(data)  # type: ignore[arg-type]  # an array is a buffer; numpy's stubs do not say so
    try:
        str(raw, "utf-8")
    except UnicodeDecodeError:
        good = np.ones(len(records), bool)
        for at, (start, end) in enumerate(zip(records.starts.tolist(), records.ends.tolist(), strict=True)):
            try:
                str(raw[start:end], "utf-8")
            except UnicodeDecodeError:
                good[at] = False
        return good
    return None
