"""Keys, key types and weights of a keyed stream."""

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

Key: TypeAlias = str | int | bytes | None
"""One partitioning key. Null is a key of its own."""


class KeyType(StrEnum):
    """Type of a key in its source; engines hash by it.

    `decimal(P,S)` and several columns, such as `(string,int32)`, are types too.
    """

    STRING = "string"
    INT64 = "int64"
    BINARY = "binary"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"

    @classmethod
    def _missing_(cls, value: object) -> "KeyType | None":
        """Types with parameters, made once each."""
        text = str(value)
        if text.startswith("("):
            columns = _columns(text)
            if len(columns) < 2 or any(each.startswith("(") for each in columns) or text != several(columns):
                return None
        elif not re.fullmatch(r"decimal\([1-9]\d?,\d\d?\)", text):
            return None
        member = str.__new__(cls, text)
        member._name_, member._value_ = text, text
        return cls._value2member_map_.setdefault(text, member)  # type: ignore[return-value] # the members of this class

    @cached_property
    def columns(self) -> "tuple[KeyType, ...]":
        """The types of several columns; empty for one."""
        return _columns(self.value)

    @cached_property
    def storage(self) -> "KeyType":
        """Type of the column that holds such keys."""
        if self in (KeyType.INT8, KeyType.INT16, KeyType.INT32, KeyType.INT64):
            return KeyType.INT64
        return KeyType.BINARY if self is KeyType.BINARY else KeyType.STRING

    @cached_property
    def precision(self) -> tuple[int, int] | None:
        """Digits of a decimal, and those after its point."""
        found = re.fullmatch(r"decimal\((\d+),(\d+)\)", self.value)
        return found and (int(found[1]), int(found[2]))


COLUMN_TYPES = (KeyType.STRING, KeyType.INT64, KeyType.BINARY)
"""The types of the columns that hold keys."""


def _columns(text: str) -> tuple[KeyType, ...]:
    found = re.findall(r"decimal\(\d+,\d+\)|[^,]+", text[1:-1]) if text.startswith("(") else ()
    return tuple(map(KeyType, found))


def several(columns: Iterable[KeyType]) -> str:
    """The name of the type of several columns."""
    return f"({','.join(columns)})"


class Weight(StrEnum):
    """What a row weighs when keys are counted."""

    COUNT = "count"
    COST = "cost"
    BYTES = "bytes"
