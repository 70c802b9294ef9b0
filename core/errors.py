"""Errors that a caller can handle, each with its exit code.

A message says in one line what was given, what is required, and how to fix it. Any other exception is a bug.
"""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from heapq import nlargest
from typing import ClassVar


class AdaptError(Exception):
    """An error that the user can fix."""

    exit_code: ClassVar[int] = 3

    def __str__(self) -> str:
        """The message, without secrets."""
        return redacted(super().__str__())


class UsageError(AdaptError):
    """An invalid option or argument."""

    exit_code: ClassVar[int] = 2


class BadInput(AdaptError):
    """Invalid input data."""

    exit_code: ClassVar[int] = 3


class EnvironmentFailure(AdaptError):
    """A missing resource: Java, disk space, a permission, a free output name."""

    exit_code: ClassVar[int] = 4


class Interrupted(AdaptError):
    """An interrupt by the user that keeps some results."""

    exit_code: ClassVar[int] = 130


_LISTED = 12


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name.

    Lists at most a dozen names, the nearest first where there are more.
    """
    names = sorted(str(name) for name in known)
    hint = near_miss(word, names)
    if not names:
        return hint
    return f"{hint} Available: {listed(names, word)}" if hint else f"; available: {listed(names, word)}"


def near_miss(word: str, known: Iterable[str]) -> str:
    """The nearest match, for a message about an unknown name."""
    lowered = {name.lower(): name for name in reversed(list(known))}
    near = get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return f"; did you mean {lowered[near[0]]!r}?" if near else ""


def listed(names: Sequence[str], near: str = "") -> str:
    """Up to a dozen names, those nearest to a word first."""
    if len(names) <= _LISTED:
        return ", ".join(names)
    matcher = SequenceMatcher(b=near.lower())

    def similarity(name: str) -> float:
        matcher.set_seq1(name.lower())
        return matcher.quick_ratio()

    nearest = nlargest(_LISTED, names, key=similarity) if near else names[:_LISTED]
    return f"{', '.join(nearest)} and {len(names) - _LISTED:,} more"


# Secrets in shown or kept texts: passwords, tokens, signatures of URLs.
_NAME = (
    r"(?<![\w.-])[\w.-]*(?:secret|passw(?:or)?d|pwd|passphrase|token|credential|signature|jaas\.config"
    r"|(?:access|api|account|private|storage|shared)[._-]?key)[\w.-]*"
    r"|(?:spark|hadoop|fs|ssl|sasl)\.[\w.-]*key[\w.-]*"
    r"|(?<=[?&;])(?:sig|key|sas|auth)"
)
_VALUE = r"""\\?"(?:[^"\\]|\\.)*"|'[^']*'|[^\s&;,"'<>)]+"""
_SECRETS = (
    (re.compile(r"(?i)(jaas\.config[\"']?\s*[=:]).*"), r"\1..."),
    (re.compile(r"(://)[^\s/:@\"']*:(?!\d+[/,\s\"'])[^\s\"']*@|(\bjdbc:oracle:\w+:)[^\s@]*@"), r"\1\2...@"),
    (re.compile(r"(?<!abfs)(?<!abfss)(?<!hdfs)(?<!wasb)(?<!wasbs)(://)[^\s/?#\"'@]*@"), r"\1...@"),
    (re.compile(rf"(?i)((?:{_NAME})(?:[\"']\s*:\s*|[\"']?\s*=\s?|:(?!//)))(?:{_VALUE})"), r"\1..."),
)
_WORD = re.compile(rf"(?is)((?:--[\w-]+=)?(?:{_NAME})=).+")


def redacted(text: str) -> str:
    """A text with `...` in the place of each secret."""
    for secret, shown in _SECRETS if ":" in text or "=" in text else ():
        text = secret.sub(shown, text)
    return text


def redacted_word(word: str) -> str:
    """A command-line word; its secret value ends with it."""
    return redacted(_WORD.sub(r"\1...", word))
