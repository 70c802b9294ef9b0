"""A policy in rounds, each collecting as long as the moves before it took.

Source: Flux, section 5.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from adapt.core.errors import UsageError
from adapt.core.stage.movement.controller import Move, Observation, Round

MIN_COLLECTION_S = 0.15


class Policy(Protocol):
    """Decides from one observation, remembering nothing."""

    def plan(self, observed: Observation) -> Sequence[Move]:
        """The moves of a round."""


@dataclass(frozen=True, slots=True)
class PacedController:
    """Asks a policy, at most half of the time being spent on moves.

    Attributes:
        policy: Decides.
        min_collection_s: delta_min, the least time to collect, above 0.
    """

    policy: Policy
    min_collection_s: float = MIN_COLLECTION_S

    def __post_init__(self) -> None:
        if not self.min_collection_s > 0:
            raise UsageError(f"statistics cannot be collected for {self.min_collection_s:g} s; give a time above 0")

    def collection_s(self, previous: Round | None) -> float:
        """The time that the last moves took; half of the last collection if there were none; never below the least."""
        if previous is None:
            return self.min_collection_s
        wanted = previous.moving_s if previous.moves else previous.collection_s / 2
        return max(self.min_collection_s, wanted)

    def plan(self, observed: Observation) -> Sequence[Move]:
        """The moves of a round."""
        return self.policy.plan(observed)
