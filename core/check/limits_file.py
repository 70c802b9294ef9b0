"""Read limits from TOML: `limits`, a list of expressions, and optional `worse_by`."""

import tomllib
from dataclasses import dataclass

from adapt.core.check.amount import percent_of
from adapt.core.check.limit import Limit, parse_limit
from adapt.core.errors import BadInput, UsageError, did_you_mean

_KNOWN = ("limits", "worse_by")


@dataclass(frozen=True, slots=True)
class LimitsFile:
    """Content of a limits file; `worse_by` is a share or None."""

    limits: tuple[Limit, ...]
    worse_by: float | None


def read_limits(text: str) -> LimitsFile:
    """Parse the text of a limits file."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"invalid TOML: {error}") from None
    for name in document:
        if name not in _KNOWN:
            raise BadInput(f"field {name!r} does not exist{did_you_mean(name, _KNOWN)}")
    texts = document.get("limits")
    if not isinstance(texts, list) or not texts or not all(isinstance(each, str) for each in texts):
        raise BadInput('limits must be a list of strings, such as ["imbalance <= 1.2", "p99_ms < 500"]')
    worse_by = document.get("worse_by")
    if worse_by is not None and not isinstance(worse_by, str):
        raise BadInput(f'worse_by must be a percentage in quotes, such as "5%" (got {worse_by!r})')
    return LimitsFile(
        tuple(parse_limit(each) for each in texts),
        None if worse_by is None else _worse_by(worse_by),
    )


def _worse_by(text: str) -> float:
    try:
        return percent_of(text)
    except UsageError as error:
        raise UsageError(f"worse_by: {error}") from None
