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
    """Log entry of a move.

    Attributes:
        move: The move.
        state_bytes: State moved: its size at extraction, or at the decision until then.
        times_s: Time of each finished step of `STEPS`.
    """

    move: Move
    state_bytes: int
    times_s: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Course:
    """A move in progress.

    Attributes:
        moved: Its log entry.
        done: Called when it is finished or aborted.
        copies: Whether it creates a standby replica and the donor keeps the partition.
        donor_lost: Whether the donor has crashed since the decision.
        receiver_lost: Whether the receiver has.
        buried: Whether the donor was declared dead and the receiver continues without it.
        over: Whether it was aborted.
        promotes: Whether the receiver has the replica, so that owner and replica change places.
        is_expected: Whether the receiver has read the order, and so waits for the state.
    """

    moved: Moved
    done: Action
    copies: bool
    donor_lost: bool
    receiver_lost: bool
    buried: bool = False
    over: bool = False
    promotes: bool = False
    is_expected: bool = False

    @property
    def state_survives(self) -> bool:
        """Whether a live donor or receiver has the state."""
        received = "received" in self.moved.times_s and not self.promotes
        return not self.donor_lost or (received and not self.receiver_lost)
