"""Partitioning, rebalancing, scaling and shedding of keyed, stateful streams.

Public names are loaded on first use; `import adapt` alone loads nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from adapt import notebook

if TYPE_CHECKING:
    from adapt.core.counting.frequencies import Frequencies as Frequencies
    from adapt.core.partitioning.build import Recipe as Recipe
    from adapt.core.partitioning.build import build_plan as build
    from adapt.core.partitioning.compare import compare_schemes as compare
    from adapt.core.partitioning.loop.splitter import Splitter as Splitter
    from adapt.core.partitioning.measures.resources import Resources as Resources
    from adapt.core.partitioning.plans.plan import Plan as Plan
    from adapt.traces.counting.count import count_trace as count
    from adapt.traces.deploy.splitters import read_splitter as read_splitter
    from adapt.traces.deploy.splitters import write_splitter as write_splitter
    from adapt.traces.ingest.ingest import ingest as ingest
    from adapt.traces.store.plans import read_plan as read_plan
    from adapt.traces.store.trace import open_trace as read_trace

    __version__: str

_HOME = {
    "Frequencies": "adapt.core.counting.frequencies:Frequencies",
    "Plan": "adapt.core.partitioning.plans.plan:Plan",
    "Recipe": "adapt.core.partitioning.build:Recipe",
    "Resources": "adapt.core.partitioning.measures.resources:Resources",
    "Splitter": "adapt.core.partitioning.loop.splitter:Splitter",
    "build": "adapt.core.partitioning.build:build_plan",
    "compare": "adapt.core.partitioning.compare:compare_schemes",
    "count": "adapt.traces.counting.count:count_trace",
    "ingest": "adapt.traces.ingest.ingest:ingest",
    "read_plan": "adapt.traces.store.plans:read_plan",
    "read_splitter": "adapt.traces.deploy.splitters:read_splitter",
    "read_trace": "adapt.traces.store.trace:open_trace",
    "write_splitter": "adapt.traces.deploy.splitters:write_splitter",
}
"""The definition of each name, as `module:attribute`."""

__all__ = [
    "Frequencies",
    "Plan",
    "Recipe",
    "Resources",
    "Splitter",
    "__version__",
    "build",
    "compare",
    "count",
    "ingest",
]
__all__ += ["read_plan", "read_splitter", "read_trace", "write_splitter"]


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name == "__version__":
        from importlib.metadata import version

        return version("adapt-streams")
    if name not in _HOME:
        raise AttributeError(f"module 'adapt' has no attribute {name!r}; available: {', '.join(sorted(_HOME))}")
    module, _, attribute = _HOME[name].partition(":")
    value = globals()[name] = getattr(import_module(module), attribute)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


notebook.show_results()
