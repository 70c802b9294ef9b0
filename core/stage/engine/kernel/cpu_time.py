"""End of work on a shared or slowed CPU."""

import math
from typing import Any

import numpy as np

from adapt.core.compiled import inlined
from adapt.core.stage.records.finding import segment_at
from adapt.core.stage.records.world import World


@inlined
def done_at(world: World, worker: Any, begin: float, work: float) -> Any:
    """End time of work on a CPU with these segments.

    A segment consists of cycles: `run` seconds for the operator, then `burst` seconds for others.
    """
    speed = segment_at(world, worker.segment).speed
    if worker.segment + 1 == worker.segments_end and segment_at(world, worker.segment).burst == 0 and speed == 1:
        return begin + work
    at = begin
    while True:
        segment = segment_at(world, worker.segment)
        end = np.inf
        if worker.segment + 1 < worker.segments_end:
            end = segment_at(world, worker.segment + 1).start
        if at < end:
            if segment.run > 0 and segment.speed > 0:
                target = _had(segment, at) + work / segment.speed
                done = segment.start + target
                if segment.burst > 0:
                    cycle = max(0.0, math.ceil(target / segment.run) - 1.0)
                    done += cycle * segment.burst
                done = max(done, at)
                if done <= end:
                    return done
                work -= (_had(segment, end) - _had(segment, at)) * segment.speed
                work = max(work, 0.0)
            elif end == np.inf:
                return np.inf
            at = end
        worker.segment += 1


@inlined
def _had(segment: Any, at: float) -> Any:
    """CPU seconds available to the operator from the start of a segment until `at`."""
    passed = at - segment.start
    if segment.burst == 0:
        return passed
    cycles = math.floor(passed / (segment.run + segment.burst))
    return cycles * segment.run + min(passed - cycles * (segment.run + segment.burst), segment.run)
