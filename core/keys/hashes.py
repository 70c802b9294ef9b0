"""Hash functions of plans: ring positions and remainders."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import mmh3
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.keys import murmur3, xxhash64
from adapt.core.keys.columns import KeyBytes, Words, key_bytes, one_array, one_key
from adapt.core.keys.names import HashName


class KeyHash(Protocol):
    """A hash of keys, the same on every machine."""

    @property
    def name(self) -> HashName:
        """Its name in plans."""

    @property
    def seed(self) -> int:
        """The seed, recorded in plans."""

    def positions(self, keys: pa.Array | pa.ChunkedArray | KeyBytes) -> tuple[Words, Words]:
        """Ring positions: high and low words, each of shape (rows,)."""

    def modulo(self, keys: pa.Array | pa.ChunkedArray, n: int) -> NDArray[np.int32]:
        """Hashes modulo n, for n < 2^31; shape (rows,), in [0, n)."""

    def position(self, key: bytes) -> tuple[int, int]:
        """The high and low word of one key."""

    def number(self, key: bytes) -> int:
        """The hash of one key, of which `modulo` takes remainders."""


@dataclass(frozen=True, slots=True)
class Murmur3:
    """MurmurHash3 x64 128, read as h1 * 2^64 + h2."""

    name: ClassVar[HashName] = HashName.MURMUR3
    seed: ClassVar[int] = murmur3.SEED

    def positions(self, keys: pa.Array | pa.ChunkedArray | KeyBytes) -> tuple[Words, Words]:
        """The words h1 and h2."""
        return murmur3.murmur3(_bytes_of(keys))

    def modulo(self, keys: pa.Array | pa.ChunkedArray, n: int) -> NDArray[np.int32]:
        """The 128-bit number modulo n, exact for n below 2^31."""
        high, low = self.positions(keys)
        divisor, carry = np.uint64(n), np.uint64(2**64 % n)
        return ((high % divisor * carry + low % divisor) % divisor).astype(np.int32)

    def position(self, key: bytes) -> tuple[int, int]:
        """The words h1 and h2."""
        words: tuple[int, int] = mmh3.hash64(key, self.seed, signed=False)
        return words

    def number(self, key: bytes) -> int:
        """The 128-bit number."""
        high, low = self.position(key)
        return high << 64 | low


@dataclass(frozen=True, slots=True)
class Xxhash64:
    """xxHash64, unsigned on the ring, signed for remainders as in Spark."""

    name: ClassVar[HashName] = HashName.XXHASH64
    seed: ClassVar[int] = xxhash64.SEED

    def positions(self, keys: pa.Array | pa.ChunkedArray | KeyBytes) -> tuple[Words, Words]:
        """The unsigned hash as high word, zeros as low word."""
        high = xxhash64.xxhash64(_bytes_of(keys))
        return high, np.zeros_like(high)

    def modulo(self, keys: pa.Array | pa.ChunkedArray, n: int) -> NDArray[np.int32]:
        """The signed hash modulo n, never negative."""
        signed = xxhash64.xxhash64(key_bytes(keys)).view(np.int64)
        return np.mod(signed, np.int64(n)).astype(np.int32)

    def position(self, key: bytes) -> tuple[int, int]:
        """The unsigned hash, and 0."""
        return xxhash64.xxhash64(one_key(key)).item(), 0

    def number(self, key: bytes) -> int:
        """The signed hash."""
        return xxhash64.xxhash64(one_key(key)).view(np.int64).item()


HASHES: dict[HashName, KeyHash] = {known.name: known for known in (Murmur3(), Xxhash64())}


@dataclass(frozen=True, slots=True)
class HashedKeys:
    """The keys of a column, hashed once for several lookups."""

    bytes: KeyBytes  # the keys as bytes; a null is the empty key
    missing: NDArray[np.bool_] | None  # which keys are null, shape (rows,); None without nulls
    high: Words  # high, low: their positions; each of shape (rows,)
    low: Words
    hash: HashName

    @classmethod
    def from_column(cls, keys: pa.Array | pa.ChunkedArray, hash: HashName) -> "HashedKeys":
        """Hash a column."""
        column = one_array(keys)
        missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
        as_bytes = key_bytes(column)
        return cls(as_bytes, missing, *HASHES[hash].positions(as_bytes), hash)

    def __len__(self) -> int:
        return len(self.high)


def _bytes_of(keys: pa.Array | pa.ChunkedArray | KeyBytes) -> KeyBytes:
    return keys if isinstance(keys, KeyBytes) else key_bytes(keys)
