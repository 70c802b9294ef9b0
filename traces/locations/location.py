"""Locations of files: a path, or a URI of an object store."""

import io
import os
import re
import stat
import threading
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import total_ordering
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeGuard, cast
from urllib.parse import unquote, urlsplit

from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.traces.locations.storage_options import StorageOptions, check_no_secret, used_options

if TYPE_CHECKING:
    from adapt.traces.locations.clients import Client, Found

SCHEMES = ("s3", "gs", "abfs", "abfss", "hdfs")
"""Schemes of object stores; s3 is tried, the others are not."""

TOPIC_SCHEME = "kafka://"
"""Beginning of the address of a topic."""

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", re.DOTALL)


def location(text: str | os.PathLike[str], options: StorageOptions | None = None) -> Path:
    """A place of files: a `Path`, or a `StorePath` like it.

    Args:
        text: A path; or `file://`, `s3://`, `gs://`, `abfs://` or `hdfs://`, also one that went through `Path`, which
            takes a slash away.
        options: Of its store; those of the process by default.
    """
    given: object = text
    if not isinstance(given, (str, os.PathLike)):  # a location already
        return cast(Path, given)
    plain = os.fspath(text)
    uri = _URI.fullmatch(plain)
    if uri is None:
        return Path(plain)
    scheme, rest = uri[1].lower(), uri[2]
    if scheme == "file":
        return Path("/" + unquote(urlsplit(f"file:///{rest}").path).lstrip("/"))
    if scheme not in SCHEMES:
        if os.path.lexists(plain):
            return Path(plain)
        raise UsageError(f"{scheme}:// is not a place of files{did_you_mean(scheme, (*SCHEMES, 'file'))}")
    check_no_secret(f"{scheme}://{rest}")
    bucket, _, key = rest.partition("/")
    if not bucket:
        raise UsageError(f"{scheme}:// needs a bucket, as in {scheme}://BUCKET/NAME")
    return cast(Path, StorePath(scheme, bucket, PurePosixPath(key), options or used_options()))


def is_stored(path: object) -> "TypeGuard[StorePath]":
    """Whether a path lies in an object store."""
    return isinstance(path, StorePath)


def of_size(path: Path, size: int) -> Path:
    """A place of known size; opening it sends no request."""
    return cast(Path, path.sized(size)) if is_stored(path) else path


