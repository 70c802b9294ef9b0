"""The files of an export, before they are written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

Content: TypeAlias = bytes | pa.Table


@dataclass(frozen=True, slots=True)
class File:
    """One file of an export.

    Attributes:
        content: Bytes, or a table that becomes Parquet.
    """

    content: Content
    about: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program included in an export.

    Attributes:
        package: Its package.
        file: Its file name.
    """

    about: str
    package: str
    file: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files of an export, with instructions.

    Attributes:
        use: Instructions in Markdown, with an example; `{folder}` is replaced by the folder's name.
        programs: Included programs by exported name.
    """

    files: Mapping[str, File]
    use: str
    programs: Mapping[str, Program] = field(default_factory=dict)
