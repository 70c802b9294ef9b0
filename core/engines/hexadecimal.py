"""Key columns as hexadecimal text, vectorized."""

import numpy as np
import pyarrow as pa

from adapt.core.keys.columns import key_bytes

_DIGITS = np.array([f"{byte:02x}" for byte in range(256)], "S2")


def hex_of(keys: pa.Array) -> pa.Array:
    """Hashed key bytes in hex, empty for null; shape (rows,)."""
    found = key_bytes(keys)
    begin, end = int(found.offsets[0]), int(found.offsets[-1])
    digits = _DIGITS[found.data[begin:end]].tobytes()
    offsets = 2 * (found.offsets - begin)
    return pa.LargeStringArray.from_buffers(len(keys), pa.py_buffer(offsets), pa.py_buffer(digits))
