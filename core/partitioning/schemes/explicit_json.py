"""An explicit map as JSON, without a loop over its keys."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.stream import KeyType

_ESCAPED = r'[\x00-\x1f"\\]'
_TEXT = pa.large_string()
_DIGITS = np.array([f"{byte:02x}" for byte in range(256)], "S2")


def explicit_data(explicit: ExplicitMap) -> dict[str, int]:
    """Key text to channel, in key order, without the null key."""
    texts, channels = _texts_and_channels(explicit)
    return dict(zip(texts.to_pylist(), channels.to_pylist(), strict=True))


def explicit_json(explicit: ExplicitMap) -> bytes:
    """The same object, sorted by text, as JSON without spaces."""
    texts, channels = _texts_and_channels(explicit)
    order = pc.sort_indices(texts)
    quoted, channels = _quoted(texts.take(order)), channels.take(order).cast(_TEXT)
    entries = _side_by_side(_side_by_side(quoted, channels, ":"), "", ",")
    return b"{" + _joined(entries)[:-1] + b"}"


def _texts_and_channels(explicit: ExplicitMap) -> tuple[pa.Array, pa.Array]:
    """Of each key but null."""
    present = explicit.column.is_valid()
    return _texts(explicit.column.filter(present), explicit.key_type), pa.array(explicit.channels).filter(present)


def _texts(keys: pa.Array, key_type: KeyType) -> pa.Array:
    """The text of each key, as `key_to_text` gives it."""
    if key_type is not KeyType.BINARY:
        return keys.cast(_TEXT)
    column = keys.cast(pa.large_binary())
    digits = _DIGITS[np.frombuffer(_joined(column), np.uint8)].tobytes()
    lengths = pc.binary_length(column).to_numpy()
    offsets = np.concatenate(([0], np.cumsum(2 * lengths))).astype(np.int64)
    return pa.LargeStringArray.from_buffers(len(column), pa.py_buffer(offsets), pa.py_buffer(digits))


def _quoted(texts: pa.Array) -> pa.Array:
    """Each text quoted and escaped as JSON."""
    plain = _side_by_side("", texts, "", '"')
    escaped = pc.match_substring_regex(texts, _ESCAPED)
    if not pc.any(escaped).as_py():
        return plain
    spelt = [json.dumps(text, ensure_ascii=False) for text in texts.filter(escaped).to_pylist()]
    return pc.replace_with_mask(plain, escaped, pa.array(spelt, _TEXT))


def _side_by_side(*parts: pa.Array | str) -> pa.Array:
    """The parts of each row joined by the last part; a text is the same in every row."""
    return pc.binary_join_element_wise(*(pa.scalar(part, _TEXT) if isinstance(part, str) else part for part in parts))


def _joined(texts: pa.Array) -> bytes:
    """The bytes of all rows, one after the other."""
    if not len(texts):
        return b""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64, len(texts) + 1, texts.offset * 8)
    return bytes(memoryview(data)[int(ends[0]) : int(ends[-1])]) if data is not None else b""
