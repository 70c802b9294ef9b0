"""Input that the system does not let us read, said as bad input."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TypeVar

from adapt.core.errors import BadInput, UsageError

Parsed = TypeVar("Parsed")


@contextmanager
def readable(path: str | PathLike[str]) -> Iterator[None]:
    """While input is looked for and read: what the system refuses, such as a locked folder above it, is bad input.

    Raises:
        BadInput: the system refused; the sentence names `path`.
    """
    try:
        yield
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from error


def parsed(path: Path, parse: Callable[[str], Parsed], no_text: str = "is no text: {}") -> Parsed:
    """What a file of UTF-8 text means.

    Raises:
        BadInput, UsageError: it cannot be read, is `no_text`, or `parse` refuses it; the sentence names the file.
    """
    try:
        with readable(path):
            text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} {no_text.format(error)}") from error
    try:
        return parse(text)
    except (BadInput, UsageError) as error:
        raise type(error)(f"{path}: {error}") from error
