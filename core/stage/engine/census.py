"""Where all tuples of a stage are."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Census:
    """Where all tuples are that were ever generated."""

    generated: int
    processed: int
    at_consumers: int
    in_connections: int
    in_pools: int
    spilled: int
    at_twins: int = 0
    lost: int = 0
    shed: int = 0

    @property
    def whole(self) -> bool:
        """Whether every tuple is in one place."""
        return self.generated == (
            self.processed
            + self.at_consumers
            + self.in_connections
            + self.in_pools
            + self.spilled
            + self.at_twins
            + self.lost
            + self.shed
        )
