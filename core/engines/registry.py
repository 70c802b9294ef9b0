"""Engines by name, imported on first use."""

from dataclasses import replace
from functools import cache
from importlib import import_module

from adapt.core.engines.any_language.export import plan_bundle
from adapt.core.engines.engine import EngineDefinition, KeyGroupLimits, OtherKeys
from adapt.core.engines.exporter import Exporter
from adapt.core.engines.names import AnyScheme, Engine, Target
from adapt.core.engines.placement import EnginePartitioner
from adapt.core.errors import UsageError
from adapt.core.partitioning.schemes.key_groups import default_max_parallelism
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType


@cache
def definition_of(engine: Engine) -> EngineDefinition:
    """The definition of an engine, imported from its folder."""
    module = import_module(f"adapt.core.engines.{engine.folder}.engine")
    found: EngineDefinition = module.definition(engine) if hasattr(module, "definition") else module.ENGINE
    return found


def placement_of(
    engine: Engine, channels: int, max_parallelism: int | None = None, key_type: KeyType | None = None
) -> EnginePartitioner:
    """An engine's placement of keys of a type."""
    placement = definition_of(engine).placement(channels, max_parallelism)
    if key_type is None or key_type is key_type.storage:
        return placement
    definition = definition_of(engine)
    exact = definition.other_keys is OtherKeys.EXACT
    if not exact and key_type.columns:
        raise UsageError(
            f"{engine} places a record by the bytes of its key, which are not known for a key of several columns; give"
            " --key the expression that makes the record's key, such as concat(a, '|', b)"
        )
    if key_type not in definition.key_types and definition.other_keys is OtherKeys.REFUSED:
        raise UsageError(
            f"how {engine} places {key_type} keys is not known; ingest them as text or as a whole number, if the job"
            " has them so, e.g. --key 'string(...)'"
        )
    return replace(placement, key_type=key_type)  # type: ignore[type-var] # each is a dataclass


def assumed_keys(scheme: AnyScheme, key_type: KeyType) -> str:
    """Bytes by which an engine is assumed to place keys."""
    if not isinstance(scheme, Engine) or key_type is key_type.storage or key_type.columns:
        return ""
    definition = definition_of(scheme)
    if definition.other_keys is not OtherKeys.ASSUMED or key_type in definition.key_types:
        return ""
    return f"{scheme} clients have no serializer for {key_type} keys; they are placed by their text"


def exporter_of(target: Target) -> Exporter:
    """The export function of a target."""
    if target is Target.REKEY:
        rekeyed: Exporter = import_module("adapt.core.engines.rekey.export").export_rekeyed
        return rekeyed
    own = None if target is Target.PLAN else definition_of(Engine(target.value)).export
    return own or plan_bundle


def key_groups_of(scheme: AnyScheme) -> KeyGroupLimits | None:
    """The limits of a scheme's key groups; None without key groups."""
    if isinstance(scheme, Engine):
        return definition_of(scheme).key_groups
    return KeyGroupLimits(default_max_parallelism, 2**31 - 1, fixed=True) if scheme is Scheme.KEY_GROUPS else None
