"""Errors of reading input: unreadable, not text, not CSV, damaged."""

import csv
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TypeVar

from adapt.core.errors import BadInput, UsageError
from adapt.core.values import visible

Parsed = TypeVar("Parsed")


@contextmanager
def readable(path: str | PathLike[str]) -> Iterator[None]:
    """Turn errors of the file system into bad input."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from error


def parsed(path: Path, parse: Callable[[str], Parsed], no_text: str = "is not UTF-8 text: {}") -> Parsed:
    """Read and parse a UTF-8 text file."""
    try:
        with readable(path):
            text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} {no_text.format(error)}") from error
    try:
        return parse(text)
    except (BadInput, UsageError) as error:
        raise type(error)(f"{path}: {error}") from error


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The non-blank rows of a UTF-8 CSV file with line numbers."""
    line = 0
    try:
        with readable(path), path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            for row in rows:
                line = rows.line_num
                if row:
                    yield line, row
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 CSV: {error.reason} after line {line}") from error
    except csv.Error as error:
        raise BadInput(f"{path} line {line + 1}: {error}") from error


@cache
def note_unsealed(path: str, remedy: str) -> None:
    """Warn once of a file whose numbers no checksum covers."""
    logging.getLogger(__name__).warning(
        "%s has no seal, as files of earlier versions and those edited by hand: whether its numbers are as they were"
        " written cannot be checked; %s to seal it",
        path,
        remedy,
    )


def damaged(path: object, why: object, remedy: str = "recreate the artefact") -> BadInput:
    """The error for a damaged file of an artefact."""
    if (failure := unencodable_name(why)) is not None:
        return failure
    reason = f"field {why} is missing" if isinstance(why, KeyError) else str(why).strip().split("\n")[0][:160]
    return BadInput(f"{path} is damaged: {reason or type(why).__name__}; {remedy}")


def unencodable_name(error: object) -> BadInput | None:
    """The name that libraries cannot open.

    None for other errors.
    """
    if not isinstance(error, UnicodeEncodeError) or not re.search("[\udc80-\udcff]", error.object):
        return None
    name = visible(error.object[max(0, error.start - 40) : error.end])
    return BadInput(f"names of files and folders must be UTF-8 (got '...{name}'); rename it, or its folder")
