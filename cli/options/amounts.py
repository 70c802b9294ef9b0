"""Amounts that options give as text, such as 45us or 250Mbps; a refusal names the option."""

from collections.abc import Callable

from adapt.core.errors import UsageError
from adapt.core.units.amounts import bits_of, seconds_of


def amount_of(option: str, text: str, read: Callable[[str], float]) -> float:
    """The amount that an option gives, or a refusal that names it."""
    try:
        return read(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None


def seconds(option: str, text: str) -> float:
    """The time that an option gives, 0 or more; seconds."""
    return amount_of(option, text, seconds_of)


def bits(option: str, text: str) -> float:
    """The bandwidth that an option gives; bits per second."""
    return amount_of(option, text, bits_of)


def above_0(option: str, text: str) -> float:
    """The time that an option gives, above 0; seconds."""
    value = seconds(option, text)
    if value == 0:
        raise UsageError(f"{option} {text} is no time; give one above 0")
    return value


def above_0_or_none(option: str, text: str | None) -> float | None:
    """The time that an option gives, above 0; None if it was left out."""
    return None if text is None else above_0(option, text)
