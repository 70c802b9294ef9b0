"""Cuts of plain text files into blocks, range by range.

Tasks walk the ranges side by side, each from a guessed start of a record: the line end before it, outside the quotes
that the bytes before it show. A guess counts once the range before it ends there; after a wrong one the range is walked
again from where that one ends. So the blocks are those of one walk from the first byte to the last.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np

from adapt.core.errors import BadInput
from adapt.traces.sources.reading import blocks as sizes
from adapt.traces.sources.reading.blocks import Block, settled
from adapt.traces.sources.reading.containers import unpacked
from adapt.traces.sources.reading.files import Container, SourceFile
from adapt.traces.sources.reading.format import RecordFormat
from adapt.traces.sources.reading.records import last_line_end

_LOG = logging.getLogger(__name__)

RANGE_BYTES = 1 << 30
"""Size of a range; a multiple of `BLOCK_BYTES`."""

GUESS_BYTES = 1 << 20
"""Bytes before a range in which its first record is looked for."""

PACKED_BYTES_A_S = 20_000_000
"""About how many bytes of a compressed file one core unpacks and parses in a second."""

WARNED_S = 60
"""Shortest time of a task on one file that is worth a warning."""

ROUNDS = 3
"""Rounds in which all ranges with a wrong guess are walked again; then one at a time."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Where the records of a range begin."""

    begin: int  # byte of its first record
    end: int  # the byte after its last record
    lines: int  # line ends between the two
    blocks: Sequence[Sequence[int]]  # byte, and line from 0, of each block that begins after its first record


@dataclass(frozen=True, slots=True)
class Task:
    """A range to walk."""

    first: int  # the first byte of the range
    end: int  # the byte after its last
    begin: int | None = None  # byte of its first record; None to guess it
    certain: bool = False  # whether a record is known to begin there, so that an error is one of the file
    line: int = 1  # line of that byte, if certain


def ranges(file: SourceFile, form: object) -> range:
    """The first byte of each range of a file."""
    one = file.container is not Container.PLAIN or not isinstance(form, RecordFormat)
    return range(0, 1 if one else max(file.size, 1), max(file.size, 1) if one else RANGE_BYTES)


def warn_of_packed(files: Sequence[SourceFile]) -> None:
    """Log which compressed files take a core long to read."""
    for file in files:
        seconds = file.size / PACKED_BYTES_A_S
        if file.container is not Container.PLAIN and seconds >= WARNED_S:
            _LOG.warning(
                "%s is compressed (%s), so one core reads it alone, for about %d minutes; unpacked or in several files,"
                " all cores would share it",
                file.label,
                file.container.value,
                -(-seconds // 60),
            )


def walk(file: SourceFile, form: RecordFormat, task: Task) -> Walk | None:
    """The records of a range; None without a good guess."""
    try:
        with unpacked(file) as stream:
            begin = task.begin if task.begin is not None else _guessed(stream, form, task.first)
            return None if begin is None else _walked(stream, Block(0, file, begin, None, task.line), form, task.end)
    except BadInput:
        if task.certain:
            raise
        return None


def again(asked: range, walks: Mapping[int, Walk | None], done: int) -> list[Task]:
    """Ranges of a file to walk next.

    At first all, then those that were begun where no record begins.

    Args:
        asked: The first byte of each range.
        walks: The walks so far, by the first byte of the range.
        done: Rounds done.
    """
    if not done:
        return [Task(first, first + asked.step, None if first else 0, certain=not first) for first in asked]
    tasks: list[Task] = []
    end: int | None = 0
    line = 1
    for first in asked:
        walked = walks[first]
        if end is not None and (walked is None or walked.begin != end):
            tasks.append(Task(first, first + asked.step, end, not tasks, line))
        end = None if walked is None else walked.end
        line += 0 if walked is None else walked.lines
    return tasks if done <= ROUNDS else tasks[:1]


def blocks_of_walks(at: int, file: SourceFile, walks: Iterable[Walk]) -> list[Block]:
    """Blocks of a file whose ranges follow each other."""
    starts, line = [(0, 1)], 1
    for walked in walks:
        for byte, within in ((walked.begin, 0), *walked.blocks):
            if starts[-1][0] < byte < file.size:
                starts.append((byte, line + within))
        line += walked.lines
    ends = [start[0] for start in starts[1:]]
    return [
        Block(at, file, byte, None if end is None else end - byte, line)
        for (byte, line), end in zip(starts, [*ends, None], strict=True)
    ]


def cut(at: int, file: SourceFile, form: RecordFormat) -> list[Block]:
    """Blocks of one source file, walked at once."""
    if file.container is not Container.PLAIN or file.size <= sizes.BLOCK_BYTES:
        return [Block(at, file)]
    with unpacked(file) as stream:
        return blocks_of_walks(at, file, [_walked(stream, Block(at, file), form, file.size + 1)])


def _guessed(stream: IO[bytes], form: RecordFormat, first: int) -> int | None:
    """Where a record probably begins, at or before a byte."""
    before = max(0, first - GUESS_BYTES)
    stream.seek(before)
    data = np.frombuffer(stream.read(first - before), np.uint8)
    if before:
        ends = np.flatnonzero((data == 10) | (data == 13))
        if not len(ends):
            return None
        before, data = before + int(ends[0]) + 1, data[int(ends[0]) + 1 :]
    found = last_line_end(data, form.line_hider) or form.records(data, at_end=False)
    return before + found.used


def _walked(stream: IO[bytes], rest: Block, form: RecordFormat, end: int) -> Walk:
    """The first records of the rest of a file, up to the end of a range; blocks end with a chunk."""
    stream.seek(rest.offset)
    position, line, read = rest.offset, 0, rest.offset
    blocks: list[list[int]] = []
    for data, records, used, lines in settled(stream, rest, form, places=False):
        before, read = read, position + len(data) + used - records.used
        position += used
        line += lines
        if read >= end:
            break
        if read < rest.source.size and read // sizes.BLOCK_BYTES > before // sizes.BLOCK_BYTES:
            blocks.append([position, line])
    return Walk(rest.offset, position, line, blocks)
