"""Mixing and folding of 64-bit words in plain Python."""

MASK = (1 << 64) - 1
FOLD = 0x9E3779B97F4A7C15
"""Start and factor of `folded`: 2^64 over the golden ratio, which is not a multiple of 2."""


def mixed(word: int) -> int:
    """One-to-one mix in which each bit depends on all (SplitMix64's finalizer)."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ word >> 27) * 0x94D049BB133111EB & MASK
    return word ^ word >> 31


def folded(fold: int, word: int) -> int:
    """Hash of a sequence of words, sensitive to their order."""
    fold = (fold ^ word) * FOLD & MASK
    return fold ^ fold >> 32
