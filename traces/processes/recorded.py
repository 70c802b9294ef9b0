"""Worker processes whose rows and moves are recorded."""

from collections.abc import Sequence
from time import monotonic
from typing import Any

import numpy as np

from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.processes.measured import Recorded
from adapt.core.stage.processes.workers import Installed, Message, Report
from adapt.core.stage.records.arrays import Records
from adapt.traces.processes.launch import LoopbackWorkers


class RecordedWorkers(LoopbackWorkers):
    """Worker processes that remember what was sent and reported."""

    def __init__(self, settings: StageSettings, work: str, keys: Sequence[Any] = ()) -> None:
        """Start all processes, and the clock; arguments as in `LoopbackWorkers`."""
        began_s = monotonic()
        super().__init__(settings, work, keys)
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
