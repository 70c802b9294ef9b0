"""Progress of a move.

Source: Flux, section 5.2.
"""

from dataclasses import dataclass, field

from adapt.core.stage.engine.event_queue import Action
from adapt.core.stage.movement.controller import Move

STEPS = ("decided", "paused", "quiesced", "extracted", "received", "installed", "restarted")
"""Steps of a move, in order."""


@dataclass(slots=True)
class Moved:
    """Log entry of a move."""

    move: Move
    state_bytes: int  # state moved: its size at extraction, or at the decision until then
    times_s: dict[str, float] = field(default_factory=dict)  # time of each finished step of `STEPS`


@dataclass(slots=True, eq=False)
class Course:
    """A move in progress."""

    moved: Moved  # its log entry
    done: Action  # called when it is finished or aborted
    copies: bool  # whether it creates a standby replica and the donor keeps the partition
    donor_lost: bool  # whether the donor has crashed since the decision
    receiver_lost: bool  # whether the receiver has
    buried: bool = False  # whether the donor was declared dead and the receiver continues without it
    over: bool = False  # whether it was aborted
    promotes: bool = False  # whether the receiver has the replica, so that owner and replica change places
    is_expected: bool = False  # whether the receiver has read the order, and so waits for the state

    @property
    def state_survives(self) -> bool:
        """Whether a live donor or receiver has the state."""
        received = "received" in self.moved.times_s and not self.promotes
        return not self.donor_lost or (received and not self.receiver_lost)
