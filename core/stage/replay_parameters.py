"""Parameters of stage replays as JSON data, and their sampling interval."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, TypeAlias

import numpy as np

from adapt.core.stage.conditions.disturbances import ExternalLoad, SlowDown
from adapt.core.stage.conditions.settings import Costs, StageSettings
from adapt.core.stage.engine.series import Interval
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.offered_load import Bounds
from adapt.core.stage.input.row_costs import RowCosts

INTERVALS = 300
"""Default number of samples."""

Told: TypeAlias = Callable[[str, float, int], None]
"""Progress callback: case, simulated seconds, rows taken so far."""


def telling(case: str, told: Told | None) -> Callable[[Interval], None]:
    """Callback of a simulation, which reports the progress of a case."""
    taken = 0

    def tell(interval: Interval) -> None:
        nonlocal taken
        taken += interval.generated
        if told is not None:
            told(case, interval.end_s, taken)

    return tell


def stage_parameters(settings: StageSettings, reading: Reading, duration_s: float | None) -> dict[str, Any]:
    """Parameters of a stage and its input, as JSON data."""
    network, costs, join, sides = settings.network, settings.costs, settings.join, reading.sides
    joined = None
    if join is not None and sides is not None:
        joined = {"column": sides.column, "sides": sides.values.to_pylist()}
        joined |= {"window_s": join.window / 1e6, "match_s": join.match_s}
    return {
        "workers": settings.workers,
        "partitions_per_worker": reading.partitions.per_worker,
        "hash": reading.partitions.hash.value,
        "arrivals": "rotate" if reading.rotates else "saturate" if reading.speedup is None else "trace",
        "speedup": reading.speedup,
        "producers": "stream" if reading.by_stream else "row",
        "router": settings.router.value,
        "queueing": asdict(settings.queueing),
        "buffer_tuples": settings.buffer_tuples,
        "network": asdict(network),
        "costs": costs_told(costs, reading.costs),
        "state_tuples": int(settings.state_tuples)
        if np.ndim(settings.state_tuples) == 0 and settings.growth is None
        else None,
        "disturbances": [
            {"kind": _KINDS[type(one)], **{name: _finite(value) for name, value in asdict(one).items()}}
            for one in settings.disturbances
        ],
        "join": joined,
        "overload": None if settings.overload is None else asdict(settings.overload),
        "duration_s": duration_s,
        "seed": settings.seed,
    }


def costs_told(costs: Costs, rows: RowCosts | None) -> dict[str, Any]:
    """Costs as JSON data, and where service times come from."""
    told = asdict(replace(costs, spread=None, pauses=()))
    spread = costs.spread if rows is None else rows.spread
    told["spread"] = None if spread is None else spread.described()
    told["pauses"] = [one.described() for one in costs.pauses]
    told["service_from"] = "drawn" if rows is None else rows.named
    if rows is not None:
        told["service_column"] = rows.column
    return told


_KINDS: Mapping[type, str] = {ExternalLoad: "load", SlowDown: "slow"}


def _finite(value: float) -> float | None:
    """A time; None for infinity."""
    return None if value == np.inf else value


def usual_interval_s(bounds: Bounds, duration_s: float | None) -> float:
    """A round interval that gives the static case some hundred samples."""
    expected = min(bounds.static_s if duration_s is None else duration_s, bounds.static_s)
    return round_interval_s(expected)


def round_interval_s(span_s: float) -> float:
    """A round interval: some hundred samples of a time span."""
    step, least_s = 1e-3, span_s / INTERVALS
    while True:
        for times in (1, 2, 5):
            if step * times >= least_s:
                return step * times
        step *= 10
