"""Units of work of an engine that rescales."""

from dataclasses import dataclass

from adapt.core.engines.engine import EngineDefinition
from adapt.core.engines.names import Engine
from adapt.core.engines.placement import EnginePartitioner
from adapt.core.engines.registry import definition_of, placement_of
from adapt.core.errors import UsageError
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.schemes.key_groups import groups_for
from adapt.core.stream import KeyType


@dataclass(frozen=True, slots=True)
class EngineUnits:
    """Units that an engine moves as a whole when it rescales.

    They are Flink's key groups, or partitions.
    """

    engine: Engine
    count: int  # their number, which a rescale does not change

    @classmethod
    def of_pool(
        cls, engine: Engine, pool: int, per_worker: int | None, max_parallelism: int | None, usual: int
    ) -> "EngineUnits":
        """The units of a job on a pool of workers.

        Args:
            per_worker: Units per worker of the pool, where the engine lets users choose; None, its default.
            max_parallelism: Flink's number of key groups; None, its default for the pool.
            usual: Units per worker of an engine without a default.
        """
        definition = definition_of(engine)
        units, groups = definition.units, definition.key_groups
        if units.owners is None:
            raise UsageError(
                f"{engine} has no fixed units of work: its ranges depend on the workers; use another scheme"
            )
        if max_parallelism is not None and groups is None:
            raise UsageError(f"max-parallelism is the number of Flink's key groups; {engine} has {units.name}; omit it")
        fixed = engine.shards or (units.default is not None and units.default(pool) == units.most)
        if per_worker is not None and (groups is not None or fixed):
            instead = "give max-parallelism" if groups is not None else "omit it"
            raise UsageError(
                f"--partitions does not set the {units.name} of {engine}; {instead}, or --scheme hybrid for plans"
            )
        if groups is not None:
            return cls(engine, groups_for(pool, max_parallelism, groups.most))
        if engine.shards:
            return cls(engine, len(engine.shards))
        if per_worker is None and units.default is not None:
            return cls(engine, units.default(pool))
        return cls(engine, (usual if per_worker is None else per_worker) * pool)

    @property
    def definition(self) -> EngineDefinition:
        """The engine's definition."""
        return definition_of(self.engine)

    def partitioner(self, key_type: KeyType | None = None) -> EnginePartitioner:
        """The unit of each key of a type."""
        return placement_of(self.engine, self.count, self.count, key_type)

    def owners(self, workers: int) -> Channels:
        """The worker of each unit; shape (count,)."""
        assert self.definition.units.owners is not None
        return self.definition.units.owners(self.count, workers)

    @property
    def sentence(self) -> str:
        """Who places keys, in words."""
        return f"{self.definition.title} places {self.count:,} {self.definition.units.name}, not a plan."
