"""Routing a file of keys to channels in bounded memory, without Spark."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import AdaptError, BadInput, UsageError
from adapt.core.keys.columns import key_type_of, keys_as_column
from adapt.core.keys.key_text import keys_from_texts
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.stream import KeyType
from adapt.traces.sources.reading.records import BOM
from adapt.traces.store.plans import read_plan

CHUNK_BYTES = 4 << 20


def route(plan: Plan | Path | str, keys: Any) -> NDArray[np.int32]:
    """The channel of each key by a plan.

    Args:
        plan: A plan, or the path of one.
        keys: A sequence, an array, or a column of a data frame.

    Raises:
        UsageError: the keys have another type than those of the plan.
        BadInput: the plan is missing or damaged.
    """
    read = plan if isinstance(plan, Plan) else read_plan(plan)
    column = keys_as_column(keys)
    if key_type_of(column.type) is not read.key_type.storage:
        raise UsageError(f"keys must be {read.key_type}, as those of the plan (got {key_type_of(column.type)})")
    return read.partitioner().channels_of(column)


def routed_lines(lines: IO[bytes], partitioner: Partitioner, key_type: KeyType, name: str) -> Iterator[bytes]:
    """Yield lines of key, tab and channel, in batches.

    A line is one key: text as is (without a trailing CR), whole numbers in decimal, binary in hex. An empty line is the
    empty key. A leading byte order mark is skipped.
    """
    line = 1
    rest = b""
    at_start = True
    while True:
        chunk = lines.read(CHUNK_BYTES)
        data = rest + chunk
        if chunk:
            cut = data.rfind(b"\n") + 1
            data, rest = data[:cut], data[cut:]
        if data and at_start:
            at_start = False
            data = data.removeprefix(BOM)
        if data:
            texts = _texts(data, name, line)
            channels = partitioner.channels_of(_keys(texts, key_type, name, line))
            yield _joined(texts, channels)
            line += len(texts)
        if not chunk:
            return


def _texts(data: bytes, name: str, line: int) -> pa.Array:
    """The lines of some bytes as text."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        at = line + data.count(b"\n", 0, error.start)
        raise BadInput(f"{name} line {at}: not UTF-8 text; keys are text, decimal numbers or hex") from error
    del text
    whole = data if data.endswith(b"\n") else data + b"\n"
    raw = np.frombuffer(whole, np.uint8)
    ends = np.flatnonzero(raw == 10)
    offsets = np.concatenate(([0], ends + 1)).astype(np.int64)
    lines = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(raw))
    return pc.replace_substring_regex(lines, r"\r?\n$", "")


def _keys(texts: pa.Array, key_type: KeyType, name: str, line: int) -> pa.Array:
    if key_type is KeyType.STRING:
        return texts
    if key_type is KeyType.INT64:
        try:
            numbers = texts.cast(pa.int64())
        except pa.ArrowInvalid:
            pass  # the loop below names the line
        else:
            if numbers.cast(texts.type).equals(texts):  # 0x10, 007 and -0 are other texts of the same numbers
                return numbers
    keys = []
    for at, text in enumerate(texts.to_pylist()):
        try:
            keys.append(keys_from_texts([text], key_type))
        except AdaptError as error:
            raise BadInput(f"{name} line {line + at}: {error}") from error
    return pa.concat_arrays(keys)


def _joined(texts: pa.Array, channels: NDArray[np.int32]) -> bytes:
    tab, end = pa.scalar("\t", pa.large_string()), pa.scalar("\n", pa.large_string())
    told = pc.binary_join_element_wise(texts, pa.array(channels).cast(pa.large_string()), tab)
    lines = pc.binary_join_element_wise(told, pa.scalar("", pa.large_string()), end)
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, np.int64)[: len(lines) + 1]
    return bytes(memoryview(data)[int(ends[0]) : int(ends[-1])])
