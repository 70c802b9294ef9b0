"""Standby replicas in processes: owners forward what they have processed."""

from collections.abc import Sequence

from adapt.core.stage.movement.standby import Protected, Standby
from adapt.core.stage.processes.movement import ProcessMovement
from adapt.core.stage.processes.stage import ProcessStage
from adapt.core.stage.records.codes import NONE


class ProcessStandby(Standby):
    """Standby replicas of a stage of processes.

    The worker of a replica reports each row once it has processed it, which commits the row. What an owner had sent
    before a crash, its replica processes before anything else happens, so producers resend all rows that are not
    committed.
    """

    def __init__(self, stage: ProcessStage, movement: ProcessMovement, *, partitions: Protected = True) -> None:
        """Spread the replicas of each worker's partitions over all others; arguments as in `Standby`."""
        super().__init__(stage, movement, partitions=partitions)
        self._processes = stage

    def promote(self, partition: int, living: Sequence[int]) -> int | None:
        """Make the replica of a partition its owner, if it lives."""
        twin = int(self._pairs["twin"][partition])
        self._pairs["twin"][partition] = NONE
        self._processes.pending(partition)[:] = 0
        if twin not in living:
            return None
        self._stage.arrays["partition"]["owner"][partition] = twin
        return twin

    def bury(self, worker: int) -> None:
        """Drop the replicas of a dead worker; owners commit their tuples."""
        for partition in self._replicas_on(worker):
            if self._movement.state_survives(partition):
                self._processes.commit_pending(partition)
            else:
                self._processes.pending(partition)[:] = 0
            self._pairs["twin"][partition] = NONE
        self._processes.settle()
