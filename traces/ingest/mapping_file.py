"""A mapping in a file: what `adapt ingest` is told by options, in TOML, and several streams each in its own way.

Fields are called as the options are. A `[[stream]]` says which files (`paths`) or rows (`where`) are its own, and what
is otherwise with it; what it leaves out is as the file says at its top.
"""

import re
import tomllib
from collections.abc import Mapping as Fields
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapt.core.errors import BadInput
from adapt.core.toml import Element, called, elements, only
from adapt.traces.read_errors import readable
from adapt.traces.sources.names import FormatName

_TEXTS = ("key", "time", "cost", "bytes", "time-format", "time-zone", "pattern", "kcat-format", "delimiter", "quote")
_LISTS = ("keep", "columns")
OF_STREAM = (*_TEXTS, *_LISTS, "format", "header")
"""What a stream may have of its own."""

_TOP = (*OF_STREAM, "stream", "unique", "clock", "most-late", "hash-keys", "sample-keys", "max-rejects")
_OWN = (*OF_STREAM, "name", "paths", "where", "clock")


@dataclass(frozen=True, slots=True)
class StreamFields:
    """What the file says of one stream.

    Attributes:
        name: What its rows have as `stream`.
        paths: Globs of the paths of its files; none for all files.
        where: A Spark SQL expression that is true of its rows; empty for all rows.
        clock: By how much its clock is set forward, with a sign if back; empty for not at all.
        options: What is otherwise with it, by option.
    """

    name: str
    paths: tuple[str, ...]
    where: str
    clock: str
    options: Fields[str, Any]


@dataclass(frozen=True, slots=True)
class MappingFile:
    """What a file says.

    Attributes:
        options: By option, as on the command line.
        streams: In the order in which a row is tried against them.
    """

    options: Fields[str, Any]
    streams: tuple[StreamFields, ...]


def read_mapping_file(path: Path) -> MappingFile:
    """Read a mapping.

    Raises:
        BadInput: there is no such file, it is no TOML, or has a field that is not known or of another type.
    """
    with readable(path):
        if not path.exists():
            raise BadInput(f"{path}: there is no such file; --mapping takes a TOML file")
        text = path.read_bytes()
    try:
        document = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is no TOML: {error}") from error
    top = {name: value for name, value in document.items() if name != "stream" or isinstance(value, str)}
    options = _options(str(path), top, _TOP)
    given = [] if isinstance(document.get("stream"), str) else elements(document, "stream")
    streams = tuple(_stream(str(path), fields) for fields in given)
    names = [stream.name for stream in streams]
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadInput(f"{path}: two streams are named {twice[0]!r}; name each once, and give one several paths")
    return MappingFile(options, streams)


def _stream(file: str, fields: Fields[str, Any]) -> StreamFields:
    where = f"{file}: {called('stream', fields)}"
    only(where, fields, _OWN)
    element = Element(where, fields, _OWN)
    name, clock = element.text("name"), element.text_or_none("clock") or ""
    if clock and re.search(r"[*?]", name):
        raise BadInput(f"{where}: a stream with a clock has no * or ? in its name")
    own = {field: value for field, value in fields.items() if field in OF_STREAM}
    paths = [fields["paths"]] if isinstance(fields.get("paths"), str) else fields.get("paths", [])
    return StreamFields(
        name, _texts(where, "paths", paths), element.text_or_none("where") or "", clock, _options(where, own, OF_STREAM)
    )


def _options(where: str, fields: Fields[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    element = Element(where, fields, known)
    options: dict[str, Any] = {}
    for name in fields:
        if name in ("keep", "columns", "clock"):
            given = fields[name]
            options[name] = _texts(where, name, [given] if isinstance(given, str) and name != "columns" else given)
        elif name in ("header", "hash-keys"):
            options[name] = element.truth(name, False)
        elif name == "format":
            options[name] = element.choice(name, FormatName)
        elif name == "max-rejects" and isinstance(fields[name], int):
            options[name] = str(element.whole(name, 0))
        else:
            options[name] = element.text(name)
    return options


def _texts(where: str, name: str, given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
        raise BadInput(f"{where}: {name} is {given!r} instead of a list of texts")
    return tuple(given)
