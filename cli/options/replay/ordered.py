"""Options of `adapt replay ordered`: how many workers, how they take work, and what the model charges them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from adapt.cli.options.groups import option
from adapt.core.errors import UsageError
from adapt.core.ordered.chain.names import Engine, Heuristic, OrderlyWorklist, Reorder

if TYPE_CHECKING:
    from adapt.core.ordered.engine.contention import Contention
    from adapt.core.ordered.engine.settings import RunSettings

QUEUES_PANEL = "Rings, queues and time slices"


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How many workers run the chain, and on what."""

    workers: Annotated[
        str | None,
        option(
            "Numbers of workers, in turn; 1, 2, 4 and so on up to the cores of this machine if left out.",
            "1,2,4",
            shown=False,
        ),
    ] = None
    engine: Annotated[
        Engine | None,
        option(
            "Real workers on threads, or a model of them; threads where the machine has a core for each worker,"
            " else sim.",
            shown=False,
        ),
    ] = None

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

    reorder: Annotated[
        Reorder,
        option(
            "How outputs come into order: without locks, in a ring that workers claim room in (claim) or try until"
            " there is room (retry, as in the paper), or with a lock."
        ),
    ] = Reorder.CLAIM
    worklist: Annotated[
        OrderlyWorklist,
        option("How workers share partitions: a queue each and a master queue, or a queue each that a worker owns."),
    ] = OrderlyWorklist.HYBRID
    heuristic: Annotated[Heuristic, option("Which operator a worker takes next.")] = Heuristic.CT
    slice_us: Annotated[float, option("How long a worker stays with an operator.", "US", panel=QUEUES_PANEL)] = 100.0
    window_ms: Annotated[float, option("Over how long ct counts worker time.", "MS", panel=QUEUES_PANEL)] = 20.0
    ring: Annotated[
        int, option("Whose outputs can wait for their turn; a power of two.", "TUPLES", panel=QUEUES_PANEL)
    ] = 4096
    queue: Annotated[int, option("That can wait before an operator; a power of two.", "TUPLES", panel=QUEUES_PANEL)] = (
        4096
    )
    queue_size: Annotated[
        float, option("Tuples that qst lets wait in all queues together.", "C", panel=QUEUES_PANEL)
    ] = 500.0
    batch: Annotated[int, option("That share a serial number at most, 1 to 64.", "TUPLES", panel=QUEUES_PANEL)] = 1
    mark_every: Annotated[
        int | None,
        option("One row of so many is timed; some 10,000 in all if left out.", "N", panel=QUEUES_PANEL, shown=False),
    ] = None

    def settings(self) -> "RunSettings":
        """The settings of a run.

        Raises:
            UsageError: one is out of its range.
        """
        from adapt.core.ordered.chain.names import Worklist
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

    jitter: Annotated[
        float, option("Share of a tuple's cost that is drawn from an exponential distribution.", "SHARE")
    ] = 0.0
    crowding_us: Annotated[float, option("Added to a tuple by each other worker on its operator.", "US")] = 0.15
    send_us: Annotated[float, option("Of a batch, where only one worker at a time sends.", "US")] = 0.05
    output_us: Annotated[float, option("Of an output, there.", "US")] = 0.0
    hand_over_us: Annotated[float, option("From a lock's release to the next worker that waits for it.", "US")] = 0.15

    def contention(self) -> "Contention":
        """These costs."""
        from adapt.core.ordered.engine.contention import Contention

        return Contention(self.jitter, self.crowding_us, self.send_us, self.output_us, self.hand_over_us)
