"""The one place where results leave the program: data on stdout, in the format asked for."""

import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, TextIO, TypeAlias

import typer

from adapt.cli.formats import csv_text, json_text, markdown_text
from adapt.cli.narration import Step, Verbosity, narrate, progress, set_verbosity, verbosity
from adapt.cli.terminal import terminal_text
from adapt.core.table import Table

__all__ = [
    "Format",
    "FormatOption",
    "Step",
    "Verbosity",
    "narrate",
    "progress",
    "set_verbosity",
    "show",
    "verbosity",
]


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    """For people at a terminal."""
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
) -> None:
    """Print a result on stdout.

    Args:
        tables: What was measured.
        format: How to print it.
        document: The command's own JSON document, with its `schema` field; without it, JSON holds the tables.
        out: Where to print instead of stdout.
    """
    out = sys.stdout if out is None else out
    tables = [tables] if isinstance(tables, Table) else list(tables)
    encoding = getattr(out, "encoding", None) or "utf-8"
    speaks_unicode = encoding.lower().replace("-", "").startswith("utf")
    match format:
        case Format.JSON:
            text = json_text(tables, document, ascii_only=not speaks_unicode)
        case Format.CSV:
            text = csv_text(tables)
        case Format.MD:
            text = markdown_text(tables)
        case Format.TABLE:
            text = terminal_text(tables, out)
    if not speaks_unicode:
        text = text.translate(_PLAINER)
    out.write(text.encode(encoding, "backslashreplace").decode(encoding))


_PLAINER = str.maketrans({"\u202f": " ", "–": "-", "…": "...", "µ": "u"})
