"""A move of a partition, and how far it is.

Source: Flux, section 5.2.
"""

from dataclasses import dataclass, field

from adapt.core.stage.engine.event_queue import Action
from adapt.core.stage.movement.controller import Move

STEPS = ("decided", "paused", "quiesced", "extracted", "received", "installed", "restarted")
"""What happens to a move, in this order."""


@dataclass(slots=True)
class Moved:
    """A move, and what became of it.

    Attributes:
        move: What moves, from where and to where.
        state_bytes: The state that moves; of a join what it holds when that is taken out, or, until then, when the move
            was decided.
        times_s: When each of the `STEPS` was done, in seconds; those that are yet to come are missing.
    """

    move: Move
    state_bytes: int
    times_s: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Course:
    """A move that is not done.

    Attributes:
        moved: What is known of it.
        done: Told when it is done or over.
        copies: Whether the donor goes on owning the partition, and the receiver gets a twin of it.
        donor_lost: Whether its donor has died since it was decided.
        receiver_lost: Whether its receiver has.
        buried: Whether the controller knows that the donor is dead, and lets the receiver go on without it.
        over: Whether it was given up.
    """

    moved: Moved
    done: Action
    copies: bool
    donor_lost: bool
    receiver_lost: bool
    buried: bool = False
    over: bool = False

    @property
    def state_survives(self) -> bool:
        """Whether the donor has the state, or what it keeps of it until the restart, or else the receiver has it."""
        received = "received" in self.moved.times_s
        return not self.donor_lost or (received and not self.receiver_lost)
