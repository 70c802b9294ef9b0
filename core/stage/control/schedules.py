"""Schedules of disturbances as text.

`3@5s-60s`, `0:7@10s`, `1,4@0s-20s:50%`: workers (one, a list, an inclusive range A:B, or `all`), start and optional end
in simulated time, and an amount after a colon.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import TypeVar

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.faults import BURST_S, SLEEP_S, ExternalLoad, SlowDown
from adapt.core.stage.conditions.stage_settings import TroubleSettings
from adapt.core.stage.movement.spilling import MemoryChange
from adapt.core.units.amounts import bytes_of, seconds_of
from adapt.core.units.settings import SettingError

_SCHEDULED = re.compile(r"([^@]+)@([^@:]+)(?::([^@]*))?")
_FROM_TO = re.compile(r"([^-]+)(?:-([^-]+))?")

Read = TypeVar("Read")


def external_loads(texts: Sequence[str], workers: int) -> list[ExternalLoad]:
    """Parse external loads: `3@5s-60s`, or `3@5s:100us/50us` with burst and sleep."""
    loads = []
    for text in texts:
        of, start_s, end_s, amount = _scheduled("load", text, workers, "3@5s-60s or 3@5s-60s:100us/50us")
        burst_s, sleep_s = (BURST_S, SLEEP_S) if amount is None else _burst_and_sleep(text, amount)
        loads += [ExternalLoad(worker, start_s, end_s, burst_s, sleep_s) for worker in of]
    return loads


def slow_downs(texts: Sequence[str], workers: int) -> list[SlowDown]:
    """Parse slowdowns: `3@5s-60s:50%`; 0% pauses the worker."""
    slow = []
    for text in texts:
        of, start_s, end_s, amount = _scheduled("slow", text, workers, "3@5s-60s:50%")
        percent = re.fullmatch(r"(\d+(?:\.\d*)?)%", amount or "")
        if percent is None:
            raise _refused("slow", f"needs the remaining speed, such as 3@5s-60s:50% (got {text!r})")
        slow += [SlowDown(worker, start_s, end_s, float(percent[1]) / 100) for worker in of]
    return slow


def memory_of_workers(texts: Sequence[str], workers: int) -> tuple[float | None, list[MemoryChange]]:
    """Parse memory limits: `1GB` for all workers, `0@5s:512MB` for a later change.

    Returns:
        The initial limit per worker, None if not given, and the changes.
    """
    at_the_start: float | None = None
    changes: list[MemoryChange] = []
    for text in texts:
        if "@" not in text:
            if at_the_start is not None:
                raise _refused("memory", f"is given twice for all workers (second: {text}); omit one")
            at_the_start = _read("memory", text, partial(bytes_of, text))
            continue
        of, at_s, end_s, amount = _scheduled("memory", text, workers, "1GB, or 0@5s:512MB")
        if end_s < inf or amount is None:
            raise _refused("memory", f"needs one time and one size, such as 0@5s:512MB (got {text!r})")
        size = _read("memory", text, partial(bytes_of, amount))
        changes += [MemoryChange(worker, at_s, size) for worker in of]
    if changes and at_the_start is None:
        raise _refused("memory", "needs an initial limit too, such as {memory} 1GB")
    return at_the_start, changes


def _scheduled(option: str, text: str, workers: int, example: str) -> tuple[list[int], float, float, str | None]:
    """Workers, start, end and amount."""
    found = _SCHEDULED.fullmatch(text.strip())
    times = _FROM_TO.fullmatch(found[2]) if found else None
    if found is None or times is None:
        raise _refused(option, f"takes a schedule such as {example} (got {text!r})")
    start_s, end_s = (
        _read(option, text, partial(seconds_of, part)) if part is not None else inf for part in times.groups()
    )
    if not start_s < end_s:
        raise _refused(option, f"{text!r} ends before it begins; give ascending times, such as {example}")
    return _read(option, "", partial(workers_of, text, found[1], workers)), start_s, end_s, found[3]


def workers_of(text: str, named: str, workers: int) -> list[int]:
    """The workers of `3`, `1,4`, `0:7` or `all`."""
    if named.strip() == "all":
        return list(range(workers))
    of: list[int] = []
    for part in named.split(","):
        ends = re.fullmatch(r"\s*(\d+)\s*(?::\s*(\d+)\s*)?", part)
        if ends is None:
            raise UsageError(f"{text!r}: workers are a number, 0:7, 1,4 or all (got {part!r})")
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if max(first, last) >= workers:
            raise UsageError(f"{text!r}: workers run from 0 to {workers - 1} (got {max(first, last)})")
        of += range(first, last + 1)
    return of


def _burst_and_sleep(text: str, amount: str) -> tuple[float, float]:
    burst, stroke, sleep = amount.partition("/")
    if not stroke:
        raise _refused("load", f"needs burst and sleep after the colon, such as 3@5s-60s:100us/50us (got {text!r})")
    return _read("load", text, lambda: (seconds_of(burst), seconds_of(sleep)))


def _read(option: str, text: str, read: Callable[[], Read]) -> Read:
    """The value, or an error that names the setting, and its text unless that is empty."""
    try:
        return read()
    except UsageError as error:
        raise _refused(option, f"{text!r}: {error}" if text else str(error)) from None


def _refused(option: str, why: str) -> SettingError:
    return SettingError(TroubleSettings, f"{{{option}}} {why}")
