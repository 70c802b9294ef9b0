"""Options on whose queues a stage has."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from adapt.cli.options.amounts import above_0_or_none, seconds
from adapt.cli.options.groups import setting
from adapt.core.stage.conditions.names import QueueingName

if TYPE_CHECKING:
    from adapt.core.stage.conditions.settings import Queueing
    from adapt.traces.store.trace import Trace


_CHECKPOINTS: dict[str, Any] = {"of": (QueueingName.FLINK,), "needs": "--engine:checkpoint-interval"}


@dataclass(frozen=True, slots=True)
class QueueingOptions:
    """Whose queues a stage has."""

    OPTION: ClassVar[str] = "--engine"
    HEAD: ClassVar[str] = "engine"
    engine: QueueingName | None = setting(
        None,
        "Engine whose queues the stage has (default: flux). A buffer for all workers (flux), bounded channels and"
        " checkpoints (flink), a log per partition (kafka), or micro-batches (spark). The default of compare is the"
        " trace's engine.",
        shown=False,
    )
    fetch_rows: int | None = setting(
        None, "Rows that a worker takes from one log before the next (default: 500).", "ROWS", of=(QueueingName.KAFKA,)
    )
    checkpoint_interval: str | None = setting(
        None, "Time between checkpoints (default: none).", "60s", of=(QueueingName.FLINK,)
    )
    checkpoint_pause: str | None = setting(
        None, "How long a worker stops for its part of a checkpoint (default: 0s).", "10ms", **_CHECKPOINTS
    )
    unaligned: bool = setting(False, "Unaligned checkpoints, whose barriers stop no channel.", **_CHECKPOINTS)
    batch_interval: str | None = setting(
        None,
        "Time between micro-batches (default: the next starts when one ends).",
        "10s",
        of=(QueueingName.SPARK,),
    )
    batch_overhead: str | None = setting(
        None, "Time to plan and commit a micro-batch (default: 100ms).", "100ms", of=(QueueingName.SPARK,)
    )
    batch_rows: int | None = setting(
        None, "Most rows of a micro-batch (default: 1,048,576).", "ROWS", of=(QueueingName.SPARK,)
    )

    def chosen(self, tuple_bytes: int, trace: "Trace | None" = None) -> "Queueing":
        """The queues.

        Args:
            trace: Whose engine decides if no queues are named; None, Flux.
        """
        from adapt.core.stage.conditions.settings import MOST_IN_CHANNEL, Queueing, segment_rows

        engine = self.engine or (QueueingName.FLUX if trace is None else engine_of(trace))
        given = {
            "fetch_rows": self.fetch_rows,
            "batch_rows": self.batch_rows,
            "checkpoint_pause_s": _seconds_or_none("--engine checkpoint-pause", self.checkpoint_pause),
            "trigger_s": _seconds_or_none("--engine batch-interval", self.batch_interval),
            "batch_overhead_s": _seconds_or_none("--engine batch-overhead", self.batch_overhead),
        }
        return Queueing(
            engine,
            channel_rows=MOST_IN_CHANNEL * segment_rows(tuple_bytes),
            checkpoint_s=above_0_or_none("--engine checkpoint-interval", self.checkpoint_interval),
            aligned=not self.unaligned,
            **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
        )


def engine_of(trace: "Trace") -> QueueingName:
    """The queues of a trace's engine: Kafka's if its rows have partitions."""
    return QueueingName.KAFKA if "partition" in trace.columns else QueueingName.FLUX


def _seconds_or_none(name: str, value: str | None) -> float | None:
    return None if value is None else seconds(name, value)
