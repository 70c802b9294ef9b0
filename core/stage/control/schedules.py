"""What happens to workers by the clock, as a user writes it: which ones, from when to when, and how much.

`3@5s-60s`, `0:7@10s`, `1,4@0s-20s:50%`: workers (one, a list, A:B with both ends, or `all`), the time since the start at
which it begins and, if it ends, ends, and behind a colon the amount.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import TypeVar

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.disturbances import BURST_S, SLEEP_S, ExternalLoad, SlowDown
from adapt.core.stage.movement.spilling import MemoryChange
from adapt.core.units.amounts import bytes_of, seconds_of

_SCHEDULED = re.compile(r"([^@]+)@([^@:]+)(?::([^@]*))?")
_FROM_TO = re.compile(r"([^-]+)(?:-([^-]+))?")

Read = TypeVar("Read")


def external_loads(texts: Sequence[str], workers: int) -> list[ExternalLoad]:
    """External load on workers: `3@5s-60s`, or `3@5s:100us/50us` with the burst and the sleep of the process.

    Raises:
        UsageError: one is not written like this, or names a worker that there is not.
    """
    loads = []
    for text in texts:
        of, start_s, end_s, amount = _scheduled("load", text, workers, "3@5s-60s or 3@5s-60s:100us/50us")
        burst_s, sleep_s = (BURST_S, SLEEP_S) if amount is None else _burst_and_sleep(text, amount)
        loads += [ExternalLoad(worker, start_s, end_s, burst_s, sleep_s) for worker in of]
    return loads


def slow_downs(texts: Sequence[str], workers: int) -> list[SlowDown]:
    """Workers that run at a part of their speed: `3@5s-60s:50%`; at 0% they stand still.

    Raises:
        UsageError: one is not written like this, or names a worker that there is not.
    """
    slow = []
    for text in texts:
        of, start_s, end_s, amount = _scheduled("slow", text, workers, "3@5s-60s:50%")
        percent = re.fullmatch(r"(\d+(?:\.\d*)?)%", amount or "")
        if percent is None:
            raise UsageError(f"--slow {text!r} does not say what speed is left; write it as in 3@5s-60s:50%")
        slow += [SlowDown(worker, start_s, end_s, float(percent[1]) / 100) for worker in of]
    return slow


def memory_of_workers(texts: Sequence[str], workers: int) -> tuple[float | None, list[MemoryChange]]:
    """Memory of all workers, `1GB`, and what changes it later, `0@5s:512MB`.

    Returns:
        What each worker has at the start, None if nothing is said of memory; the changes.

    Raises:
        UsageError: one is not written like this, or names a worker that there is not.
    """
    at_the_start: float | None = None
    changes: list[MemoryChange] = []
    for text in texts:
        if "@" not in text:
            at_the_start = _told("memory", text, partial(bytes_of, text))
            continue
        of, at_s, end_s, amount = _scheduled("memory", text, workers, "1GB, or 0@5s:512MB")
        if end_s < inf or amount is None:
            raise UsageError(f"--memory {text!r} is not a change at one time to one size; write it as in 0@5s:512MB")
        size = _told("memory", text, partial(bytes_of, amount))
        changes += [MemoryChange(worker, at_s, size) for worker in of]
    if changes and at_the_start is None:
        raise UsageError("--memory changes, but is not said for the start; add e.g. --memory 1GB")
    return at_the_start, changes


def _scheduled(option: str, text: str, workers: int, example: str) -> tuple[list[int], float, float, str | None]:
    """Which workers, from when, to when, and the amount."""
    found = _SCHEDULED.fullmatch(text.strip())
    times = _FROM_TO.fullmatch(found[2]) if found else None
    if found is None or times is None:
        raise UsageError(f"--{option} {text!r} is no schedule; write it as in {example}")
    start_s, end_s = (
        _told(option, text, partial(seconds_of, part)) if part is not None else inf for part in times.groups()
    )
    if not start_s < end_s:
        raise UsageError(f"--{option} {text!r} ends before it begins; give times that rise, as in {example}")
    return _workers(option, text, found[1], workers), start_s, end_s, found[3]


def _workers(option: str, text: str, named: str, workers: int) -> list[int]:
    """The workers of `3`, `1,4`, `0:7` or `all`."""
    if named.strip() == "all":
        return list(range(workers))
    of: list[int] = []
    for part in named.split(","):
        ends = re.fullmatch(r"\s*(\d+)\s*(?::\s*(\d+)\s*)?", part)
        if ends is None:
            raise UsageError(f"--{option} {text!r}: {part!r} is no worker; give a number, 0:7, 1,4 or all")
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if max(first, last) >= workers:
            raise UsageError(
                f"--{option} {text!r}: there is no worker {max(first, last)}; workers run from 0 to {workers - 1}"
            )
        of += range(first, last + 1)
    return of


def _burst_and_sleep(text: str, amount: str) -> tuple[float, float]:
    burst, stroke, sleep = amount.partition("/")
    if not stroke:
        raise UsageError(f"--load {text!r}: {amount!r} is no burst and sleep; write them as in 3@5s-60s:100us/50us")
    return _told("load", text, lambda: (seconds_of(burst), seconds_of(sleep)))


def _told(option: str, text: str, read: Callable[[], Read]) -> Read:
    """What was read, or a refusal that names the option."""
    try:
        return read()
    except UsageError as error:
        raise UsageError(f"--{option} {text!r}: {error}") from None
