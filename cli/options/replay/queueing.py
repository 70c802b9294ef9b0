"""Options on whose queues a stage has."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options.amounts import above_0_or_none, seconds
from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.names import QueueingName

if TYPE_CHECKING:
    from adapt.core.stage.conditions.queueing import Queueing
    from adapt.traces.store.trace import Trace

ENGINE_OF_OPTION = {
    "fetch_rows": QueueingName.KAFKA,
    "checkpoint_interval": QueueingName.FLINK,
    "checkpoint_pause": QueueingName.FLINK,
    "unaligned": QueueingName.FLINK,
    "batch_interval": QueueingName.SPARK,
    "batch_overhead": QueueingName.SPARK,
    "batch_rows": QueueingName.SPARK,
}
"""The engine that an option is for."""


@dataclass(frozen=True, slots=True)
class QueueingOptions:
    """Whose queues a stage has."""

    PANEL: ClassVar[str] = "Queueing"
    queueing: QueueingName | None = setting(
        None,
        "Queues as in an engine (default: flux). A buffer for all workers (flux), bounded channels and checkpoints"
        " (flink), a log per partition (kafka), or micro-batches (spark). The default of compare is that of the trace's"
        " engine.",
        shown=False,
        panel="Options",
    )
    fetch_rows: int | None = setting(
        None, "Rows that a worker takes from one log before the next (kafka; default: 500).", "ROWS"
    )
    checkpoint_interval: str | None = setting(None, "Time between checkpoints (flink; default: none).", "60s")
    checkpoint_pause: str | None = setting(
        None, "How long a worker stops for its part of a checkpoint (flink; default: 0s).", "10ms"
    )
    unaligned: bool = setting(
        False, "Unaligned checkpoints, whose barriers stop no channel (flink).", None, "--unaligned"
    )
    batch_interval: str | None = setting(
        None, "Time between micro-batches (spark; default: the next starts when one ends).", "10s"
    )
    batch_overhead: str | None = setting(
        None, "Time to plan and commit a micro-batch (spark; default: 100ms).", "100ms"
    )
    batch_rows: int | None = setting(None, "Most rows of a micro-batch (spark; default: 1,048,576).", "ROWS")

    def chosen(self, tuple_bytes: int, trace: "Trace | None" = None) -> "Queueing":
        """The queues.

        Args:
            trace: Whose engine decides if no queues are named; None, Flux.

        Raises:
            UsageError: An option is for another engine, or out of range.
        """
        from adapt.core.stage.conditions.queueing import MOST_IN_CHANNEL, Queueing, segment_rows

        engine = self.queueing or (QueueingName.FLUX if trace is None else engine_of(trace))
        for name, of in ENGINE_OF_OPTION.items():
            if getattr(self, name) not in (None, False) and engine is not of:
                raise UsageError(f"--{name.replace('_', '-')} is for --queueing {of} (got --queueing {engine})")
        given = {
            "fetch_rows": self.fetch_rows,
            "batch_rows": self.batch_rows,
            "checkpoint_pause_s": _seconds_or_none("--checkpoint-pause", self.checkpoint_pause),
            "trigger_s": _seconds_or_none("--batch-interval", self.batch_interval),
            "batch_overhead_s": _seconds_or_none("--batch-overhead", self.batch_overhead),
        }
        return Queueing(
            engine,
            channel_rows=MOST_IN_CHANNEL * segment_rows(tuple_bytes),
            checkpoint_s=above_0_or_none("--checkpoint-interval", self.checkpoint_interval),
            aligned=not self.unaligned,
            **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
        )


def engine_of(trace: "Trace") -> QueueingName:
    """The queues of a trace's engine: Kafka's if its rows have partitions."""
    return QueueingName.KAFKA if "partition" in trace.columns else QueueingName.FLUX


def _seconds_or_none(name: str, value: str | None) -> float | None:
    return None if value is None else seconds(name, value)
