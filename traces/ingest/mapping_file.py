"""Mapping files: options of `adapt ingest` in TOML.

Fields have the names of the options. A `[[stream]]` names its files (`paths`) or rows (`where`) and may override the
fields at the top of the file.
"""

import re
import tomllib
from collections.abc import Mapping as Fields
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapt.core.errors import BadInput
from adapt.core.toml import Element, called, elements, only
from adapt.traces.ingest.mapping import key_text
from adapt.traces.read_errors import readable
from adapt.traces.sources.names import FormatName

_TEXTS = (
    *("key", "time", "cost", "cost-unit", "bytes", "partition", "time-format", "time-zone"),
    *("pattern", "delimiter", "quote"),
)
_LISTS = ("keep", "columns", "property")
OF_STREAM = (*_TEXTS, *_LISTS, "format", "header")
"""Fields that a stream may override."""

_TOP = (*OF_STREAM, "stream", "dedup", "shift-clock", "max-lateness", "hash-keys", "sample-keys", "max-rejects")
_OWN = (*OF_STREAM, "name", "paths", "where", "shift-clock")


@dataclass(frozen=True, slots=True)
class StreamFields:
    """One stream of a mapping file."""

    name: str  # value of `stream` in its rows
    paths: tuple[str, ...]  # globs of its files; empty for all files
    where: str  # a Spark SQL expression that holds for its rows; empty for all rows
    shift_clock: str  # how far its clock is shifted, with a sign to shift it back; empty to keep it
    options: Fields[str, Any]  # other options, by name


@dataclass(frozen=True, slots=True)
class MappingFile:
    """Content of a mapping file."""

    options: Fields[str, Any]  # values by option
    streams: tuple[StreamFields, ...]  # the streams; a row belongs to the first that it matches


def read_mapping_file(path: Path) -> MappingFile:
    """Read a mapping file."""
    with readable(path):
        if not path.exists():
            raise BadInput(f"{path} does not exist; --mapping takes a TOML file")
        text = path.read_bytes()
    try:
        document = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not valid TOML: {error}") from error
    top = {name: value for name, value in document.items() if name != "stream" or isinstance(value, str)}
    options = _options(str(path), top, _TOP)
    given = [] if isinstance(document.get("stream"), str) else elements(document, "stream")
    streams = tuple(_stream(str(path), fields) for fields in given)
    names = [stream.name for stream in streams]
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadInput(
            f"{path}: two streams are named {twice[0]!r}; names must differ, but a stream may have several paths"
        )
    return MappingFile(options, streams)


def _stream(file: str, fields: Fields[str, Any]) -> StreamFields:
    where = f"{file}: {called('stream', fields)}"
    only(where, fields, _OWN)
    element = Element(where, fields, _OWN)
    name, shift = element.text("name"), element.text_or_none("shift-clock") or ""
    if shift and re.search(r"[*?]", name):
        raise BadInput(f"{where}: the name of a stream with shift-clock must not contain * or ?")
    own = {field: value for field, value in fields.items() if field in OF_STREAM}
    paths = [fields["paths"]] if isinstance(fields.get("paths"), str) else fields.get("paths", [])
    return StreamFields(
        name, _texts(where, "paths", paths), element.text_or_none("where") or "", shift, _options(where, own, OF_STREAM)
    )


def _options(where: str, fields: Fields[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    element = Element(where, fields, known)
    options: dict[str, Any] = {}
    for name in fields:
        if name in (*_LISTS, "shift-clock"):
            given = fields[name]
            options[name] = _texts(where, name, [given] if isinstance(given, str) and name != "columns" else given)
        elif name == "key" and not isinstance(fields[name], str):
            options[name] = key_text(_texts(where, name, fields[name]))
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
        wanted = "a text or a list of texts" if name == "key" else "a list of strings"
        raise BadInput(f"{where}: {name} must be {wanted} (got {given!r})")
    return tuple(given)
