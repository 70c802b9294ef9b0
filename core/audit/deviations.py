"""Common deviations of clients: encodings of keys, hashes, and their sign."""

import re
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.engines.hash_functions.crc32 import crc32
from adapt.core.engines.hash_functions.java import array_codes, string_codes
from adapt.core.engines.hash_functions.md5 import md5
from adapt.core.engines.hash_functions.murmur3_32 import fnv1a, murmur3_32
from adapt.core.engines.kafka.hash import murmur2_of_bytes
from adapt.core.engines.placement import Hashes
from adapt.core.keys.columns import KeyBytes, key_bytes, key_type_of
from adapt.core.stream import KeyType

Places = NDArray[np.int64]

_HASHES: dict[str, Callable[[KeyBytes], Hashes]] = {
    "murmur2": murmur2_of_bytes,
    "CRC32": crc32,
    "FNV-1a": fnv1a,
    "MurmurHash3": murmur3_32,
    "Java's hashCode of strings": string_codes,
    "Java's hashCode of byte arrays": array_codes,
}

_SIGNS: dict[str, Callable[[Places], Places]] = {
    " without its sign bit": lambda hashes: hashes & 0x7FFFFFFF,
    " made positive by abs()": np.abs,
    " with its sign, modulo rounding down": lambda hashes: hashes,
    " as an unsigned number": lambda hashes: hashes & 0xFFFFFFFF,
}

_CLIENTS = {
    ("murmur2", " without its sign bit"): "Java's murmur2",
    ("CRC32", " as an unsigned number"): "librdkafka's CRC32",
    ("FNV-1a", " made positive by abs()"): "Sarama's FNV-1a",
}
"""What known clients do, of keys in any encoding."""

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")


def deviations(keys: pa.Array, partitions: int) -> Iterator[tuple[str, Places]]:
    """Names of common deviations, each with the partition of every key.

    Shapes (keys,).

    Args:
        keys: Neither null nor empty.
    """
    numbers = _numbers(keys)
    for encoding, sent in _encodings(keys, numbers):
        for name, hash_of in _HASHES.items():
            hashes = hash_of(sent).view(np.int32).astype(np.int64)
            for sign, positive in _SIGNS.items():
                yield f"{_CLIENTS.get((name, sign), name + sign)}{encoding}", positive(hashes) % partitions
        high, low = md5(sent)
        wide = np.uint64(partitions)
        yield f"MD5{encoding}", ((high % wide * np.uint64(2**64 % partitions) + low % wide) % wide).astype(np.int64)
    if numbers is not None:
        yield "the number modulo the partitions", numbers % partitions
        yield "the absolute number modulo the partitions", np.abs(numbers) % partitions


def _encodings(keys: pa.Array, numbers: Places | None) -> Iterator[tuple[str, KeyBytes]]:
    """Ways to send the keys, in words, as bytes; `numbers` as of `_numbers`."""
    kind = key_type_of(keys.type)
    if kind is not KeyType.INT64:
        yield "", key_bytes(keys)
    if kind is KeyType.STRING:
        yield " of text in JSON quotes", key_bytes(pc.binary_join_element_wise('"', keys.cast(pa.string()), '"', ""))
    if numbers is None:
        return
    if kind is not KeyType.STRING:
        yield " of numbers as text", key_bytes(pa.array(numbers).cast(pa.string()))
    for width in (8, 4, 2):
        if bool((numbers == numbers.astype(f"i{width}")).all()):
            for order, words in ((">", ""), ("<", " little-endian")):
                data = numbers.astype(f"{order}i{width}").view(np.uint8)
                yield (
                    f" of {width}-byte{words} integers",
                    KeyBytes(data, np.arange(len(keys) + 1, dtype=np.int64) * width),
                )


def _numbers(keys: pa.Array) -> Places | None:
    """The keys as integers, if all are: numbers, decimal text, or 4 or 8 bytes big-endian."""
    match key_type_of(keys.type):
        case KeyType.INT64:
            return np.asarray(keys.to_numpy(zero_copy_only=False), np.int64)
        case KeyType.STRING:
            texts = keys.to_pylist()
            return np.array([int(text) for text in texts]) if all(map(_INTEGER.fullmatch, texts)) else None
        case KeyType.BINARY:
            held = key_bytes(keys)
            widths = np.unique(np.diff(held.offsets))
            if len(widths) == 1 and widths[0] in (4, 8):
                data = held.data[held.offsets[0] : held.offsets[-1]]
                return data.view(f">i{widths[0]}").astype(np.int64)
    return None
