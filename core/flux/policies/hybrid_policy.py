"""The hybrid policy of Flux: memory first, then load."""

from dataclasses import dataclass, field

from adapt.core.flux.policies.load_policy import LoadBalancing
from adapt.core.flux.policies.memory_policy import MemoryBalancing, excess_bytes
from adapt.core.stage.movement.controller import Move, Observation


@dataclass(frozen=True, slots=True)
class HybridBalancing:
    """Balances memory while anything is on disk anywhere, else load, to workers that have room.

    The paper has a partition move for load only if there is room for it. Here workers that have none for the largest
    partition are no receivers: they gave partitions away, are idle therefore, and would be paired with the busiest.

    Source: Flux, section 6.3.

    Attributes:
        load: Decides while all is in memory.
        memory: Decides otherwise.
    """

    load: LoadBalancing = field(default_factory=LoadBalancing)
    memory: MemoryBalancing = field(default_factory=MemoryBalancing)

    def plan(self, observed: Observation) -> tuple[Move, ...]:
        """This round's moves."""
        if observed.on_disk.any():
            return self.memory.plan(observed)
        return self.load.plan(observed, excess_bytes(observed) >= observed.state_bytes.max())
