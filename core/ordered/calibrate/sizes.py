"""Calibration of the cache model, with its error on runs of threads."""

from collections.abc import Callable, Sequence
from dataclasses import astuple, replace

import numpy as np

from adapt.core.ordered.calibrate.caches import Pin, timed_states, timed_tuples
from adapt.core.ordered.calibrate.calibration import OrderedCalibration, Runner, checked_of
from adapt.core.ordered.calibrate.configuration import Configuration
from adapt.core.ordered.calibrate.fit import Measured
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.engine.cache_costs import CacheCosts, StateCost, TupleCost

_STATELESS, _PARTITIONED, _STATEFUL = OperatorKind


def sized(most_workers: int) -> tuple[Configuration, ...]:
    """Configurations with payloads and states of sizes that are not timed."""
    alone = (
        Configuration((_STATEFUL,), 1, 64, state_bytes=8192, share=2),
        *(
            Configuration((_PARTITIONED,), 1, 64, state_bytes=state, keys=keys)
            for state, keys in ((128, 1000), (512, 1000), (512, 16_000), (2048, 1000), (2048, 16_000))
        ),
        Configuration((_STATELESS,), 1, 64, tuple_bytes=128, share=8),
        Configuration((_STATELESS,), 1, 64, tuple_bytes=2048, share=32),
        Configuration((_STATELESS, _PARTITIONED), 1, 64, tuple_bytes=512, state_bytes=512, share=16),
    )
    together = [one for one in alone if _PARTITIONED in one.kinds] if most_workers > 1 else []
    return *alone, *(replace(one, workers=most_workers) for one in together)


def calibrate_sizes(
    made: OrderedCalibration,
    runner: Runner,
    rows: int,
    repeats: int,
    pin: Pin | None,
    told: Callable[[str, int, int], None] | None = None,
) -> OrderedCalibration:
    """Measure a cache model, and predict runs of other sizes.

    Args:
        rows: Rows of a run.
        repeats: Times that all is measured.
        pin: Moves this thread to core 0 or 1; None for a single core.
        told: Progress callback.
    """
    tell, configurations = told or (lambda *_: None), sized(made.profile.workers)
    points = list[tuple[Sequence[StateCost], Sequence[TupleCost]]]()
    checked: list[list[Measured]] = [[] for _ in configurations]
    for repeat in range(repeats):
        tell("measuring sizes", repeat, repeats)
        points.append((timed_states(pin), timed_tuples()))
        for runs, one in zip(checked, configurations, strict=True):
            runs.append(runner.run(one))
    profile = replace(made.profile, caches=ascending(points))
    tell("predicting", 0, 0)
    checks = [
        checked_of(one, runs, profile, one.rows_of(rows)) for one, runs in zip(configurations, checked, strict=True)
    ]
    return replace(made, profile=profile, sized=tuple(checks))


def ascending(repeats: Sequence[tuple[Sequence[StateCost], Sequence[TupleCost]]]) -> CacheCosts:
    """Medians of all repeats, which never fall with a size.

    Where one is below that of a smaller size, it is raised.
    """
    found = dict[tuple[int, int], StateCost]()
    for points in zip(*(states for states, _ in repeats), strict=True):
        size, working = points[0].state_bytes, points[0].working_bytes
        smaller = [one for one in found.values() if one.state_bytes <= size and one.working_bytes <= working]
        here, moved = (
            max([float(np.median([getattr(one, name) for one in points])), *(getattr(one, name) for one in smaller)])
            for name in ("here_ns", "moved_ns")
        )
        found[size, working] = StateCost(size, working, here, max(here, moved))
    tuples = list[TupleCost]()
    for sizes in zip(*(each for _, each in repeats), strict=True):
        times = np.median([astuple(one)[1:] for one in sizes], axis=0)
        least = astuple(tuples[-1])[1:] if tuples else 0.0
        tuples.append(TupleCost(sizes[0].tuple_bytes, *np.maximum(times, least).tolist()))
    return CacheCosts(tuple(found.values()), tuple(tuples))
