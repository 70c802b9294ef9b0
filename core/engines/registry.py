"""Engines by name, imported on first use."""

from functools import cache
from importlib import import_module

from adapt.core.engines.any_language.export import plan_bundle
from adapt.core.engines.engine import EngineDefinition, KeyGroupLimits
from adapt.core.engines.exporter import Exporter
from adapt.core.engines.names import AnyScheme, Engine, Target
from adapt.core.partitioning.schemes.key_groups import default_max_parallelism
from adapt.core.partitioning.schemes.names import Scheme


@cache
def definition_of(engine: Engine) -> EngineDefinition:
    """The definition of an engine, imported from its folder."""
    module = import_module(f"adapt.core.engines.{engine.folder}.engine")
    found: EngineDefinition = module.definition(engine) if hasattr(module, "definition") else module.ENGINE
    return found


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
