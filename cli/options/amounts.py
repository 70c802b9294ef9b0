"""Amounts with units given by options; an error names the option."""

from collections.abc import Callable
from typing import TypeVar

from adapt.core.errors import UsageError
from adapt.core.units.amounts import bits_of, bytes_of, micros_of, seconds_of

Amount = TypeVar("Amount")


def amount_of(option: str, text: str, read: Callable[[str], Amount]) -> Amount:
    """An option's amount; an error begins with the option."""
    try:
        return read(text)
    except UsageError as error:
        raise UsageError(f"{option} {error}") from None


def seconds(option: str, text: str) -> float:
    """An option's duration in seconds."""
    return amount_of(option, text, seconds_of)


def micros(option: str, text: str) -> float:
    """An option's duration in microseconds."""
    return amount_of(option, text, micros_of)


def size(option: str, text: str) -> float:
    """An option's size in bytes."""
    return amount_of(option, text, bytes_of)


def bits(option: str, text: str) -> float:
    """An option's bandwidth in bits per second."""
    return amount_of(option, text, bits_of)


def above_0(option: str, text: str) -> float:
    """An option's duration in seconds, which must be above 0."""
    value = seconds(option, text)
    if value == 0:
        raise UsageError(f"{option} must be above 0 (got {text})")
    return value


def above_0_or_none(option: str, text: str | None) -> float | None:
    """An option's duration in seconds, above 0, or None."""
    return None if text is None else above_0(option, text)
