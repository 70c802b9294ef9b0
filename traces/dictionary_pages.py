"""Dictionary pages of Parquet columns, read as they are stored.

Arrow hashes every dictionary again and copies codes value by value, which takes three times as long.

Source: Apache Parquet, format 2.11 (parquet.thrift, Encodings.md); Thrift compact protocol.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined

Bytes: TypeAlias = NDArray[np.uint8]

_DATA, _DICTIONARY = 0, 2
_PLAIN, _PLAIN_DICTIONARY, _RLE_DICTIONARY = 0, 2, 8
_TYPE, _SIZE, _STORED, _SUM, _OF_DATA, _OF_DICTIONARY = 1, 2, 3, 4, 5, 7
"""Fields of a page header; the first fields of both its structures are values and encoding."""

_KINDS = {"BYTE_ARRAY": (pa.string(), pa.binary()), "INT64": (pa.int64(),)}
_MOST_WIDTH = 31


def dictionary_column(path: Path, file: pq.ParquetFile, row_group: int, name: str) -> pa.DictionaryArray | None:
    """A column of a row group, by its stored int32 codes.

    Page checksums are verified. None for a column that is not stored so, has nulls or another type, or is damaged.
    """
    at = file.schema_arrow.get_field_index(name)
    kind, column = file.schema_arrow.types[at], file.metadata.row_group(row_group).column(at)
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if (
        column.path_in_schema != name
        or kind not in _KINDS.get(column.physical_type, ())
        or column.dictionary_page_offset is None
    ):
        return None
    with path.open("rb", 0) as source:
        source.seek(column.dictionary_page_offset)
        stored = source.read(column.total_compressed_size)
    try:
        return _decoded(stored, column, kind, optional=file.schema.column(at).max_definition_level == 1)
    except (LookupError, OSError, pa.ArrowException, RecursionError, TypeError, ValueError):  # Arrow says what is wrong
        return None


def _decoded(
    stored: bytes, column: pq.ColumnChunkMetaData, kind: pa.DataType, *, optional: bool
) -> pa.DictionaryArray | None:
    """The column in these bytes; see `dictionary_column`."""
    first, *pages = list(_pages(stored))
    if sum(page.size for page in (first, *pages)) > column.total_uncompressed_size:
        return None
    if first.kind != _DICTIONARY or any(
        page.kind != _DATA or page.encoding not in {_PLAIN_DICTIONARY, _RLE_DICTIONARY} for page in pages
    ):
        return None
    dictionary = _values(first.raw(stored, column.compression), first.values, kind)
    codes = np.empty(column.num_values, np.int32)
    done = 0
    for page in pages:
        raw = page.raw(stored, column.compression)
        if _decode(raw, optional, len(dictionary), codes[done : done + page.values]) != page.values:
            return None
        done += page.values
    return pa.DictionaryArray.from_arrays(pa.array(codes), dictionary) if done == len(codes) else None


@dataclass(frozen=True, slots=True)
class _Page:
    """A page: where its bytes are, and what is in them."""

    kind: int
    start: int
    stored: int
    size: int
    checksum: int | None
    values: int
    encoding: int

    def raw(self, column: bytes, compression: str) -> Bytes:
        """Its bytes, verified and decompressed.

        Raises:
            ValueError: they do not match their checksum.
        """
        held = memoryview(column)[self.start : self.start + self.stored]
        if self.checksum is not None and zlib.crc32(held) != self.checksum & 0xFFFFFFFF:
            raise ValueError("a page does not match its checksum")
        if compression != "UNCOMPRESSED":
            held = pa.decompress(held, decompressed_size=self.size, codec=compression.lower())
        return np.frombuffer(held, np.uint8)


def _pages(column: bytes) -> Iterator[_Page]:
    """The pages of a column, by their headers.

    Raises:
        IndexError, KeyError, TypeError, ValueError: a header is damaged.
    """
    source = BytesIO(column)
    while source.tell() < len(column):
        header = _structure(source)
        told = header.get(_OF_DATA) or header.get(_OF_DICTIONARY) or {1: 0, 2: _PLAIN}
        kind, size, stored, values, encoding = header[_TYPE], header[_SIZE], header[_STORED], told[1], told[2]
        if min(kind, size, stored, values, encoding) < 0:
            raise ValueError("a page header is damaged")
        yield _Page(kind, source.tell(), stored, size, header.get(_SUM), values, encoding)
        source.seek(stored, 1)


def _structure(source: BytesIO) -> dict[int, Any]:
    """The fields of a Thrift structure by number."""
    fields: dict[int, Any] = {}
    number = 0
    while (head := source.read(1)[0]) != 0:
        number = number + (head >> 4) if head >> 4 else _integer(source)
        fields[number] = _field(source, head & 15)
    return fields


def _field(source: BytesIO, kind: int) -> Any:
    """A Thrift value: booleans (1, 2), a byte, integers, bytes, or a structure.

    Raises:
        ValueError: another kind, which no page header has.
    """
    if kind <= 2:
        return kind == 1
    if kind == 3:
        return source.read(1)[0]
    if kind <= 6:
        return _integer(source)
    if kind == 8:
        return source.read(_natural(source))
    if kind == 12:
        return _structure(source)
    raise ValueError(f"a Thrift value of kind {kind}")


def _natural(source: BytesIO) -> int:
    number = shift = 0
    while (byte := source.read(1)[0]) & 128:
        number |= (byte & 127) << shift
        shift += 7
    return number | byte << shift


def _integer(source: BytesIO) -> int:
    natural = _natural(source)
    return natural >> 1 ^ -(natural & 1)


def _values(raw: Bytes, values: int, kind: pa.DataType) -> pa.Array:
    """The values of a plain page.

    Raises:
        ValueError: it is cut short.
    """
    if len(raw) < (8 if kind == pa.int64() else 4) * values:
        raise ValueError("a dictionary page is cut short")
    if kind == pa.int64():
        return pa.array(raw[: 8 * values].view("<i8"))
    offsets, data = np.zeros(values + 1, np.int32), np.empty(len(raw), np.uint8)
    if not _split(raw, offsets, data):
        raise ValueError("a dictionary page is cut short")
    return pa.Array.from_buffers(kind, values, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


@inlined
def _little(data: Bytes, start: int, length: int) -> Any:
    """The `length` bytes at `start`, little-endian; for a fixed length it compiles to one load."""
    word = np.uint64(0)
    for place in range(length):
        word |= np.uint64(data[np.uint64(start) + np.uint64(place)]) << np.uint64(8 * place)
    return word


@compiled
def _split(raw: Bytes, offsets: NDArray[np.int32], data: Bytes) -> bool:
    """The texts of a plain page, without their lengths; False if it is cut short."""
    at = end = 0
    for value in range(len(offsets) - 1):
        if at + 4 > len(raw):
            return False
        length: Any = np.int64(_little(raw, at, 4))
        at += 4
        if at + length > len(raw):
            return False
        for place in range(length):
            data[np.uint64(end + place)] = raw[np.uint64(at + place)]
        at += length
        end += length
        offsets[value + 1] = end
    return True


@compiled
def _decode(raw: Bytes, optional: bool, most: int, codes: NDArray[np.int32]) -> int:
    """The codes of a data page, how many; -1 with nulls, a code out of range or a damaged page."""
    at = 0
    if optional:
        if len(raw) < 4:
            return -1
        levels: Any = 4 + np.int64(_little(raw, 0, 4))
        if levels > len(raw) or _runs(raw, 4, levels, 1, codes) != len(codes):
            return -1
        for row in range(len(codes)):
            if codes[row] != 1:
                return -1
        at = levels
    if at >= len(raw) or raw[at] > _MOST_WIDTH:
        return -1
    width: Any = np.int64(raw[at])
    done = _runs(raw, at + 1, len(raw), width, codes)
    for row in range(done):
        if codes[row] >= most:
            return -1
    return done


@inlined
def _runs(raw: Bytes, at: int, end: int, width: int, out: NDArray[np.int32]) -> int:
    """The numbers of the hybrid encoding: runs of one number, and packed ones; how many there are."""
    done, size = 0, (width + 7) >> 3
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    while at < end and done < len(out):
        head = shift = 0
        while at < end and shift < 35:
            byte: Any = np.int64(raw[at])
            at += 1
            head |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if head & 1:
            count = min((head >> 1) * 8, len(out) - done)
            if at + (count * width + 7) // 8 > end:
                return -1
            loads = min(count, max(0, (len(raw) - 8 - at) * 8 // max(width, 1)))
            for number in range(loads):
                bit = number * width
                word = _little(raw, at + (bit >> 3), 8) >> np.uint64(bit & 7)
                out[np.uint64(done + number)] = word & mask
            for number in range(loads, count):  # the last, where eight bytes would not fit
                bit = number * width
                start = at + (bit >> 3)
                word = _little(raw, start, min(8, len(raw) - start)) >> np.uint64(bit & 7)
                out[np.uint64(done + number)] = word & mask
            at += (head >> 1) * width
        else:
            count = min(head >> 1, len(out) - done)
            if at + size > end:
                return -1
            out[done : done + count] = _little(raw, at, size)
            at += size
        done += count
    return done
