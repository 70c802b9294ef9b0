"""Phrases for sentences: counted nouns, lists and percentages."""

from collections.abc import Sequence


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: `1 key`, `2,000 keys`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def with_article(noun: str) -> str:
    """A noun with its article: `a plan`, `an elastic run`."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def rounded(value: float, digits: int = 3) -> str:
    """A number with significant digits, by default three: `3,500,000`."""
    return f"{float(f'{value:.{digits}g}'):,.10g}"


def percent(share: float, digits: int = 3) -> str:
    """A share as a percentage with significant digits: `12.3 %`."""
    text = rounded(100 * share, digits)
    is_rounded_up = text == "100" and share < 1 and digits < 17  # all is said of all alone
    return percent(share, digits + 1) if is_rounded_up else f"{text} %"
