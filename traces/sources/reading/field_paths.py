"""Paths of nested fields, as expressions name them."""

import re
from collections.abc import Iterable, Iterator

import pyarrow as pa


def field_paths(schema: Iterable[pa.Field]) -> tuple[str, ...]:
    """Paths of the fields within struct columns, such as `event.user.id`."""
    return tuple(path for field in schema for path in _below(quoted_name(field.name), field.type))


def _below(path: str, kind: pa.DataType) -> Iterator[str]:
    for field in kind if pa.types.is_struct(kind) else ():
        below = f"{path}.{quoted_name(field.name)}"
        yield from [below] if not pa.types.is_struct(field.type) else _below(below, field.type)


def quoted_name(name: str) -> str:
    """A name in backticks, unless it is a plain word."""
    return name if re.fullmatch(r"\w+", name) else f"`{name}`"
