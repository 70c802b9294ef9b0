"""The names by which hash functions are chosen; light enough for `--help`."""

from enum import StrEnum


class HashName(StrEnum):
    """A hash function of plans. Which one is part of the plan."""

    MURMUR3 = "murmur3"
    """MurmurHash3 x64 128, seed 0, read as the number h1 * 2^64 + h2."""

    XXHASH64 = "xxhash64"
    """xxHash64, seed 42, as Spark evaluates it natively."""
