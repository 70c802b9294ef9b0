"""Every target by name: what makes its files of a plan."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from adapt.core.engines.any_language.export import plan_bundle
from adapt.core.engines.bundle import Bundle
from adapt.core.engines.flink.export import flink_bundle
from adapt.core.engines.kafka.export import kafka_bundle
from adapt.core.engines.names import Target
from adapt.core.engines.spark.export import spark_bundle
from adapt.core.partitioning.plans.plan import Plan


class Exporter(Protocol):
    """Makes the files of a plan for one target."""

    def __call__(self, plan: Plan, max_parallelism: int | None) -> Bundle:
        """The files.

        Args:
            plan: What is to be deployed.
            max_parallelism: The key groups of the job, in a target that has them; None, what it takes by default.

        Raises:
            BadInput: the target cannot place keys so; the sentence says why and what can be built instead.
        """


EXPORTERS: Mapping[Target, Exporter] = MappingProxyType(
    {
        Target.SPARK: spark_bundle,
        Target.KAFKA: kafka_bundle,
        Target.FLINK: flink_bundle,
        Target.PLAN: plan_bundle,
    }
)
