"""Tournament of next events: the earliest slot wins."""

from typing import Any

import numpy as np

from adapt.core.compiled import inlined
from adapt.core.stage.records.finding import due_at, winner_at
from adapt.core.stage.records.world import World


@inlined
def set_due(world: World, slot: int, at: float) -> None:
    """Set the next event of a slot and update the tournament."""
    due_at(world, slot).at = at
    match = (world.slots + slot) >> 1
    winner: Any = slot & ~1
    if due_at(world, winner + 1).at < due_at(world, winner).at:
        winner += 1
    winner_at(world, match).slot = winner
    at = due_at(world, winner).at
    while match > 1:
        other: Any = np.int64(winner_at(world, match ^ 1).slot)
        other_at = due_at(world, other).at
        match >>= 1
        if other_at < at or (other_at == at and other < winner):
            winner = other
            at = other_at
        winner_at(world, match).slot = winner
