"""Limits as a file keeps them: TOML with `limits`, a list of expressions, and perhaps `worse_by`."""

import tomllib
from dataclasses import dataclass

from adapt.core.check.amount import percent_of
from adapt.core.check.limit import Limit, parse_limit
from adapt.core.errors import BadInput, UsageError, did_you_mean

_KNOWN = ("limits", "worse_by")


@dataclass(frozen=True, slots=True)
class LimitsFile:
    """What a file holds; `worse_by` is a share, None where it does not say."""

    limits: tuple[Limit, ...]
    worse_by: float | None


def read_limits(text: str) -> LimitsFile:
    """The limits of a file's text.

    Raises:
        BadInput: it is no TOML, or its fields are not what they are to be.
        UsageError: one of the limits is none; the sentence tells which.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"it is not written as TOML: {error}") from None
    for name in document:
        if name not in _KNOWN:
            raise BadInput(f"there is no field {name!r}{did_you_mean(name, _KNOWN)}")
    texts = document.get("limits")
    if not isinstance(texts, list) or not texts or not all(isinstance(each, str) for each in texts):
        raise BadInput('limits is to be a list of texts, such as ["imbalance <= 1.2", "p99_ms < 500"]')
    worse_by = document.get("worse_by")
    if worse_by is not None and not isinstance(worse_by, str):
        raise BadInput(f'worse_by is {worse_by!r} instead of a percentage as a text, such as "5%"')
    return LimitsFile(
        tuple(_limit(number, each) for number, each in enumerate(texts, start=1)),
        None if worse_by is None else _worse_by(worse_by),
    )


def _limit(number: int, text: str) -> Limit:
    try:
        return parse_limit(text)
    except UsageError as error:
        raise UsageError(f"limits, number {number}: {error}") from None


def _worse_by(text: str) -> float:
    try:
        return percent_of(text)
    except UsageError as error:
        raise UsageError(f"worse_by: {error}") from None
