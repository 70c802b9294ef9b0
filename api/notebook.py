"""Results as tables in notebooks."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

RENDERINGS = {
    ("adapt.core.counting.frequencies", "Frequencies"): "adapt.core.counting.tables:counted_tables",
    ("adapt.core.partitioning.plans.plan", "Plan"): "adapt.core.partitioning.plans.plan_tables:plan_tables",
    ("adapt.traces.store.trace", "Trace"): "adapt.traces.store.trace:trace_tables",
}
"""The function of a class's tables, as `module:function`, by module and name of the class."""


def html_of(value: Any) -> str:
    """A result as HTML, escaped.

    Raises:
        TypeError: the value has no tables.
    """
    own: Callable[[], str] | None = getattr(value, "_repr_html_", None)
    if own is not None:
        return own()
    kind = type(value)
    if not shows(kind):
        raise TypeError(f"{kind.__name__} has no tables")
    module, _, function = RENDERINGS[kind.__module__, kind.__name__].partition(":")
    return "".join(table._repr_html_() for table in getattr(import_module(module), function)(value))


def shows(kind: type) -> bool:
    """Whether notebooks show values of a class as tables."""
    return hasattr(kind, "_repr_html_") or (kind.__module__, kind.__name__) in RENDERINGS


def show_results() -> None:
    """Make IPython show results as tables; does nothing outside notebooks."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return
    formatter = shell.display_formatter.formatters["text/html"]
    for module, name in RENDERINGS:
        formatter.for_type_by_name(module, name, html_of)
