"""Replay through one stage that rebalances or scales; needs no Spark."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from adapt.core.elastic.replay.replay import Elastic
from adapt.core.errors import BadInput
from adapt.core.flux.replay.replay import Flux
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.faults import FaultSchedule, parse_faults
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.offered_load import Bounds, Demand, bounds_of
from adapt.core.stage.input.speed import Speed, Tempo
from adapt.core.stage.outcome import Pace, stage_parameters
from adapt.traces.read_errors import readable
from adapt.traces.replay.length import stage_length
from adapt.traces.replay.operators import Operator, encoded
from adapt.traces.replay.replay import Asked, Replayed
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.store.plans import NamedPlan
from adapt.traces.store.trace import Trace


@dataclass(frozen=True, slots=True)
class StageReplay:
    """Replay through a stage, without moves and with each policy.

    The trace is read once for its totals and once per case, one row group at a time; once more for its keys, if the
    operator needs them. The workers of a stage that scales are the pool.
    """

    settings: StageSettings
    reading: Reading  # how rows become tuples
    mechanism: Flux | Elastic = Flux()  # noqa: RUF009 - frozen; how the stage rebalances or scales
    operator: Operator = Operator()  # noqa: RUF009 - frozen
    duration_s: float | None = None  # upper limit of the simulated time; None, until all rows are processed
    plan: NamedPlan | None = None  # the plan of the initial placement, if any

    @contextmanager
    def replayed(self, trace: Trace, asked: Asked) -> Iterator[Replayed[Any]]:
        """Replay a trace."""
        of, plan = self.mechanism, self.plan
        flux = of if isinstance(of, Flux) else None
        self.operator.check(trace, self.reading)
        asked.progress("reading", 0, trace.rows)
        by_key = flux is not None and flux.hot is not None
        reading, settings = self.operator.applied(trace, self.reading, self.settings, by_key=by_key)
        of.check(settings)
        rows = rows_of(trace, reading)
        faults = None if flux is None else flux.faults
        demand = Demand.from_chunks(rows.chunks(), settings, faults)
        bounds, pace = bounds_of(demand, settings, faults), Pace(reading.speedup, self.duration_s)
        restart_s = of.restart_s if isinstance(of, Elastic) else 0.0
        length = stage_length(*(bounds, settings, of.period_s, len(of.cases()), pace.duration_s, restart_s))
        length.check("set --duration", shorter(reading, of))
        named = {} if flux is None else {"plan": plan and plan.plan.content_hash()}
        run = of.replay(
            *(rows, demand, settings, pace),
            parameters={**self.parameters(settings, reading), **named},
            told=lambda case, at_s, done: asked.progress(f"{case}, {at_s:,.1f} s simulated", done, demand.all_rows),
        )
        yield Replayed(run, [trace.as_input, *([] if plan is None else [plan.as_input])])

    def parameters(self, settings: StageSettings, reading: Reading) -> Mapping[str, Any]:
        """What decides the result, besides stream and plan; JSON data."""
        of_stage = stage_parameters(settings, reading, self.duration_s)
        return {**of_stage, **self.mechanism.parameters(), **self.operator.parameters()}

    def tempo(self, trace: Trace, speed: Speed, *, pooled: bool, progress: Progress = silent) -> Tempo:
        """Speed-up at an offered load of the busiest worker, or pool.

        The trace is read once, unless a speed-up is given. Slow and failing workers do not count.
        """
        if speed.offered is None:
            return Tempo(speed.speedup)
        self.operator.check(trace, self.reading)
        progress("reading", 0, trace.rows)
        whole = replace(self.reading, speedup=1.0, until_s=inf)
        healthy = replace(self.settings, disturbances=(), overload=None)
        read, stage = self.operator.applied(trace, whole, healthy)
        found: Bounds = bounds_of(Demand.from_chunks(rows_of(trace, read).chunks(), stage), stage)
        speedup = speed.speedup_at(found.even_load if pooled else found.static_load)
        return Tempo(speedup, min(found.last_s / speedup, self.reading.until_s))


def shorter(reading: Reading, of: Flux | Elastic) -> dict[str, str]:
    """Options that make a replay shorter, by what is too much."""
    speedup = "" if reading.speedup is None else " or --speedup"
    option = "--min-collection" if isinstance(of, Flux) else "--period"
    return {"control period": f"increase {option}{speedup}, or "}


def read_faults(path: Path, settings: StageSettings) -> FaultSchedule:
    """Read a fault schedule file for a stage."""
    with readable(path):
        text = path.read_bytes()
    try:
        schedule = parse_faults(text)
        schedule.check(settings.workers, settings.disturbances)
        return schedule
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def rows_of(trace: Trace, reading: Reading) -> Rows:
    """Rows of a trace as tuples, read by row group, repeatable."""
    return reading.rows(lambda: trace.batches(reading.columns, encoded(trace, reading.columns)))
