"""Runs of a stage whose consumers are worker processes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from adapt.core.elastic.replay import replay as elastic
from adapt.core.flux.replay import replay as flux
from adapt.core.stage.conditions.arrivals import Source
from adapt.core.stage.conditions.names import Migrating
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.control.elasticity import Elasticity
from adapt.core.stage.control.rounds import OneStage, Rounds
from adapt.core.stage.control.workers import Migration
from adapt.core.stage.engine.series import Interval
from adapt.core.stage.simulate import Actors, Assembly, Simulated, run
from reality.processes.launch import LoopbackWorkers
from reality.processes.movement import ProcessMovement
from reality.processes.stage import ProcessStage


def run_in_processes(
    settings: StageSettings,
    source: Source,
    duration_s: float | None = None,
    actors: Actors | None = None,
    *,
    interval_s: float = 1.0,
    on_interval: Callable[[Interval], None] | None = None,
    launch: Callable[[StageSettings], LoopbackWorkers] = LoopbackWorkers,
) -> Simulated:
    """Run a stage in worker processes; other arguments as in `simulate`.

    Only a rebalancing controller or scaling may act on the stage; a policy that restarts its engine migrates live.

    Args:
        launch: Starts the processes.

    Raises:
        RuntimeError: The state of a key is not that of the rows done.
    """
    given = actors or Actors()
    scaling = given.scaling
    if scaling is not None:
        if scaling.migration.how is Migrating.RESTART:
            scaling = replace(scaling, migration=Migration())
        settings = replace(settings, owners=scaling.placement.place(scaling.scaler.least).owners)
    stage = ProcessStage(settings, source, launch=launch)
    try:
        movement = ProcessMovement(stage)
        rounds = None if given.controller is None else Rounds(OneStage(stage, movement), given.controller)
        scaled = None if scaling is None else Elasticity(stage, movement, scaling)
        done = run(Assembly(stage, movement, rounds, None, None, None, scaled), duration_s, interval_s, on_interval)
        stage.check_keys()
        return done
    finally:
        stage.close()


@contextmanager
def in_processes() -> Iterator[None]:
    """Let replays of this process run their stages in worker processes."""
    with patch.object(flux, "simulate", run_in_processes), patch.object(elastic, "simulate", run_in_processes):
        yield
