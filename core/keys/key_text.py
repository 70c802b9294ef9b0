"""Keys as text and as JSON values, exact for every type."""

import base64
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from adapt.core.errors import BadInput
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.keys.typed_keys import is_key_of, is_unicode, row_of
from adapt.core.stream import Key, KeyType


def key_to_text(key: str | int | bytes) -> str:
    """The text of a non-null key."""
    return key.hex() if isinstance(key, bytes) else str(key)


def keys_from_texts(texts: Iterable[str], key_type: KeyType) -> pa.Array:
    """The column of keys with these texts.

    Accepts only the output of `key_to_text` (and upper-case hex), so two texts are never one key.
    """
    return pa.array([_key_from_text(text, key_type) for text in texts], ARROW_TYPES[key_type])


def _key_from_text(text: str, key_type: KeyType) -> Key:
    match key_type.storage:
        case KeyType.STRING if is_unicode(text) and (key_type is KeyType.STRING or row_of(text, key_type) is not None):
            return text
        case KeyType.INT64 if _is_int64(text) and is_key_of(int(text), key_type):
            return int(text)
        case KeyType.BINARY if _is_hex(text):
            return bytes.fromhex(text)
    raise BadInput(f"{key_type} keys must be {_meant(key_type)} (got {text!r})")


def _meant(key_type: KeyType) -> str:
    if key_type.columns:
        return 'a JSON array such as ["US",7]'
    if key_type.storage is KeyType.INT64:
        return f"{key_type.value.removeprefix('int')}-bit integers in decimal"
    examples = {
        KeyType.STRING: "Unicode text",
        KeyType.BINARY: "bytes in hex",
        KeyType.BOOLEAN: "true or false",
        KeyType.DATE: "written as 2024-01-31",
    }
    if key_type.precision:
        return "decimal numbers"
    return examples.get(key_type, "written as 2024-01-31 23:59:59")


def _is_int64(text: str) -> bool:
    digits = text.removeprefix("-")
    short = digits.isascii() and digits.isdigit() and len(digits) < 20
    return short and str(int(text)) == text and -(2**63) <= int(text) < 2**63


def _is_hex(text: str) -> bool:
    return len(text) % 2 == 0 and all(digit in "0123456789abcdefABCDEF" for digit in text)


def packed_keys(keys: pa.Array) -> list[Any]:
    """Keys as JSON: integers as numbers, text and binary in base 64."""
    if pa.types.is_integer(keys.type):
        return list(keys.to_pylist())
    raw = keys.cast(pa.large_binary()).to_pylist()
    return [None if key is None else base64.b64encode(key).decode() for key in raw]


def unpacked_keys(keys: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The column from `packed_keys`; `kind` is its type."""
    if pa.types.is_integer(kind):
        return pa.array(keys, kind)
    return pa.array([None if key is None else base64.b64decode(key) for key in keys], pa.binary()).cast(kind)
