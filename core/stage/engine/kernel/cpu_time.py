"""End of work on a shared, slowed or paused CPU."""

import math
from typing import Any

import numpy as np

from adapt.core.compiled import inlined
from adapt.core.stage.records.finding import pause_at, segment_at
from adapt.core.stage.records.world import World


@inlined
def done_after_pauses(world: World, worker_number: int, worker: Any, begin: float, work: float) -> Any:
    """End time of work that pauses of its worker interrupt."""
    done = done_at(world, worker, begin, work)
    while worker.pause_from < done:
        pause = pause_at(world, worker_number * world.pauses + worker.paused)
        over = worker.pause_from + pause.lasts
        if over > begin:
            done += over - max(begin, worker.pause_from)
        worker.pause_from = over + pause.gap
        worker.paused += 1
        if worker.paused == world.pauses:
            worker.paused = 0
    return done


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
