"""Speed-up of a replay at a chosen load of its workers."""

from dataclasses import replace
from math import inf

from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.offered_load import Bounds, Demand, bounds_of
from adapt.core.stage.input.speed import Speed, Tempo
from adapt.traces.replay.flux import rows_of
from adapt.traces.replay.operators import Operator
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.store.trace import Trace


def tempo_of_stage(
    trace: Trace,
    speed: Speed,
    reading: Reading,
    settings: StageSettings,
    operator: Operator = Operator(),
    progress: Progress = silent,
) -> Tempo:
    """Speed-up at which the busiest worker has an offered load.

    The trace is read once, unless a speed-up is given. Slow and failing workers do not count.
    """
    if speed.offered is None:
        return Tempo(speed.speedup)
    found = _bounds(trace, reading, settings, operator, progress)
    return _tempo(speed.speedup_at(found.static_load), found, reading)


def tempo_of_pool(
    trace: Trace,
    speed: Speed,
    reading: Reading,
    settings: StageSettings,
    operator: Operator = Operator(),
    progress: Progress = silent,
) -> Tempo:
    """Speed-up at which all workers together have an offered load; see `tempo_of_stage`."""
    if speed.offered is None:
        return Tempo(speed.speedup)
    found = _bounds(trace, reading, settings, operator, progress)
    return _tempo(speed.speedup_at(found.even_load), found, reading)


def _tempo(speedup: float, found: Bounds, reading: Reading) -> Tempo:
    return Tempo(speedup, min(found.last_s / speedup, reading.until_s))


def _bounds(trace: Trace, reading: Reading, settings: StageSettings, operator: Operator, progress: Progress) -> Bounds:
    """The bounds at the trace's own rate, with healthy workers."""
    operator.check(trace, reading)
    progress("reading", 0, trace.rows)
    whole = replace(reading, speedup=1.0, until_s=inf)
    read, stage = operator.applied(trace, whole, replace(settings, disturbances=(), overload=None))
    return bounds_of(Demand.from_chunks(rows_of(trace, read).chunks(), stage), stage)
