"""Engines by name; an engine's folder is imported when the engine is first asked for."""

from functools import cache
from importlib import import_module

from adapt.core.engines.any_language.export import plan_bundle
from adapt.core.engines.engine import EngineDefinition
from adapt.core.engines.exporter import Exporter
from adapt.core.engines.names import AnyScheme, Engine, Target
from adapt.core.partitioning.schemes.names import Scheme


@cache
def definition_of(engine: Engine) -> EngineDefinition:
    """The definition of an engine: `ENGINE` of the module `engine` in the folder of its name."""
    definition: EngineDefinition = import_module(f"adapt.core.engines.{engine.replace('-', '_')}.engine").ENGINE
    return definition


def exporter_of(target: Target) -> Exporter:
    """What makes the files of a plan: the engine's own export, or the plan as text."""
    own = None if target is Target.PLAN else definition_of(Engine(target.value)).export
    return own or plan_bundle


def most_key_groups(scheme: AnyScheme) -> int | None:
    """The most key groups of a scheme that has key groups; None of any other."""
    if isinstance(scheme, Engine):
        return definition_of(scheme).most_key_groups
    return 2**31 - 1 if scheme is Scheme.KEY_GROUPS else None
