"""What an export consists of, before it is written."""

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
    """A program that goes with an export.

    Attributes:
        package: Where it lies.
        file: Its file there.
    """

    about: str
    package: str
    file: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files of an export and how they are used.

    Attributes:
        use: How to use them: Markdown, with an example to copy; `{folder}` stands for the folder's name.
        programs: Programs that go with them, by the name they are exported under.
    """

    files: Mapping[str, File]
    use: str
    programs: Mapping[str, Program] = field(default_factory=dict)
