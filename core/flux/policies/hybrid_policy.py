"""Flux's hybrid policy: memory first, then load."""

from dataclasses import dataclass, field

from adapt.core.flux.policies.load_policy import LoadBalancing
from adapt.core.flux.policies.memory_policy import MemoryBalancing, excess_bytes
from adapt.core.stage.movement.controller import Move, Observation


@dataclass(frozen=True, slots=True)
class HybridBalancing:
    """Balances memory while any partition is on disk, else load.

    The paper moves a partition for load only if there is room for it. Here workers without room for the largest
    partition do not receive: they gave partitions away, are therefore idle, and would be paired with the busiest.

    Source: Flux, section 6.3.

    Attributes:
        load: Policy while everything is in memory.
        memory: Policy otherwise.
    """

    load: LoadBalancing = field(default_factory=LoadBalancing)
    memory: MemoryBalancing = field(default_factory=MemoryBalancing)

    def plan(self, observed: Observation) -> tuple[Move, ...]:
        """Moves of this round."""
        if observed.on_disk.any():
            return self.memory.plan(observed)
        return self.load.plan(observed, excess_bytes(observed) >= observed.state_bytes.max())
