"""What takes CPU from a worker: other processes, slow-downs and pauses, by schedule."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from adapt.core.errors import BadInput
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.workers import SEGMENT

BURST_S = 100e-6
"""CPU that the external process of the paper takes each time."""

SLEEP_S = 50e-6
"""How long it then sleeps."""

WAIT_S = 25e-6
"""How long it waits on average before it gets the CPU: half a tuple. Calibrated: the operator keeps 75 of 175 us and so
loses 57 %, as reported; preemption at once would leave it 33 %, fair sharing 60 %."""


@dataclass(frozen=True, slots=True)
class ExternalLoad:
    """Another process that shares the CPU of a worker: it works for a burst, sleeps, waits for the CPU, and again.

    Source: Flux, section 4; the wait is a calibration.
    """

    worker: int
    start_s: float
    end_s: float
    burst_s: float = BURST_S
    sleep_s: float = SLEEP_S
    wait_s: float = WAIT_S

    @property
    def kept(self) -> float:
        """The share of the CPU that the operator keeps."""
        run = self.sleep_s + self.wait_s
        return run / (run + self.burst_s)

    def segment(self) -> tuple[float, float, float, float]:
        """Start, what the operator has of each cycle and what not in seconds, speed."""
        return self.start_s, self.sleep_s + self.wait_s, self.burst_s, 1.0


@dataclass(frozen=True, slots=True)
class SlowDown:
    """A worker whose CPU runs at a part of its speed; at 0 it stands still."""

    worker: int
    start_s: float
    end_s: float
    speed: float

    def segment(self) -> tuple[float, float, float, float]:
        """Start, what the operator has of each cycle and what not in seconds, speed."""
        return self.start_s, 1.0, 0.0, self.speed


def segments_of(workers: int, disturbances: Sequence[ExternalLoad | SlowDown]) -> tuple[Records, list[int]]:
    """How fast each worker works and when.

    Args:
        disturbances: In any order; those of a worker must not overlap.

    Returns:
        The segments of all workers, one worker after another, and where those of each begin, with the end; n + 1 long.

    Raises:
        BadInput: a disturbance is of no worker, ends before it starts, overlaps another, or leaves the worker nothing for
            ever.
    """
    segments: list[tuple[float, float, float, float]] = []
    firsts = [0]
    for one in disturbances:
        _check(workers, one)
    for worker in range(workers):
        own = sorted((one for one in disturbances if one.worker == worker), key=lambda one: one.start_s)
        for one, following in pairwise(own):
            if following.start_s < one.end_s:
                raise BadInput(
                    f"two disturbances of worker {worker} overlap from {following.start_s:g} to {one.end_s:g} s; "
                    "let one end where the next starts"
                )
        segments.append((0.0, 1.0, 0.0, 1.0))
        for one in own:
            segments.append(one.segment())
            if one.end_s < np.inf:
                segments.append((one.end_s, 1.0, 0.0, 1.0))
        firsts.append(len(segments))
    return np.array(segments, SEGMENT), firsts


def _check(workers: int, one: ExternalLoad | SlowDown) -> None:
    if not 0 <= one.worker < workers:
        raise BadInput(f"a disturbance is of worker {one.worker}, but workers run from 0 to {workers - 1}")
    if not 0 <= one.start_s < one.end_s:
        raise BadInput(
            f"a disturbance of worker {one.worker} lasts from {one.start_s:g} to {one.end_s:g} s; "
            "it must start at 0 or later and end after that"
        )
    if isinstance(one, SlowDown):
        if not 0 <= one.speed < np.inf or (one.speed == 0 and one.end_s == np.inf):
            raise BadInput(
                f"worker {one.worker} runs at {one.speed:g} of its speed from {one.start_s:g} s; a speed is finite, from 0 "
                "up, and 0 only until some time"
            )
    elif not (one.burst_s > 0 and one.sleep_s + one.wait_s > 0 and min(one.sleep_s, one.wait_s) >= 0):
        raise BadInput(
            f"the external load of worker {one.worker} takes {one.burst_s:g} s after {one.sleep_s:g} s of sleep and "
            f"{one.wait_s:g} s of waiting; the burst must be above 0, and the others together"
        )
