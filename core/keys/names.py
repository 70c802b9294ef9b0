"""Names of hash functions, quick to import for `--help`."""

from enum import StrEnum


class HashName(StrEnum):
    """Hash functions of plans."""

    MURMUR3 = "murmur3"
    """MurmurHash3 x64 128, seed 0, read as the number h1 * 2^64 + h2."""

    XXHASH64 = "xxhash64"
    """xxHash64, seed 42, as Spark evaluates it natively."""
