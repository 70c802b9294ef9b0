"""Unpacked bytes of a source file."""

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, cast

import pyarrow as pa

from adapt.core.errors import BadInput
from adapt.traces.sources.reading.files import Container, SourceFile

CHUNK_BYTES = 8 << 20
LONGEST_HEAD = 16 << 20


@contextmanager
def unpacked(file: SourceFile) -> Iterator[IO[bytes]]:
    """The unpacked bytes of a file, read in order."""
    try:
        match file.container:
            case Container.PLAIN:
                with file.opened(0) as plain:
                    yield plain
            case Container.GZIP:
                with file.opened() as plain, gzip.open(plain, "rb") as packed:
                    yield cast(IO[bytes], packed)
            case Container.BZIP2:
                with file.opened() as plain, bz2.open(plain, "rb") as packed:
                    yield packed
            case Container.ZSTD:
                with file.opened() as plain, pa.CompressedInputStream(plain, "zstd") as packed:
                    yield cast(IO[bytes], packed)
            case Container.XZ:
                with file.opened() as plain, lzma.open(plain, "rb") as packed:
                    yield packed
            case Container.ZIP:
                with (
                    file.opened() as plain,
                    zipfile.ZipFile(plain) as archive,
                    archive.open(str(file.member)) as member,
                ):
                    yield member
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        raise BadInput(f"{file.label} is truncated or damaged ({error}); get the file again") from error
    except NotImplementedError as error:
        raise BadInput(f"{file.label} has an unsupported compression ({error}); unpack it first") from error
    except OSError as error:
        if error.errno is None:  # an error of bzip2 or zstd, not of the disk
            raise BadInput(f"{file.label} is truncated or damaged ({error}); get the file again") from error
        raise BadInput(f"{file.label} cannot be read: {error.strerror or error}") from error


def head_of(file: SourceFile, size: int) -> bytes:
    """The first unpacked bytes of a file, with two whole lines.

    At least `size` bytes unless the file is shorter, and at most about `LONGEST_HEAD`.
    """
    with unpacked(file) as stream:
        head = more = stream.read(size)
        while more and head.count(b"\n") < 2 and len(head) < LONGEST_HEAD:
            more = stream.read(size)
            head += more
        return head
