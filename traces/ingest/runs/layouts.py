"""Plain layouts of times: fixed fields in a fixed order."""

import re

import numpy as np
from numpy.typing import NDArray

from adapt.traces.ingest.times import EPOCH_UNITS, ISO, TimeFormat

YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, MONTH_NAME, OFFSET, ISO_ZONE, FRACTION, T_OR_SPACE, MAY_END = range(-12, 0)
"""Steps of a layout; other steps are the byte at that place."""

UTC = "UTC"

_FIELDS = {
    "yyyy": YEAR,
    "MM": MONTH,
    "dd": DAY,
    "HH": HOUR,
    "mm": MINUTE,
    "ss": SECOND,
    "MMM": MONTH_NAME,
    "Z": OFFSET,
    "[.SSSSSS]": FRACTION,
    "[": MAY_END,
    "]": None,
}
_PIECE = re.compile(r"\[\.S{6}\]|([A-Za-z])\1*|[\[\]]|[ \-/:.,_]")

_ISO_STEPS = (
    *(YEAR, ord("-"), MONTH, ord("-"), DAY, MAY_END, T_OR_SPACE),
    *(HOUR, ord(":"), MINUTE, ord(":"), SECOND, FRACTION, ISO_ZONE),
)


def layout_of(form: TimeFormat, time_zone: str) -> NDArray[np.int64] | None:
    """Steps of a time format; None if it has no plain layout.

    Args:
        form: An epoch unit has no steps.
        time_zone: Zone of times without one; unless it is UTC, only times with a zone are plain.
    """
    if form.name in EPOCH_UNITS:
        return np.zeros(0, np.int64)
    steps = _ISO_STEPS if form.name == ISO else _steps(form.name)
    if steps is None or (time_zone != UTC and OFFSET not in steps and ISO_ZONE not in steps):
        return None
    return np.array(steps, np.int64)


def _steps(pattern: str) -> tuple[int, ...] | None:
    """Steps of a Spark datetime pattern; None if it has others than these."""
    steps: list[int] = []
    at = 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None:
            return None
        text = piece[0]
        if text in _FIELDS:
            steps += [step for step in (_FIELDS[text],) if step is not None]
        elif text.isalpha():
            return None
        else:
            steps.append(ord(text))
        at = piece.end()
    fields = [step for step in steps if step < MAY_END]
    dated = {YEAR, DAY} <= {*fields} and len({MONTH, MONTH_NAME} & {*fields}) == 1
    return tuple(steps) if dated and len({*fields}) == len(fields) else None
