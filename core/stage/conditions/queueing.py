"""Queues of a stage as in an engine, with that engine's defaults."""

from dataclasses import dataclass

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.names import QueueingName

SEGMENT_BYTES = 32 * 1024
"""A network buffer of Flink (taskmanager.memory.segment-size)."""

EXCLUSIVE, FLOATING, MOST_IN_CHANNEL = 2, 8, 10
"""Flink's buffers of a channel, those shared by all channels of a task, and the most that a channel may use to send."""


def segment_rows(tuple_bytes: int) -> int:
    """Rows in a full network buffer of Flink."""
    return max(1, SEGMENT_BYTES // tuple_bytes)


@dataclass(frozen=True, slots=True)
class Queueing:
    """Whose queues a stage has, and their sizes."""

    engine: QueueingName = QueueingName.FLUX
    fetch_rows: int = 500  # Kafka: rows that a worker takes from one log before the next (max.poll.records)
    log_rows: int = 2**24  # Kafka, Spark: unprocessed rows that all logs hold in memory; beyond, the source waits
    # Flink: rows that a producer may buffer for one worker; at that many it stops
    channel_rows: int = MOST_IN_CHANNEL * SEGMENT_BYTES // 80
    checkpoint_s: float | None = None  # Flink: interval of checkpoints; None, none
    aligned: bool = True  # Flink: whether barriers stop the channels on which they arrive first
    checkpoint_pause_s: float = 0.0  # Flink: time for which a worker stops to take its part of a checkpoint
    trigger_s: float = 0.0  # Spark: interval of micro-batches; 0, one after the other
    # Spark: time to plan and commit a micro-batch. Spark's guide states latencies from 100 ms
    batch_overhead_s: float = 0.1
    batch_rows: int = 2**20  # Spark: most rows of a micro-batch (maxOffsetsPerTrigger)

    def __post_init__(self) -> None:
        least = min(self.fetch_rows, self.log_rows, self.channel_rows, self.batch_rows)
        if least < 1:
            raise UsageError(f"fetches, logs, channels and micro-batches must hold at least 1 row (got {least})")
        if self.checkpoint_s is not None and not 0 < self.checkpoint_s < np.inf:
            raise UsageError(f"the interval of checkpoints must be above 0 (got {self.checkpoint_s:g} s)")
        times_s = self.checkpoint_pause_s, self.trigger_s, self.batch_overhead_s
        if not all(0 <= one < np.inf for one in times_s):
            raise UsageError(f"times of checkpoints and micro-batches must be at least 0 (got {min(times_s):g} s)")

    @property
    def has_logs(self) -> bool:
        """Whether rows wait in a log, which never stops the source."""
        return self.engine in (QueueingName.KAFKA, QueueingName.SPARK)

    def check(self, *of_flux: object) -> None:
        """Refuse crashes, standby and split partitions with queues other than Flux's."""
        if self.engine is not QueueingName.FLUX and any(of_flux):
            raise UsageError(
                f"queueing {self.engine} excludes crashes, standby replicas and split partitions; use queueing flux"
            )

    def buffers(self, workers: int, tuple_bytes: int, usual: tuple[int, int]) -> tuple[int, int]:
        """Default rows that a producer and a connection buffer."""
        if self.engine is not QueueingName.FLINK:
            return usual
        rows = segment_rows(tuple_bytes)
        return (EXCLUSIVE * workers + FLOATING) * rows, EXCLUSIVE * rows


SAID = {
    QueueingName.FLUX: "a buffer per producer, shared by all workers",
    QueueingName.FLINK: "bounded channels",
    QueueingName.KAFKA: "a log per partition",
    QueueingName.SPARK: "micro-batches",
}
"""The queues in words."""
