"""Disturbances of workers: external load, slowdowns and pauses."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from adapt.core.errors import BadInput
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.workers import SEGMENT

BURST_S = 100e-6
"""CPU burst of the paper's external process."""

SLEEP_S = 50e-6
"""Its sleep after a burst."""

WAIT_S = 25e-6
"""Its mean wait for the CPU, half a service time. Calibrated: the operator keeps 75 of 175 us and loses 57 %, as
reported; immediate preemption would leave it 33 %, fair sharing 60 %."""


@dataclass(frozen=True, slots=True)
class ExternalLoad:
    """Another process on a worker's CPU: burst, sleep, wait, repeat.

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
        """Start, CPU seconds per cycle for operator and others, speed."""
        return self.start_s, self.sleep_s + self.wait_s, self.burst_s, 1.0


@dataclass(frozen=True, slots=True)
class SlowDown:
    """A worker at a fraction of its CPU speed; 0 pauses it."""

    worker: int
    start_s: float
    end_s: float
    speed: float

    def segment(self) -> tuple[float, float, float, float]:
        """Start, CPU seconds per cycle for operator and others, speed."""
        return self.start_s, 1.0, 0.0, self.speed


def segments_of(workers: int, disturbances: Sequence[ExternalLoad | SlowDown]) -> tuple[Records, list[int]]:
    """CPU segments of each worker.

    Args:
        disturbances: In any order; those of a worker must not overlap.

    Returns:
        The segments of all workers, worker by worker, and the n + 1 offsets of each worker's segments.
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
                    f"two disturbances of worker {worker} overlap from {following.start_s:g} to {one.end_s:g} s"
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
        raise BadInput(f"the worker of a disturbance must be from 0 to {workers - 1} (got {one.worker})")
    if not 0 <= one.start_s < one.end_s:
        raise BadInput(
            f"a disturbance must start at 0 s or later and end after its start (got {one.start_s:g} to {one.end_s:g} s"
            f" for worker {one.worker})"
        )
    if isinstance(one, SlowDown):
        if not 0 <= one.speed < np.inf or (one.speed == 0 and one.end_s == np.inf):
            raise BadInput(
                f"the speed of a worker must be finite and above 0, or 0 with an end (got {one.speed:g} for worker"
                f" {one.worker} from {one.start_s:g} s)"
            )
    elif not (one.burst_s > 0 and one.sleep_s + one.wait_s > 0 and min(one.sleep_s, one.wait_s) >= 0):
        raise BadInput(
            f"external load needs a burst above 0 s, and a sleep or wait above 0 s (got {one.burst_s:g},"
            f" {one.sleep_s:g} and {one.wait_s:g} s for worker {one.worker})"
        )