@total_ordering
class StorePath:
    """An object or folder in a store, like a `Path`.

    There are no folders as such: a folder exists while an object lies below it.
    """

    __slots__ = ("_fact", "_key", "_options", "bucket", "scheme")

    def __init__(
        self, scheme: str, bucket: str, key: PurePosixPath, options: StorageOptions, fact: "Found | None" = None
    ) -> None:
        """A place; `fact` spares the request for its size."""
        self.scheme, self.bucket = scheme, bucket
        self._key, self._options, self._fact = key, options, fact

    def __str__(self) -> str:
        """The URI, without options."""
        return f"{self.scheme}://{self.bucket}/{self.key}"

    def __repr__(self) -> str:
        """The URI, without options."""
        return f"StorePath({str(self)!r})"

    def __reduce__(self) -> Any:
        """To Spark tasks it goes with its options."""
        return type(self), (self.scheme, self.bucket, self._key, self._options, self._fact)

    def __eq__(self, other: object) -> bool:
        """Whether two URIs are equal."""
        return isinstance(other, StorePath) and str(self) == str(other)

    def __lt__(self, other: "StorePath") -> bool:
        """In the order of `Path`: folder by folder."""
        return (self.scheme, self.bucket, self._key) < (other.scheme, other.bucket, other._key)

    def __hash__(self) -> int:
        """Of the URI."""
        return hash(str(self))

    def __truediv__(self, name: str | os.PathLike[str]) -> "StorePath":
        """A place in this folder."""
        return self._at(self._key / name)

    @property
    def key(self) -> str:
        """The name in the bucket."""
        return "" if self._key == PurePosixPath() else str(self._key)

    @property
    def client(self) -> "Client":
        """The client of its bucket."""
        from adapt.traces.locations.clients import client_of

        return client_of(self.scheme, self.bucket, self._options)

    @property
    def name(self) -> str:
        """The last part; of a bucket, the bucket."""
        return self._key.name or self.bucket

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """The suffix of the name."""
        return self._key.suffix

    @property
    def parts(self) -> tuple[str, ...]:
        """The bucket, and the parts of the name in it."""
        return (f"{self.scheme}://{self.bucket}", *self._key.parts)

    @property
    def parent(self) -> "StorePath":
        """The folder above; a bucket is its own."""
        return self._at(self._key.parent)

    def with_name(self, name: str) -> "StorePath":
        """Another name in the same folder."""
        return self._at(self._key.with_name(name))

    def absolute(self) -> "StorePath":
        """Itself."""
        return self

    resolve = absolute

    def is_symlink(self) -> bool:
        """Never."""
        return False

    def relative_to(self, other: "StorePath") -> PurePosixPath:
        """The path from a folder above it."""
        if (self.scheme, self.bucket) != (other.scheme, other.bucket):
            raise ValueError(f"{self} is not below {other}")
        return self._key.relative_to(other._key)

    def is_relative_to(self, other: object) -> bool:
        """Whether it lies in a folder."""
        return isinstance(other, StorePath) and other.parts == self.parts[: len(other.parts)]

    def found(self) -> "Found":
        """Size, time and version of the object; asked for once."""
        if self._fact is None:
            if not self.key:
                raise FileNotFoundError(2, "this is a bucket, not an object", str(self))
            self._fact = self._ask(lambda: self.client.head(self.key))
        return self._fact

    def sized(self, size: int) -> "StorePath":
        """The same place with a known size; opening sends no request."""
        from adapt.traces.locations.clients import Found

        return self._at(self._key, Found(self.key, size, 0, ""))

    def is_file(self) -> bool:
        """Whether there is an object of this name."""
        try:
            self.found()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self) -> bool:
        """Whether an object lies below; also for a bucket."""
        return not self.key or self._ask(lambda: next(iter(self.client.below(self.key)), None)) is not None

    def exists(self) -> bool:
        """Whether it is an object or a folder."""
        return self.is_file() or self.is_dir()

    def stat(self) -> os.stat_result:
        """Size and time of change."""
        found = self.found()
        seconds = found.modified_ns // 10**9
        times = (seconds, seconds, seconds)
        ns = dict.fromkeys(("st_atime_ns", "st_mtime_ns", "st_ctime_ns"), found.modified_ns)
        return os.stat_result((stat.S_IFREG, 0, 0, 1, 0, 0, found.size, *times), ns)

    def iterdir(self) -> Iterator["StorePath"]:
        """Objects and folders in it."""
        folders, objects = self._ask(lambda: self.client.inside(self.key))
        yield from (self._at(PurePosixPath(each)) for each in folders)
        yield from map(self._of, objects)

    def rglob(self, pattern: str) -> Iterator["StorePath"]:
        """Objects at any depth whose names match."""
        return self.glob(f"**/{pattern}")

    def glob(self, pattern: str) -> Iterator["StorePath"]:
        """Objects and folders below that match; `**` stands for any folders."""
        *above, _ = asked = pattern.split("/")
        if not above:
            yield from (each for each in self.iterdir() if fnmatchcase(each.name, pattern))
            return
        start = self
        while len(asked) > 1 and not re.search(r"[*?\[]", asked[0]):  # list no more than may match
            start, asked = start / asked[0], asked[1:]
        folders: set[PurePosixPath] = set()
        for each in self._ask(lambda: list(self.client.below(start.key))):
            path = PurePosixPath(each.key)
            below = path.relative_to(start._key)
            if _matches(below.parts, asked):
                yield self._of(each)
            for folder in list(below.parents)[:-1]:
                if folder not in folders and "**" not in asked and _matches(folder.parts, asked):
                    yield self._at(start._key / folder)
                folders.add(folder)

    def read_bytes(self) -> bytes:
        """The whole object."""
        return bytes(self._ask(lambda: self.client.read(self.key, None, "")))

    def read_text(self, encoding: str = "utf-8") -> str:
        """The whole object as text."""
        return self.read_bytes().decode(encoding)

    def write_bytes(self, data: bytes) -> None:
        """Write the object at once."""
        self.upload(data)

    def upload(self, data: bytes | Path, over: str | None = None) -> None:
        """Write the object: bytes, or a file of this machine.

        Args:
            over: The version that may be replaced, empty if none may; any by default.
        """
        from adapt.traces.locations.failures import Occupied

        try:
            self._ask(lambda: self.client.write(self.key, data, over))
        except Occupied:
            # a repeated request may meet the object that it wrote itself
            if not isinstance(data, bytes) or not self.is_file() or self.read_bytes() != data:
                raise

    def open(
        self, mode: str = "r", buffering: int = -1, encoding: str | None = None, newline: str | None = None
    ) -> Any:
        """Open it for reading: text whole, bytes by ranges.

        With `buffering` 0, each read of n bytes is one request for these bytes.
        """
        if mode not in ("rb", "r"):
            raise ValueError(f"an object is not opened with {mode!r}")
        if mode == "r":
            return io.TextIOWrapper(io.BytesIO(self.read_bytes()), encoding, newline=newline)
        raw = StoreFile(self)
        return raw if buffering == 0 else io.BufferedReader(raw, buffering if buffering > 0 else 4 << 20)

    def unlink(self, missing_ok: bool = True) -> None:
        """Remove the object."""
        if not missing_ok:
            self.found()
        self._ask(lambda: self.client.remove([self.key]))

    def remove_below(self) -> None:
        """Remove all objects below."""
        keys = [each.key for each in self._ask(lambda: list(self.client.below(self.key)))]
        if keys:
            self._ask(lambda: self.client.remove(keys))

    def mkdir(self, *_: Any, **__: Any) -> None:
        """Nothing: folders need not be made."""

    def rmdir(self) -> None:
        """Nothing: a folder ends with its last object."""

    def _at(self, key: PurePosixPath, fact: "Found | None" = None) -> "StorePath":
        return StorePath(self.scheme, self.bucket, key, self._options, fact)

    def _of(self, found: "Found") -> "StorePath":
        return self._at(PurePosixPath(found.key), found)

    def _ask(self, request: Any) -> Any:
        from adapt.traces.locations.failures import retried

        return retried(self, request)


