"""Settings of a simulated stage; defaults of the Flux paper."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from adapt.core.costs.profile import Pause
from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.faults import ExternalLoad, SlowDown
from adapt.core.stage.conditions.growth import Growth, Join
from adapt.core.stage.conditions.names import QueueingName, RestartName, Router
from adapt.core.stage.conditions.service_times import Spread
from adapt.core.stage.conditions.shed_factor import Overload
from adapt.core.stage.conditions.stage_settings import EngineSettings, ProducerSettings
from adapt.core.units.settings import SettingError, same, settings

SEGMENT_BYTES = 32 * 1024
"""A network buffer of Flink (taskmanager.memory.segment-size)."""

EXCLUSIVE, FLOATING, MOST_IN_CHANNEL = 2, 8, 10
"""Flink's buffers of a channel, those shared by all channels of a task, and the most that a channel may use to send."""


def segment_rows(tuple_bytes: int) -> int:
    """Rows in a full network buffer of Flink."""
    return max(1, SEGMENT_BYTES // tuple_bytes)


@settings()
class Queueing:
    """Whose queues a stage has, and their sizes."""

    engine: QueueingName = QueueingName.FLUX
    fetch_rows: int = same(EngineSettings, "fetch_rows")
    log_rows: int = 2**24  # Kafka, Spark: unprocessed rows that all logs hold in memory; beyond, the source waits
    # Flink: rows that a producer may buffer for one worker; at that many it stops
    channel_rows: int = MOST_IN_CHANNEL * SEGMENT_BYTES // 80
    checkpoint_s: float | None = same(EngineSettings, "checkpoint_s")
    aligned: bool = True  # Flink: whether barriers stop the channels on which they arrive first
    checkpoint_pause_s: float = same(EngineSettings, "checkpoint_pause_s")
    trigger_s: float = same(EngineSettings, "trigger_s")
    batch_overhead_s: float = same(EngineSettings, "batch_overhead_s")
    batch_rows: int = same(EngineSettings, "batch_rows")

    def __post_init__(self) -> None:
        if min(self.log_rows, self.channel_rows) < 1:
            raise UsageError(
                f"logs and channels must hold at least 1 row (got {min(self.log_rows, self.channel_rows)})"
            )

    @classmethod
    def of(cls, given: EngineSettings, tuple_bytes: int, usual: QueueingName = QueueingName.FLUX) -> "Queueing":
        """The queues that were asked for.

        Args:
            usual: Whose, unless an engine is named.
        """
        return cls(
            given.engine or usual,
            fetch_rows=given.fetch_rows,
            channel_rows=MOST_IN_CHANNEL * segment_rows(tuple_bytes),
            checkpoint_s=given.checkpoint_s,
            aligned=not given.unaligned,
            checkpoint_pause_s=given.checkpoint_pause_s,
            trigger_s=given.trigger_s,
            batch_overhead_s=given.batch_overhead_s,
            batch_rows=given.batch_rows,
        )

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


PACKET_TUPLES = 12
"""Tuples of 80 bytes in a packet of 1 KB."""


MOST_WORKERS = 4096
"""Upper limit: every producer connects to every worker, so memory grows with the square."""


@dataclass(frozen=True, slots=True)
class Network:
    """Network between producers and workers, and between workers."""

    latency_s: float = 70e-6  # one-way network latency
    # K, the credits of a connection: tuples in flight or queued; at least a packet
    connection_tuples: int = 2 * PACKET_TUPLES
    packet_tuples: int = 1  # tuples whose credits return together, once all of them are taken, or all that are queued
    # bandwidth of a worker for the tuples it sends; one for all, or one per worker; None, unlimited
    link_bits_per_s: float | tuple[float | None, ...] | None = None
    # bandwidth of one state transfer; one for all workers, or one per sending worker
    flow_bits_per_s: float | tuple[float, ...] = 250e6
    state_bits_per_s: float = 500e6  # bandwidth of all state transfers together

    def __post_init__(self) -> None:
        if self.connection_tuples < PACKET_TUPLES:
            raise UsageError(
                f"a connection must buffer at least one packet, {PACKET_TUPLES} tuples (got {self.connection_tuples})"
            )
        if not 1 <= self.packet_tuples <= self.connection_tuples:
            raise UsageError(
                f"a packet must hold from 1 to {self.connection_tuples} tuples, as many as a connection (got"
                f" {self.packet_tuples})"
            )
        if not all(one is None or one > 0 for one in np.atleast_1d(np.asarray(self.link_bits_per_s, object))):
            raise UsageError("the bandwidth of a worker must be above 0 (got 0 bits/s)")
        if not 0 <= self.latency_s < np.inf:
            raise UsageError(f"the network latency must be finite and at least 0 (got {self.latency_s:g} s)")
        if not min(*np.atleast_1d(self.flow_bits_per_s), self.state_bits_per_s) > 0:
            raise UsageError("the bandwidth for state must be above 0 (got 0 bits/s)")


@dataclass(frozen=True, slots=True)
class FixedCosts:
    """What a rescale takes whatever the size of its state.

    Source: Flux reads orders at once, section 5.2.
    """

    plan_s: float = 0.0  # time to build a plan
    order_s: float = 0.0  # time of the controller to order a move, one after the other
    extract_s: float = 0.0  # CPU seconds of the donor of a move
    install_s: float = 0.0  # CPU seconds of its receiver
    between_rows: bool = False  # whether workers read orders between two rows; else at once


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU costs and the size of a tuple."""

    service_s: float = 45e-6  # mean CPU seconds to process a tuple
    service_sd_s: float = 3e-6  # standard deviation of the same where it is normal
    produce_s: float = 0.5e-6  # CPU seconds to produce a tuple, on the producer's worker
    marshal_s: float = 0.2e-6  # CPU seconds to serialize a tuple of state
    tuple_bytes: int = 80  # size of a tuple, as input and in the state
    spread: Spread | None = None  # its distribution around the mean; None, normal
    install_s: float | None = None  # CPU seconds to install a tuple of state; None, as to serialize it
    fixed: FixedCosts = FixedCosts()  # costs of a rescale besides its state
    pauses: tuple[Pause, ...] = ()  # recurring pauses of workers
    profile: str | None = None  # SHA-256 of the cost profile that these come from; None, none

    def __post_init__(self) -> None:
        if not 0 < self.service_s < np.inf:
            raise UsageError(f"the service time must be above 0 (got {self.service_s:g} s)")
        if not (min(self.service_sd_s, self.produce_s, self.marshal_s) >= 0 and self.tuple_bytes > 0):
            raise UsageError("costs must be at least 0, and the tuple size at least 1 B")


@dataclass(frozen=True, slots=True, eq=False)
class StageSettings:
    """A partitioned stateful operator; every worker has a producer and a consumer.

    Attributes:
        queueing: Whose queues it has.
    """

    workers: int  # n, at least 2
    owners: NDArray[np.int32]  # the worker of each partition at the start, shape (partitions,)
    partition_of: NDArray[np.int32]  # the partition of each group, shape (groups,)
    router: Router = Router.FLUX  # how tuples find their consumer
    buffer_tuples: int = 2048  # B, the tuples that a producer buffers. Exchange and River buffer one
    network: Network = field(default_factory=Network)  # latency, credits and bandwidth
    costs: Costs = field(default_factory=Costs)  # CPU costs
    # state of each partition in tuples if its size is fixed, shape (partitions,) or one number for all
    state_tuples: int | NDArray[np.int64] = 10_000
    state: Growth | None = None  # how state grows from nothing; None, it has a fixed size
    window: int = 0  # last values per group to aggregate; 0, no answers
    disturbances: tuple[ExternalLoad | SlowDown, ...] = ()  # external loads and slowdowns of workers
    seed: int = 0  # random seed of service times, drawn tuples and shedding
    overload: Overload | None = None  # load shedding; None, off: overload leads to backpressure
    join: Join | None = None  # the join on groups, whose window is the state that moves; None, no join
    queueing: Queueing = Queueing()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        check_workers(self.workers)
        if self.buffer_tuples < 1:
            raise UsageError(f"the buffer must hold at least 1 tuple (got {self.buffer_tuples})")
        if self.queueing.engine is not QueueingName.FLUX and self.router is not Router.FLUX:
            raise UsageError(
                f"queueing {self.queueing.engine} has its own routing (got router {self.router}); use router flux"
            )
        if self.window < 0:
            raise UsageError(f"the window must be at least 0 (got {self.window})")
        if self.join is not None and (self.window or self.router is Router.RIVER):
            raise UsageError(
                "a join has its own window and routes by content; use router flux or exchange, and window 0"
            )
        if self.join is not None and self.state is not None:
            raise UsageError("the state of a join is the rows in its window; omit state")
        if len(self.owners) == 0 or len(self.partition_of) == 0:
            raise BadInput("a stage needs at least one partition and one group")
        if not 0 <= self.owners.min() <= self.owners.max() < self.workers:
            raise BadInput(
                f"owners of partitions must be from 0 to {self.workers - 1} (got {self.owners.min()} to"
                f" {self.owners.max()}); the stage needs as many workers as the plan has channels"
            )
        if not 0 <= self.partition_of.min() <= self.partition_of.max() < len(self.owners):
            raise BadInput(
                f"partitions of groups must be from 0 to {len(self.owners) - 1} (got {self.partition_of.min()} to"
                f" {self.partition_of.max()})"
            )
        if np.min(self.state_tuples) < 0 or np.shape(self.state_tuples) not in ((), self.owners.shape):
            raise BadInput(
                f"state_tuples takes one size of at least 0, or one per partition (got {np.size(self.state_tuples)}"
                f" from {np.min(self.state_tuples)} for {len(self.owners)} partitions)"
            )

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return len(self.owners)

    @property
    def held_tuples(self) -> int:
        """Tuples that a producer buffers with this router."""
        if self.queueing.has_logs:
            return self.queueing.log_rows
        return self.buffer_tuples if self.router is Router.FLUX else 1

    @property
    def growth(self) -> Growth | None:
        """Growth of the state; that of a join by its window."""
        if self.join is None:
            return self.state
        return Growth(row_bytes=self.costs.tuple_bytes, window=self.join.window)

    def state_sizes(self) -> NDArray[np.int64]:
        """State of each partition at the start in tuples, shape (partitions,)."""
        if self.growth is not None:
            return np.zeros(self.partitions, np.int64)
        return np.broadcast_to(np.asarray(self.state_tuples, np.int64), self.owners.shape)


def check_workers(workers: int) -> None:
    """Check the number of workers."""
    if not 2 <= workers <= MOST_WORKERS:
        raise UsageError(f"a stage needs 2 to {MOST_WORKERS:,} workers (got {workers:,})")


def check_buffer(rows: int, instead: str = "") -> None:
    """Check the buffer of a producer."""
    if rows < PACKET_TUPLES:
        raise SettingError(
            ProducerSettings,
            f"{{buffer}} must hold at least one packet of {PACKET_TUPLES} rows (got {rows}){instead}",
        )


def of_workers(what: str, values: float | tuple[float | None, ...] | None, workers: int) -> NDArray[np.float64]:
    """One value per worker, infinite for None, shape (workers,)."""
    given = np.nan_to_num(np.asarray(values, np.float64), nan=np.inf)
    if given.shape not in ((), (workers,)):
        raise BadInput(f"{what} take one value for all workers, or {workers} (got {given.size})")
    return np.broadcast_to(given, workers)


def even_owners(workers: int, partitions_per_worker: int) -> NDArray[np.int32]:
    """Equally many partitions per worker, in order; shape (partitions,)."""
    return np.repeat(np.arange(workers, dtype=np.int32), partitions_per_worker)


def even_groups(groups: int, partitions: int) -> NDArray[np.int32]:
    """The partition of each group, round-robin; shape (groups,)."""
    return np.asarray(np.arange(groups) % partitions, np.int32)


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

    @property
    def fixed_s(self) -> float:
        """Time without processing besides that for state, in seconds."""
        return self.stop_s + self.start_s

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
