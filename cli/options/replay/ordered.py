"""Options of `adapt replay ordered`: how many workers, how they take work, and what the model charges them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError
from adapt.core.ordered.chain.names import Engine, Heuristic, OrderlyWorklist, Reorder, Worklist
from adapt.core.ordered.engine.contention import Contention

if TYPE_CHECKING:
    from adapt.core.ordered.engine.settings import RunSettings

QUEUES_PANEL = "Rings, queues and time slices"


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How many workers run the chain, and on what."""

    workers: str | None = setting(
        None,
        "Numbers of workers, in turn; 1, 2, 4 and so on up to the cores of this machine if left out.",
        "1,2,4",
        shown=False,
    )
    engine: Engine | None = setting(
        None,
        "Real workers on threads, or a model of them; threads where the machine has a core for each worker, else sim.",
        shown=False,
    )

    def counts(self, cores: int) -> tuple[int, ...]:
        """Numbers of workers in rising order, each once; 1, 2, 4 and so on up to all cores if none are given."""
        if self.workers is None:
            return tuple(dict.fromkeys([*(1 << power for power in range(cores.bit_length())), cores]))
        try:
            return tuple(sorted({int(part) for part in self.workers.split(",")}))
        except ValueError:
            raise UsageError(f"--workers {self.workers!r} are no numbers, e.g. 1,2,4,8") from None


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """How workers take work, and how outputs come into order."""

    reorder: Reorder = setting(
        Reorder.CLAIM,
        "How outputs come into order: without locks, in a ring that workers claim room in (claim) or try until"
        " there is room (retry, as in the paper), or with a lock.",
    )
    worklist: OrderlyWorklist = setting(
        OrderlyWorklist.HYBRID,
        "How workers share partitions: a queue each and a master queue, or a queue each that a worker owns.",
    )
    heuristic: Heuristic = setting(Heuristic.CT, "Which operator a worker takes next.")
    slice_us: float = setting(100.0, "How long a worker stays with an operator.", "US", panel=QUEUES_PANEL)
    window_ms: float = setting(20.0, "Over how long ct counts worker time.", "MS", panel=QUEUES_PANEL)
    ring: int = setting(4096, "Whose outputs can wait for their turn; a power of two.", "TUPLES", panel=QUEUES_PANEL)
    queue: int = setting(4096, "That can wait before an operator; a power of two.", "TUPLES", panel=QUEUES_PANEL)
    queue_size: float = setting(500.0, "Tuples that qst lets wait in all queues together.", "C", panel=QUEUES_PANEL)
    batch: int = setting(1, "That share a serial number at most, 1 to 64.", "TUPLES", panel=QUEUES_PANEL)
    mark_every: int | None = setting(
        None, "One row of so many is timed; some 10,000 in all if left out.", "N", panel=QUEUES_PANEL, shown=False
    )

    def settings(self) -> "RunSettings":
        """The settings of a run.

        Raises:
            UsageError: one is out of its range.
        """
        from adapt.core.ordered.engine.settings import RunSettings

        if self.mark_every is not None and self.mark_every < 1:
            raise UsageError(f"--mark-every {self.mark_every}: timed is one row of 1 or more")
        return RunSettings(
            reorder=self.reorder,
            worklist=Worklist(self.worklist.value),
            heuristic=self.heuristic,
            ring=self.ring,
            queue=self.queue,
            batch=self.batch,
            slice_us=self.slice_us,
            window_ms=self.window_ms,
            queue_size=self.queue_size,
            mark_every=self.mark_every or 0,
        )


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What workers of the model cost each other."""

    PANEL: ClassVar[str] = (
        "What workers of the model cost each other (engine sim); assumptions, not measurements of your machine"
    )
    jitter: float = setting(0.0, "Share of a tuple's cost that is drawn from an exponential distribution.", "SHARE")
    crowding_us: float = setting(0.15, "Added to a tuple by each other worker on its operator.", "US")
    send_us: float = setting(0.05, "Of a batch, where only one worker at a time sends.", "US")
    output_us: float = setting(0.0, "Of an output, there.", "US")
    hand_over_us: float = setting(0.15, "From a lock's release to the next worker that waits for it.", "US")

    def contention(self) -> "Contention":
        """These costs."""
        return Contention(self.jitter, self.crowding_us, self.send_us, self.output_us, self.hand_over_us)
