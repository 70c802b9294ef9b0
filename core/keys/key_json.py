"""Keys as JSON values, exact for every key type."""

import base64
from collections.abc import Sequence
from typing import Any

import pyarrow as pa


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
