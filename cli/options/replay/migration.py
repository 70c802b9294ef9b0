"""Options on how partitions migrate in a rescale."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapt.cli.options.amounts import seconds
from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.names import Migrating, QueueingName, RestartName

if TYPE_CHECKING:
    from adapt.core.stage.control.workers import Migration


@dataclass(frozen=True, slots=True)
class MigrationOptions:
    """How partitions migrate in a rescale."""

    migrate: Migrating | None = setting(
        None,
        "How partitions move in a rescale. Live: all at once, batched, one by one, hottest first, or those with rows"
        " first (demand); or by a restart (default: all, or as the engine of a published policy).",
        panel="Plans and migration",
    )
    batch: int = setting(16, "Partitions per batch.", "PARTITIONS", panel="Plans and migration")
    restart: RestartName | None = setting(
        None,
        "What a restart costs (default: kafka-eager with --queueing kafka, else flink-savepoint).",
        shown=False,
        panel="Plans and migration",
    )
    restart_time: str | None = setting(
        None,
        "Time of a restart, besides that to save and restore state (default: by --restart). It is 120s for"
        " flink-savepoint, 10s for flink-adaptive, 3s for kafka.",
        "10s",
        panel="Plans and migration",
    )

    def chosen(self, engine: QueueingName | None) -> "Migration | None":
        """How partitions migrate; None if it is left to the policy.

        Args:
            engine: Whose queues the stage has.

        Raises:
            UsageError: An option of a restart is given without one, or out of range.
        """
        from dataclasses import replace

        from adapt.core.stage.conditions.restart import RESTARTS
        from adapt.core.stage.control.workers import Migration

        if self.migrate is not Migrating.RESTART and (self.restart is not None or self.restart_time is not None):
            got = "" if self.migrate is None else f" (got --migrate {self.migrate})"
            raise UsageError(f"--restart and --restart-time need --migrate restart{got}")
        if self.migrate is None:
            Migration(batch=self.batch)  # checked, though no batch is moved
            return None
        usual = RestartName.KAFKA_EAGER if engine is QueueingName.KAFKA else RestartName.FLINK_SAVEPOINT
        restart = RESTARTS[self.restart or usual]
        if self.restart_time is not None:
            restart = replace(restart, stop_s=0.0, start_s=seconds("--restart-time", self.restart_time))
        return Migration(self.migrate, self.batch, restart)
