"""Worker processes whose rows and moves are recorded."""

from time import monotonic

import numpy as np

from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.records.arrays import Records
from reality.processes.launch import LoopbackWorkers
from reality.processes.measured import Recorded
from reality.processes.messages import Installed, Message, Report


class RecordedWorkers(LoopbackWorkers):
    """Worker processes that remember what was sent and reported."""

    def __init__(self, settings: StageSettings) -> None:
        """Start all processes, and the clock."""
        began_s = monotonic()
        super().__init__(settings)
        self.recorded = Recorded(start_s=monotonic() - began_s)

    def rows(self, worker: int, rows: Records) -> None:
        """Send rows."""
        sent_s = np.full(len(rows), self.now_s())
        self.recorded.sent.append((rows["number"].copy(), rows["cost"].copy(), sent_s))
        super().rows(worker, rows)

    def poll(self, until_s: float) -> list[tuple[int, Message]]:
        """Wait for messages of workers, until a time."""
        self.recorded.polled_s.append(self.now_s())
        messages = super().poll(until_s)
        for worker, message in messages:
            if isinstance(message, Report):
                self.recorded.done.append((worker, message.rows))
            elif isinstance(message, Installed):
                self.recorded.installed.append(message)
        return messages
