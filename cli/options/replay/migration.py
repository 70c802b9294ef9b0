"""Options on how partitions migrate in a rescale."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options.amounts import seconds
from adapt.cli.options.groups import setting
from adapt.core.stage.conditions.names import Migrating, QueueingName, RestartName

if TYPE_CHECKING:
    from adapt.core.stage.control.workers import Migration


@dataclass(frozen=True, slots=True)
class MigrationOptions:
    """How partitions migrate in a rescale."""

    OPTION: ClassVar[str] = "--migrate"
    HEAD: ClassVar[str] = "migrate"
    migrate: Migrating | None = setting(
        None,
        "How partitions move in a rescale. Live: all at once, batched, one by one, hottest first, or those with rows"
        " first (demand); or by a restart (default: all, or as the engine of a published policy).",
    )
    batch: int = setting(16, "Partitions per batch.", "PARTITIONS", of=(Migrating.BATCHED, Migrating.HOTTEST))
    restart: RestartName | None = setting(
        None,
        "What a restart costs (default: kafka-eager with --engine kafka, else flink-savepoint).",
        shown=False,
        of=(Migrating.RESTART,),
    )
    restart_time: str | None = setting(
        None,
        "Time of a restart, besides that to save and restore state (default: by restart). It is 120s for"
        " flink-savepoint, 10s for flink-adaptive, 3s for kafka.",
        "10s",
        of=(Migrating.RESTART,),
    )

    def chosen(self, engine: QueueingName | None) -> "Migration | None":
        """How partitions migrate; None if it is left to the policy.

        Args:
            engine: Whose queues the stage has.
        """
        from dataclasses import replace

        from adapt.core.stage.conditions.settings import RESTARTS
        from adapt.core.stage.control.workers import Migration

        if self.migrate is None:
            return None
        usual = RestartName.KAFKA_EAGER if engine is QueueingName.KAFKA else RestartName.FLINK_SAVEPOINT
        restart = RESTARTS[self.restart or usual]
        if self.restart_time is not None:
            restart = replace(restart, stop_s=0.0, start_s=seconds("--migrate restart-time", self.restart_time))
        return Migration(self.migrate, self.batch, restart)
