"""The place of several traces that are one stream."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from adapt.core.values import instant
from adapt.traces.locations.run_folders import MANIFEST


@dataclass(frozen=True)
class SeriesPath:
    """Several traces as one path, in time order."""

    members: tuple[Path, ...]  # their folders
    text: str  # the glob, folder or list that names them
    span_us: tuple[int, int]  # times of the first and the last row, in microseconds since 1970
    # makes their common manifest, whose file names begin with the number of the trace
    join: Callable[["SeriesPath"], Any]

    def __str__(self) -> str:
        """The glob, folder or list."""
        return self.text

    @property
    def sentence(self) -> str:
        """How many traces, and the time that they span."""
        first, last = map(instant, self.span_us)
        return f"{len(self.members)} traces from {first} to {last}"

    @cached_property
    def manifest(self) -> Any:
        """The manifest of all rows, made when it is first needed."""
        return self.join(self)

    @property
    def parent(self) -> Path:
        """The folder of the first trace."""
        return self.members[0].parent

    @property
    def name(self) -> str:
        """The name of that folder."""
        return self.parent.absolute().name

    def with_name(self, name: str) -> Path:
        """A file next to the traces."""
        return self.parent / name

    def absolute(self) -> "SeriesPath":
        """With absolute members."""
        return replace(self, members=tuple(each.absolute() for each in self.members))

    def is_file(self) -> bool:
        """Always false: a series is a folder."""
        return False

    def is_dir(self) -> bool:
        """Always true."""
        return True

    exists = is_dir

    def __truediv__(self, name: str) -> "Path | SeriesPath":
        """A file of a trace, by a name in the common manifest."""
        if not name:
            return self
        number, _, rest = str(name).partition("/")
        return self.members[0] / MANIFEST if not rest else self.members[int(number)] / rest
