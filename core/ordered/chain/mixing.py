"""Arithmetic on words of 64 bits in plain Python: numbers from 0 to below 2^64."""

MASK = (1 << 64) - 1
FOLD = 0x9E3779B97F4A7C15
"""The start and the factor of `folded`: 2^64 over the golden ratio, which is odd."""


def mixed(word: int) -> int:
    """A word that tells nothing of the one it comes from: each bit depends on all; one to one (SplitMix64's end)."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ word >> 27) * 0x94D049BB133111EB & MASK
    return word ^ word >> 31


def folded(fold: int, word: int) -> int:
    """What a sequence of words comes to: every word counts, and so does their order."""
    fold = (fold ^ word) * FOLD & MASK
    return fold ^ fold >> 32