class StoreFile(io.RawIOBase):
    """An opened object; each read requests its range.

    Fails if the object changes between two reads. Arrow seeks and reads from several threads, so a seek counts for the
    next read of its thread.
    """

    def __init__(self, path: StorePath) -> None:
        """Open; asks for the size unless it is known."""
        self._path, self._found = path, path.found()
        self._at, self._sought = 0, threading.local()

    @property
    def name(self) -> str:
        """The URI."""
        return str(self._path)

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """The position of the next read."""
        return int(getattr(self._sought, "at", self._at))

    def size(self) -> int:
        """The size of the object, for Arrow."""
        return self._found.size

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self._found.size}[whence]
        self._sought.at = self._at = max(0, base + offset)
        return self._at

    def read_buffer(self, size: int | None = -1) -> Any:
        """Up to `size` bytes as a buffer, without a copy."""
        import pyarrow as pa

        start = self.tell()
        end = self._found.size if size is None or size < 0 else min(self._found.size, start + size)
        data = self._range(start, end) if end > start else b""
        self._sought.__dict__.pop("at", None)
        self._at = max(start, end)
        return pa.py_buffer(data)

    def read(self, size: int | None = -1) -> bytes:
        """Up to `size` bytes."""
        return bytes(self.read_buffer(size).to_pybytes())

    readall = read

    def readinto(self, target: Any) -> int:
        """Read into a buffer."""
        data = memoryview(self.read_buffer(len(target))).cast("B")
        target[: len(data)] = data
        return len(data)

    def _range(self, start: int, end: int) -> Any:
        from adapt.traces.locations.failures import Truncated, retried

        def request() -> Any:
            data = self._path.client.read(self._path.key, (start, end), self._found.version)
            if len(data) != end - start:
                raise Truncated(f"the store sent {len(data):,} of {end - start:,} bytes")
            return data

        try:
            return retried(self._path, request)
        except FileNotFoundError:
            raise BadInput(f"{self._path} vanished while it was read; run again once nothing removes it") from None


def _matches(parts: tuple[str, ...], asked: list[str]) -> bool:
    """Whether the parts of a path match those of a pattern."""
    if not asked:
        return not parts
    if asked[0] == "**":
        return any(_matches(parts[skip:], asked[1:]) for skip in range(len(parts)))
    return bool(parts) and fnmatchcase(parts[0], asked[0]) and _matches(parts[1:], asked[1:])
