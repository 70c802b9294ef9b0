"""What every text format can do: find records in bytes, and turn them into columns of text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.errors import BadInput
from adapt.traces.sources.reading.records import Bytes, Places, Records

NOT_UTF8 = "not UTF-8 text"

BOM = b"\xef\xbb\xbf"
"""The byte order mark that UTF-8 text may begin with; no part of it."""

_WIDE = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""What texts of two or four bytes a character begin with."""

_LOOKED_AT = 1024
"""Bytes in which a text without such a mark is told by its NULs."""

WHOLE_LINE = "_line_text"
"""The one column of a format whose lines Spark takes apart."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The columns of some records, as text.

    Attributes:
        columns: One column each, of text unless the format's `types` say otherwise, aligned with the records; null in
            refused records.
        reasons: Why a record is refused, null where it is not; None if none is.
    """

    columns: dict[str, pa.Array]
    reasons: pa.Array | None = None


@runtime_checkable
class RecordFormat(Protocol):
    """A text format with its settings; sent to Spark tasks, so plain data."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""

    @property
    def header(self) -> tuple[str, ...] | None:
        """What the first record of every file holds, or None if that is a record like the others."""

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The types of those columns that are not text."""

    @property
    def times(self) -> Mapping[str, str]:
        """Columns whose time format is known, by name."""

    @property
    def any_bytes(self) -> bool:
        """Whether a record may hold what is not UTF-8; `parse` sees to it then."""

    def records(self, data: Bytes, *, at_end: bool) -> Records:
        """The records of a buffer."""

    def parse(self, data: Bytes, records: Records, wanted: Sequence[str]) -> Parsed:
        """The wanted columns of the records; all bytes in them are UTF-8 unless they may be any."""


def refuse_utf16(head: bytes, name: str) -> None:
    """Do nothing unless a text begins as UTF-16 or UTF-32 does.

    Raises:
        BadInput: it does.
    """
    encoding = next((encoding for mark, encoding in _WIDE.items() if head.startswith(mark)), _unmarked(head))
    if encoding:
        raise BadInput(f"{name} is {encoding[:6].upper()} text; convert it with `iconv -f {encoding} -t utf-8`")


def _unmarked(head: bytes) -> str:
    """UTF-16 that no mark tells: every other byte is NUL, or most are; empty if it is none."""
    even, odd = head[:_LOOKED_AT:2], head[1:_LOOKED_AT:2]
    for nuls, letters, encoding in ((odd, even, "utf-16le"), (even, odd, "utf-16be")):
        if len(nuls) > 3 and 2 * nuls.count(0) > len(nuls) and not letters.count(0):
            return encoding
    return ""


def text_of(data: Bytes, records: Records) -> pa.Array:
    """The records as they stand, as an Arrow column of text (not checked to be UTF-8)."""
    offsets = np.zeros(len(records) + 1, np.int64)
    np.cumsum(records.ends - records.starts, out=offsets[1:])
    gathered = np.empty(int(offsets[-1]), np.uint8)
    _gather(data, records.starts, records.ends, gathered)
    return pa.LargeStringArray.from_buffers(len(records), pa.py_buffer(offsets), pa.py_buffer(gathered))


def is_utf8(data: Bytes, records: Records) -> NDArray[np.bool_] | None:
    """Which records are UTF-8, or None if all are."""
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


@compiled
def _gather(data: Bytes, starts: Places, ends: Places, out: Bytes) -> Any:
    at = 0
    for record in range(len(starts)):
        for byte in range(starts[record], ends[record]):
            out[at] = data[byte]
            at += 1
