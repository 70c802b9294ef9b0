"""What replays through a stage have in common: their parameters as data, and how often they take notes."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np

from adapt.core.stage.conditions.disturbances import ExternalLoad, SlowDown
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.offered_load import Bounds

INTERVALS = 300
"""About so many are taken down, if nothing is said."""

Told: TypeAlias = Callable[[str, float, int], None]
"""Told the case, the simulated seconds and the rows taken so far."""


def stage_parameters(settings: StageSettings, reading: Reading, duration_s: float | None) -> dict[str, Any]:
    """What decides how rows go through a stage, whatever acts on it; JSON data."""
    network, costs = settings.network, settings.costs
    return {
        "workers": settings.workers,
        "partitions_per_worker": reading.partitions.per_worker,
        "hash": reading.partitions.hash.value,
        "arrivals": "saturate" if reading.speedup is None else "trace",
        "speedup": reading.speedup,
        "producers": "stream" if reading.by_stream else "row",
        "router": settings.router.value,
        "buffer_tuples": settings.buffer_tuples,
        "network": asdict(network),
        "costs": {**asdict(costs), "service_from": "trace" if reading.by_cost else "drawn"},
        "state_tuples": int(settings.state_tuples) if np.ndim(settings.state_tuples) == 0 else None,
        "disturbances": [
            {"kind": _KINDS[type(one)], **{name: _finite(value) for name, value in asdict(one).items()}}
            for one in settings.disturbances
        ],
        "overload": None if settings.overload is None else asdict(settings.overload),
        "duration_s": duration_s,
        "seed": settings.seed,
    }


_KINDS: Mapping[type, str] = {ExternalLoad: "load", SlowDown: "slow"}


def _finite(value: float) -> float | None:
    """A time, or none for an end that never comes."""
    return None if value == np.inf else value


def usual_interval_s(bounds: Bounds, duration_s: float | None) -> float:
    """A round length of which the static case has some hundred."""
    expected = min(bounds.static_s if duration_s is None else duration_s, bounds.static_s)
    return _round_s(expected / INTERVALS)


def _round_s(least_s: float) -> float:
    """The shortest of 1, 2, 5, 10, ... ms and up that is not below this."""
    step = 1e-3
    while True:
        for times in (1, 2, 5):
            if step * times >= least_s:
                return step * times
        step *= 10
