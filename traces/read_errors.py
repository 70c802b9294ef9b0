"""Input that the system does not let us read, said as bad input."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike

from adapt.core.errors import BadInput


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
