"""Census: where the tuples of a stage are."""

from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Census:
    """Number of tuples in each place, out of all generated ones."""

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
        """Whether every tuple is in exactly one place."""
        generated, *places = astuple(self)
        return bool(generated == sum(places))
