"""Options of `adapt replay fit` on its nodes: what they tell each other, and what they refuse."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options.groups import setting
from adapt.cli.options.replay.shedding import SHED_PANEL, LeastShedOption, ShedFormOption
from adapt.core.stage.conditions.names import SheddingForm
from adapt.core.units.durations import duration_us

if TYPE_CHECKING:
    from adapt.core.fit.distributed.exchange import Transport
    from adapt.core.stage.conditions.shed_factor import Overload


@dataclass(frozen=True, slots=True)
class MessageOptions:
    """What nodes tell each other, and what messages meet."""

    PANEL: ClassVar[str] = "What nodes of d-fit and d-fit-cuts tell each other"

    message_delay: str | None = setting(
        None,
        "How long messages between nodes take. Nodes begin to tell each other when the trace begins, and plan"
        " by what they have heard.",
        "2s",
    )
    message_jitter: str | None = setting(
        None, "What messages take longer at most, so that they overtake each other.", "1s"
    )
    message_loss: float | None = setting(
        None, "Part of the messages that is lost; they are sent again until word comes back.", "P"
    )
    trusting: bool = setting(
        False,
        "Nodes let in whatever others send, as in the paper: while tables are stale, they are overloaded."
        " Else they drop at their entrance what others should have.",
        None,
        "--trusting",
    )

    def transport(self) -> "Transport | None":
        """What messages meet, if anything is said of it; they are sent again after the longest way there and back."""
        from adapt.core.fit.distributed.exchange import Transport

        times = (self.message_delay, self.message_jitter)
        if times == (None, None) and self.message_loss is None:
            return None
        delay_s, jitter_s = (0.0 if text is None else duration_us(text) / 1e6 for text in times)
        resend_s = max(2 * (delay_s + jitter_s), Transport().resend_s)
        return Transport(delay_s, jitter_s, self.message_loss or 0.0, resend_s)


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """What a node refuses by itself."""

    PANEL: ClassVar[str] = SHED_PANEL

    queue: int | None = setting(
        None, "A node refuses tuples by the shed factor, the more of them the nearer its queue is to N.", "N"
    )
    tau2: float = setting(0.8, "Part of the queue below which it refuses none.", "T")
    least_shed: LeastShedOption = 0.0
    shed_form: ShedFormOption = SheddingForm.LINEAR

    def overload(self) -> "Overload | None":
        """The shed factor of a node's queue, if it has one."""
        from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor

        factor = ShedFactor(self.tau2, self.least_shed, self.shed_form)
        return None if self.queue is None else Overload(factor, self.queue, 1.0)
