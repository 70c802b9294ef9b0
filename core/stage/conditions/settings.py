"""What a simulated stage is made of; the defaults are those of the Flux paper."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.disturbances import ExternalLoad, SlowDown
from adapt.core.stage.conditions.join import Join
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.shed_factor import Overload

PACKET_TUPLES = 12
"""Tuples of 80 bytes in a packet of 1 KB."""


MOST_WORKERS = 4096
"""Every producer is connected to every worker, so that a stage of more does not fit in memory."""


@dataclass(frozen=True, slots=True)
class Network:
    """Between producers and consumers, and between workers that hand over state.

    Attributes:
        latency_s: A packet is on its way so long.
        connection_tuples: K, what a connection holds, on its way or waiting; at least a packet.
        flow_bits_per_s: The most that one hand-over of state gets.
        state_bits_per_s: What all of them get together.
    """

    latency_s: float = 70e-6
    connection_tuples: int = 2 * PACKET_TUPLES
    flow_bits_per_s: float = 250e6
    state_bits_per_s: float = 500e6

    def __post_init__(self) -> None:
        if self.connection_tuples < PACKET_TUPLES:
            raise UsageError(
                f"a connection of {self.connection_tuples} tuples is smaller than a packet; "
                f"give it {PACKET_TUPLES} or more"
            )
        if not 0 <= self.latency_s < np.inf:
            raise UsageError(f"a packet cannot take {self.latency_s:g} s; give a latency from 0 up")
        if not min(self.flow_bits_per_s, self.state_bits_per_s) > 0:
            raise UsageError("state cannot move at 0 bits/s; give the network a bandwidth above 0")


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds, and the size of a tuple.

    Attributes:
        service_s: To process a tuple, the mean of a normal distribution.
        service_sd_s: Its standard deviation.
        produce_s: To make a tuple, at the producer's worker.
        marshal_s: To take out or put in the state of a partition, for each tuple of its history.
        tuple_bytes: The size of a tuple, and of its trace in the state.
    """

    service_s: float = 45e-6
    service_sd_s: float = 3e-6
    produce_s: float = 0.5e-6
    marshal_s: float = 0.2e-6
    tuple_bytes: int = 80

    def __post_init__(self) -> None:
        if not 0 < self.service_s < np.inf:
            raise UsageError(f"processing a tuple takes {self.service_s:g} s; it must be above 0")
        if not (min(self.service_sd_s, self.produce_s, self.marshal_s) >= 0 and self.tuple_bytes > 0):
            raise UsageError("a cost is negative, or a tuple has no bytes; give costs from 0 and bytes from 1 up")


@dataclass(frozen=True, slots=True, eq=False)
class StageSettings:
    """A partitioned stateful operator over workers, each with a producer and a consumer.

    Attributes:
        workers: n, at least 2.
        owners: The worker of each partition at the start, shape (partitions,).
        partition_of: The partition of each group, shape (groups,).
        router: How tuples find their consumer.
        buffer_tuples: B, the tuples that a producer may hold back. Exchange and River hold one.
        network: Latency, credits and bandwidth.
        costs: CPU seconds.
        state_tuples: History of each partition that moves with it, shape (partitions,) or one number for all.
        window: Last values of each group over which answers are computed; 0 computes none.
        disturbances: What takes CPU from workers.
        seed: Random seed of service times, drawn tuples and shedding.
        overload: How workers shed input; None, they take all, and what they cannot do holds producers back.
        join: What is joined on groups; what it holds of a partition is the state that moves. None, nothing is.
    """

    workers: int
    owners: NDArray[np.int32]
    partition_of: NDArray[np.int32]
    router: Router = Router.FLUX
    buffer_tuples: int = 2048
    network: Network = field(default_factory=Network)
    costs: Costs = field(default_factory=Costs)
    state_tuples: int | NDArray[np.int64] = 10_000
    window: int = 0
    disturbances: tuple[ExternalLoad | SlowDown, ...] = ()
    seed: int = 0
    overload: Overload | None = None
    join: Join | None = None

    def __post_init__(self) -> None:
        check_workers(self.workers)
        if self.buffer_tuples < 1:
            raise UsageError(f"a producer cannot work with a buffer of {self.buffer_tuples} tuples; give it 1 or more")
        if self.window < 0:
            raise UsageError(f"a window of {self.window} values is not one; give 1 or more, or 0 for no answers")
        if self.join is not None and (self.window or self.router is Router.RIVER):
            raise UsageError("a join has its own window, and tuples find their worker by content; use Flux or Exchange")
        if len(self.owners) == 0 or len(self.partition_of) == 0:
            raise BadInput("a stage needs at least one partition and one group")
        if not 0 <= self.owners.min() <= self.owners.max() < self.workers:
            raise BadInput(
                f"partitions belong to workers {self.owners.min()} to {self.owners.max()}, but workers run from 0 to "
                f"{self.workers - 1}; give the stage as many workers as the plan has channels"
            )
        if not 0 <= self.partition_of.min() <= self.partition_of.max() < len(self.owners):
            raise BadInput(
                f"groups belong to partitions {self.partition_of.min()} to {self.partition_of.max()}, but partitions "
                f"run from 0 to {len(self.owners) - 1}"
            )
        if np.min(self.state_tuples) < 0 or np.shape(self.state_tuples) not in ((), self.owners.shape):
            raise BadInput(
                f"the state of {len(self.owners)} partitions is given as {np.size(self.state_tuples)} sizes from "
                f"{np.min(self.state_tuples)} up; give one for all or one for each, from 0 up"
            )

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self.owners)

    @property
    def held_tuples(self) -> int:
        """What a producer may hold back with its router."""
        return self.buffer_tuples if self.router is Router.FLUX else 1

    def state_sizes(self) -> NDArray[np.int64]:
        """The history of each partition in tuples, shape (partitions,)."""
        return np.broadcast_to(np.asarray(self.state_tuples, np.int64), self.owners.shape)


def check_workers(workers: int) -> None:
    """Whether a stage can have so many workers.

    Raises:
        UsageError: it cannot.
    """
    if workers < 2:
        raise UsageError(f"a stage of {workers} workers has nothing to balance; give it 2 or more")
    if workers > MOST_WORKERS:
        raise UsageError(f"a stage of {workers:,} workers is more than the {MOST_WORKERS:,} there may be")


def even_owners(workers: int, partitions_per_worker: int) -> NDArray[np.int32]:
    """As many partitions on every worker, the first ones on the first worker; shape (partitions,)."""
    return np.repeat(np.arange(workers, dtype=np.int32), partitions_per_worker)


def even_groups(groups: int, partitions: int) -> NDArray[np.int32]:
    """The partition of each group where they take turns; shape (groups,)."""
    return np.asarray(np.arange(groups) % partitions, np.int32)
