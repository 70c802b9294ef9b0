"""The files of an export, before they are written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

Content: TypeAlias = bytes | pa.Table


@dataclass(frozen=True, slots=True)
class File:
    """One file of an export."""

    content: Content  # bytes, or a table that becomes Parquet
    about: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program included in an export."""

    about: str
    package: str
    file: str  # its file name


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files of an export, with instructions."""

    files: Mapping[str, File]
    use: str  # instructions in Markdown, with an example; `{folder}` is replaced by the folder's name
    programs: Mapping[str, Program] = field(default_factory=dict)  # included programs by exported name
