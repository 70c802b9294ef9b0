"""Keys, key types and weights of a keyed stream."""

from enum import StrEnum
from typing import TypeAlias

Key: TypeAlias = str | int | bytes | None
"""One partitioning key. Null is a key of its own."""


class KeyType(StrEnum):
    """The type of a key column, which affects the hash."""

    STRING = "string"
    INT64 = "int64"
    BINARY = "binary"


class Weight(StrEnum):
    """What a row weighs when keys are counted."""

    COUNT = "count"
    COST = "cost"
    BYTES = "bytes"
