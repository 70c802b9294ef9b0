"""Results on stdout, in the requested format."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any, TextIO, TypeAlias

import typer

from adapt.cli.terminal.formats import csv_text, json_text, markdown_text, tables_document
from adapt.cli.terminal.narration import (
    Verbosity,
    is_muted,
    narrate,
    narrate_written,
    progress,
    readings,
    set_verbosity,
    verbosity,
)
from adapt.cli.terminal.terminal import Paragraph, terminal_text
from adapt.core.errors import EnvironmentFailure
from adapt.core.table import Table

__all__ = ["Format", "FormatOption", "ReaderGone", "Verbosity", "for_people", "is_for_programs", "narrate"]
__all__ += ["narrate_written", "progress", "set_verbosity", "show", "top", "verbosity", "verdict_of", "written_out"]

MOST_ROWS = 40
"""The most rows of a long table shown to people."""

_PLAINER = str.maketrans(
    {"\u202f": " ", "–": "-", "…": "...", "µ": "u"}
    | dict(zip("▁▂▃▄▅▆▇█", ".:-=+*%#", strict=True))  # shares over time
    | dict(zip("▏▎▍▌▋▊▉", "...:==#", strict=True))  # the ends of bars
)


class Format(StrEnum):
    """Output formats."""

    TABLE = "table"
    """Aligned text for a terminal."""
    JSON = "json"
    """One document with a `schema` field."""
    CSV = "csv"
    """Plain values under a header row."""
    MD = "md"
    """GitHub's Markdown tables."""


FormatOption: TypeAlias = Annotated[Format, typer.Option("--format", help="How to print the result.")]
"""The `--format` option; give it the default `Format.TABLE`."""


def show(
    tables: Table | Sequence[Table],
    format: Format = Format.TABLE,
    document: Mapping[str, Any] | None = None,
    out: TextIO | None = None,
    lead: Sequence[Paragraph] = (),
    code: str = "",
) -> None:
    """Print a result on stdout; nothing while muted.

    Args:
        document: The command's own JSON document, with its `schema` field; without it, JSON holds the tables.
        lead: Paragraphs before the tables, each a heading and sentences.
        code: What is printed after them for people, to paste.
    """
    if is_muted() and out is None:
        return
    out = sys.stdout if out is None else out
    tables = [tables] if isinstance(tables, Table) else list(tables)
    encoding = getattr(out, "encoding", None) or "utf-8"
    speaks_unicode = encoding.lower().replace("-", "").startswith("utf")
    with written_out():
        match format:
            case Format.JSON:
                document = tables_document(tables) if document is None else document
                document = {**document, **readings()}
                text = json_text(tables, document, ascii_only=not speaks_unicode)
            case Format.CSV:
                text = csv_text(tables)
            case Format.MD:
                text = markdown_text(tables, lead) + (f"\n```python\n{code}```\n" if code else "")
            case Format.TABLE:
                text = terminal_text(tables, out, lead) + (f"\n{code}" if code else "")
        if not speaks_unicode:
            text = text.translate(_PLAINER)
        out.write(text.encode(encoding, "backslashreplace").decode(encoding))
        out.flush()


def top(table: Table, most: int) -> Table:
    """The first rows of a table."""
    return replace(table, rows=table.rows[:most])


def is_for_programs(format: Format) -> bool:
    """Whether a program reads the result, so nothing is cut."""
    return format in (Format.CSV, Format.JSON)


def verdict_of(lead: Sequence[str]) -> Paragraph:
    """The paragraph of a verdict, headline first."""
    headline, *sentences = lead
    return [f"Verdict: {headline}", *sentences]


def for_people(table: Table, format: Format, head: int = MOST_ROWS) -> Table:
    """A table that may be long, cut unless a program reads it."""
    if is_for_programs(format) or len(table.rows) <= MOST_ROWS:
        return table
    more = len(table.rows) - head
    return replace(
        top(table, head), note=f"and {more:,} more rows (use --format csv for all); {table.note}".rstrip("; ")
    )


class ReaderGone(Exception):
    """The reader of stdout closed it; not a failure."""


@contextmanager
def written_out() -> Iterator[None]:
    """Flush stdout at the end, with errors as one sentence."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        _let_go()
        raise ReaderGone from error
    except OSError as error:
        _let_go()
        raise EnvironmentFailure(
            f"cannot write to stdout: {error.strerror or error}; free space or redirect it elsewhere"
        ) from error


def open_closed_streams() -> None:
    """Open closed standard streams on the null device.

    Otherwise, the next file that is opened would get their number.
    """
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - as long as the process


def _let_go() -> None:
    """Discard buffered output, so that Python does not fail on it at exit."""
    with suppress(OSError):  # stdout is not a file of the system
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
