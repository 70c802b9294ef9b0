"""Backend that runs a stage in processes, and what it refuses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.arrivals import Source
from adapt.core.stage.conditions.names import QueueingName, Router
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.movement.protocol import Movement
from adapt.core.stage.movement.spilling import Spilling
from adapt.core.stage.movement.standby import Protected, Standby
from adapt.core.stage.processes.movement import ProcessMovement
from adapt.core.stage.processes.stage import ProcessStage
from adapt.core.stage.processes.standby import ProcessStandby
from adapt.core.stage.processes.workers import Workers


@dataclass(frozen=True, slots=True)
class InProcesses:
    """Runs the consumers of a stage in processes.

    Attributes:
        launch: Starts the processes of a stage.
    """

    launch: Callable[[StageSettings], Workers]

    def stage(self, settings: StageSettings, source: Source, journal: int, standby: bool) -> Stage:
        """A stage with running processes."""
        return ProcessStage(settings, source, journal, standby, launch=self.launch)

    def movement(self, stage: Stage, spilling: Spilling | None) -> Movement:
        """Moves between processes."""
        assert isinstance(stage, ProcessStage)
        assert spilling is None
        return ProcessMovement(stage)

    def standby(self, stage: Stage, movement: Movement, spilling: Spilling | None, partitions: Protected) -> Standby:
        """Replicas in processes."""
        assert isinstance(stage, ProcessStage)
        assert isinstance(movement, ProcessMovement)
        assert spilling is None
        return ProcessStandby(stage, movement, partitions=partitions)


def check_processes(settings: StageSettings, further: Mapping[str, object]) -> None:
    """Check that a stage can run in processes.

    Args:
        further: Options that only the simulator has, with their values.

    Raises:
        UsageError: It needs what only the simulator has.
    """
    simulated = {
        "--shed": settings.overload is not None,
        "--router other than flux": settings.router is not Router.FLUX,
        "--queueing other than flux": settings.queueing.engine is not QueueingName.FLUX,
        "--slow to 0%": any(getattr(one, "speed", 1) == 0 for one in settings.disturbances),
        **further,
    }
    for option, value in simulated.items():
        if value:
            raise UsageError(f"--backend processes does not run {option}; omit it, or use --backend sim")
