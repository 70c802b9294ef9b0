"""Costs of a rescale by restart instead of live migration."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.names import RestartName
from adapt.core.stage.conditions.settings import Network


@dataclass(frozen=True, slots=True)
class Restart:
    """A restart."""

    stop_s: float = 0.0  # time to stop, besides saving state
    start_s: float = 0.0  # time to start again, besides restoring state
    saves: bool = True  # whether workers save their state first
    is_whole: bool = True  # whether all partitions stop, not only those that move
    restores_all: bool = True  # whether workers restore all of their state, not only that of partitions that move
    save_byte_s: float | None = None  # time of a worker to save a byte; None, by the bandwidth for state
    restore_byte_s: float | None = None  # time of a worker to restore a byte; likewise

    def __post_init__(self) -> None:
        times_s = self.stop_s, self.start_s, self.save_byte_s or 0.0, self.restore_byte_s or 0.0
        if not all(0 <= one < np.inf for one in times_s):
            raise UsageError(f"the times of a restart must be finite and at least 0 (got {min(times_s):g} s)")

    def downtime_s(self, saved: NDArray[np.int64], restored: NDArray[np.int64], network: Network) -> float:
        """Time without processing, in seconds.

        Args:
            saved: State that each worker saves in bytes, shape (workers,).
            restored: State that each worker restores in bytes, shape (workers,).
            network: Bandwidths for state.
        """
        saving_s = _transfer_s(saved, self.save_byte_s, network) if self.saves else 0.0
        return self.stop_s + saving_s + self.start_s + _transfer_s(restored, self.restore_byte_s, network)


def _transfer_s(by_worker: NDArray[np.int64], byte_s: float | None, network: Network) -> float:
    """Time until the slowest worker has read or written its state."""
    if byte_s is not None:
        return float(by_worker.max()) * byte_s
    slowest = float((8 * by_worker / np.asarray(network.flow_bits_per_s)).max())
    return max(slowest, 8 * float(by_worker.sum()) / network.state_bits_per_s)


RESTARTS: Mapping[RestartName, Restart] = MappingProxyType(
    {
        RestartName.FLINK_SAVEPOINT: Restart(start_s=120.0),
        RestartName.FLINK_ADAPTIVE: Restart(start_s=10.0, saves=False),
        RestartName.KAFKA_EAGER: Restart(stop_s=3.0, saves=False, restores_all=False),
        RestartName.KAFKA_COOPERATIVE: Restart(stop_s=3.0, saves=False, is_whole=False, restores_all=False),
    }
)
"""Presets.

Source: Amazon EMR on EKS, defaults of the Flink autoscaler (job.autoscaler.restart.time: 2 min; Flink's own default is
5 min); Flink, jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout, and FLIP-461 (rescales follow a
checkpoint); Kafka, heartbeat.interval.ms, by which consumers learn of a rebalance, and KIP-429.
"""
