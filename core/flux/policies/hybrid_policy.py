"""Flux's hybrid policy: memory first, then load."""

from dataclasses import dataclass, field

from adapt.core.flux.policies.load_policy import LoadBalancing
from adapt.core.flux.policies.memory_policy import MemoryBalancing, excess_bytes
from adapt.core.stage.movement.controller import Move, Observation


@dataclass(frozen=True, slots=True)
class HybridBalancing:
    """Balances memory while any partition is on disk, else load.

    A partition moves for load only if the receiver has room for it, as in the paper. The paper leaves open which pairs
    then form; here a donor passes over workers without room for any of its partitions.

    Source: Flux, section 6.3.
    """

    load: LoadBalancing = field(default_factory=LoadBalancing)  # policy while everything is in memory
    memory: MemoryBalancing = field(default_factory=MemoryBalancing)  # policy otherwise

    def plan(self, observed: Observation) -> tuple[Move, ...]:
        """Moves of this round."""
        if observed.on_disk.any():
            return self.memory.plan(observed)
        return self.load.plan(observed, excess_bytes(observed))
