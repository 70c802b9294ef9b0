"""The failures a caller may handle differently; each knows its exit code.

A message is one sentence: what is wrong, with the value, where, and how to mend it. Anything that is not an
`AdaptError` is a bug.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar


class AdaptError(Exception):
    """A failure that is the user's to mend, not a bug."""

    exit_code: ClassVar[int] = 3


class UsageError(AdaptError):
    """An option or argument that cannot be what was meant."""

    exit_code: ClassVar[int] = 2


class BadInput(AdaptError):
    """Data that cannot be read as what it is said to be."""

    exit_code: ClassVar[int] = 3


class EnvironmentFailure(AdaptError):
    """The machine does not give what is needed: Java, disk, permission, a free output name."""

    exit_code: ClassVar[int] = 4


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The tail of a message about an unknown name: a near one if there is one, and what is known."""
    names = sorted(str(name) for name in known)
    hint = near_miss(word, names)
    return f"{hint} (there are: {', '.join(names)})" if names else hint


def near_miss(word: str, known: Iterable[str]) -> str:
    """The tail of a message about an unknown name: the nearest of those known, if one is near."""
    lowered = {name.lower(): name for name in reversed(list(known))}
    near = get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return f"; did you mean {lowered[near[0]]!r}?" if near else ""
