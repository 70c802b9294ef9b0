"""The hybrid policy of Flux: memory first, then load."""

from dataclasses import dataclass, field

from adapt.core.flux.load import LoadBalancing
from adapt.core.flux.memory import MemoryBalancing, excess_bytes
from adapt.core.stage.moves import Move, Observation


@dataclass(frozen=True, slots=True)
class HybridBalancing:
    """Balances memory while anything is on disk anywhere, else load, to sites that have room.

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
        room = excess_bytes(observed)
        return tuple(
            move for move in self.load.plan(observed) if observed.state_bytes[move.partition] <= room[move.receiver]
        )
