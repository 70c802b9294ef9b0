"""Round controller: collects as long as the previous moves took.

Source: Flux, section 5.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from adapt.core.errors import UsageError
from adapt.core.stage.movement.controller import Move, Observation, Round

MIN_COLLECTION_S = 0.15


class Policy(Protocol):
    """Stateless policy: decides from one observation."""

    def plan(self, observed: Observation) -> Sequence[Move]:
        """Moves of this round."""


@dataclass(frozen=True, slots=True)
class PacedController:
    """Runs a policy in rounds, at most half the time moving."""

    policy: Policy
    min_collection_s: float = MIN_COLLECTION_S  # minimum collection time, delta_min, above 0

    def __post_init__(self) -> None:
        if not self.min_collection_s > 0:
            raise UsageError(f"the minimum collection time must be above 0 (got {self.min_collection_s:g} s)")

    def collection_s(self, previous: Round | None) -> float:
        """Duration of the last moves, or half of the last collection."""
        if previous is None:
            return self.min_collection_s
        wanted = previous.moving_s if previous.moves else previous.collection_s / 2
        return max(self.min_collection_s, wanted)

    def plan(self, observed: Observation) -> Sequence[Move]:
        """Moves of this round."""
        return self.policy.plan(observed)
