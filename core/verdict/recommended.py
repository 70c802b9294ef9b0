"""The plan that a verdict speaks of."""

from dataclasses import replace

from adapt.core.engines.names import AnyScheme
from adapt.core.partitioning.build import Recipe, describe
from adapt.core.partitioning.measures.cells import Hashers, base_of
from adapt.core.partitioning.measures.population import Counted, frequencies_in
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType
from adapt.core.verdict.verdict import Verdict


def today_of(
    engine: AnyScheme, channels: int, recipe: Recipe, current: Plan | None, key_type: KeyType
) -> tuple[Plan, str]:
    """Today's placement and its name: the current plan, or the engine.

    A plan for another number of channels places no keys at this one; its hashing does.
    """
    if current is not None and current.channels == channels:
        return current, "the current plan"
    hashing, groups = (engine, recipe.max_parallelism) if current is None else (current.hashing, None)
    key_type = key_type if current is None else current.key_type
    replicas = recipe.replicas if current is None else current.replicas
    plan = Plan(
        Scheme.HYBRID, channels, key_type, hash=recipe.hash, replicas=replicas, base=hashing, max_parallelism=groups
    )
    return plan, hashing.value


def hashers_today(
    engine: AnyScheme, channels: int, recipe: Recipe, key_type: KeyType, current: Plan | None = None
) -> Hashers:
    """The hasher of keys that are not pinned today."""
    return (base_of(today_of(engine, channels, recipe, current, key_type)[0].partitioner()),)


def recommended_plan(
    verdict: Verdict, counted: Counted, recipe: Recipe, today: Plan, parent: str | None, trace: str | None
) -> Plan:
    """Today's placement with the verdict's pins; without any, as it is.

    Its metrics are those of the counted keys, with the migration from today's placement.

    Args:
        today: As in `today_of`.
        parent: Content hash of the current plan, if any.
        trace: Fingerprint of the trace.
    """
    key_type = frequencies_in(counted).key_type
    pinned = ExplicitMap.from_mapping(today.explicit, key_type.storage)
    pins = ExplicitMap.from_mapping({}, key_type.storage) if verdict.pins is None else verdict.pins
    own = replace(
        recipe,
        scheme=Scheme.HYBRID,
        base=today.hashing,
        hash=today.hash,
        max_parallelism=today.max_parallelism,
        max_pins=None,
    )
    placed = pins.over(pinned)
    partitioner = make_partitioner(
        *(own.scheme, today.channels, own.hash, today.replicas, placed, today.max_parallelism, own.base),
        key_type=key_type,
    )
    return replace(describe(counted, own, partitioner, today.partitioner(), parent, trace).plan, construction=None)
