"""Amounts with units given by options; an error names the option."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from adapt.core.errors import UsageError
from adapt.core.units.amounts import bits_of, bytes_of, micros_of, seconds_of

Amount = TypeVar("Amount")
Usual = TypeVar("Usual", bound=float | None)


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


def bits_of_workers(
    option: str, texts: Sequence[str], usual: Usual, workers: int | None
) -> float | Usual | tuple[float | Usual, ...]:
    """An option's bandwidth: one for all workers, or one each.

    A text such as 3=10Mbps is for some workers.

    Args:
        usual: Bandwidth where none is given.
        workers: Number of workers; None, unknown.
    """
    from adapt.core.stage.control.schedules import workers_of

    several = [text for text in texts if "=" not in text]
    if len(several) > 1:
        raise UsageError(f"{option} is given twice for all workers (second: {several[1]}); omit one")
    general: float | Usual = usual
    of: dict[int, float] = {}
    for text in texts:
        named, equals, amount = text.rpartition("=")
        value = bits(option, amount)
        if not equals:
            general = value
        elif workers is None:
            raise UsageError(f"{option} takes one bandwidth for all workers here (got {text!r})")
        else:
            of |= dict.fromkeys(amount_of(option, text, partial(workers_of, named=named, workers=workers)), value)
    return tuple(of.get(worker, general) for worker in range(workers or 0)) if of else general


def above_0(option: str, text: str) -> float:
    """An option's duration in seconds, which must be above 0."""
    value = seconds(option, text)
    if value == 0:
        raise UsageError(f"{option} must be above 0 (got {text})")
    return value
