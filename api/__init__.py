"""Partitioning, rebalancing, scaling and shedding of keyed, stateful streams.

Every command of `adapt` is a function here, as docs/python.md shows. Names are loaded on first use.
"""

import _signal  # type: ignore[import-not-found]  # loads at once, as `signal` does not
import os
import sys

# In the program, an interrupt ends it before it can be explained, too; in a job of the background it is ignored.
if os.path.basename("".join(sys.argv[:1])) == "adapt" and _signal.getsignal(_signal.SIGINT) is not _signal.SIG_IGN:
    _signal.signal(_signal.SIGINT, lambda *_: os._exit(130))

from importlib import import_module
from typing import TYPE_CHECKING, Any

from adapt import notebook

if TYPE_CHECKING:
    from adapt.core.counting.frequencies import Frequencies as Frequencies
    from adapt.core.errors import AdaptError as AdaptError
    from adapt.core.errors import BadInput as BadInput
    from adapt.core.errors import EnvironmentFailure as EnvironmentFailure
    from adapt.core.errors import UsageError as UsageError
    from adapt.core.own_policies.view import MovePolicy as MovePolicy
    from adapt.core.own_policies.view import ScalePolicy as ScalePolicy
    from adapt.core.own_policies.view import View as View
    from adapt.core.partitioning.build import Recipe as Recipe
    from adapt.core.partitioning.loop.splitter import Splitter as Splitter
    from adapt.core.partitioning.measures.resources import Resources as Resources
    from adapt.core.partitioning.plans.plan import Plan as Plan
    from adapt.functions import advise as advise
    from adapt.functions import build as build
    from adapt.functions import calibrate as calibrate
    from adapt.functions import check as check
    from adapt.functions import clean as clean
    from adapt.functions import cluster as cluster
    from adapt.functions import compare as compare
    from adapt.functions import count as count
    from adapt.functions import diff as diff
    from adapt.functions import evaluate as evaluate
    from adapt.functions import export as export
    from adapt.functions import generate as generate
    from adapt.functions import ingest as ingest
    from adapt.functions import lint as lint
    from adapt.functions import replay as replay
    from adapt.functions import report as report
    from adapt.functions import tolerance as tolerance
    from adapt.functions import verdict as verdict
    from adapt.traces.deploy.kafka import Router as Router
    from adapt.traces.deploy.rekeys import read_rekey as read_rekey
    from adapt.traces.deploy.spark import SparkPlan as SparkPlan
    from adapt.traces.deploy.splitters import read_splitter as read_splitter
    from adapt.traces.deploy.splitters import write_splitter as write_splitter
    from adapt.traces.routing import route as route
    from adapt.traces.store.plans import read_plan as read_plan
    from adapt.traces.store.trace import Trace as Trace
    from adapt.traces.store.trace import open_trace as read_trace

    __version__: str

_FUNCTIONS = (
    *("advise", "build", "calibrate", "check", "clean", "cluster", "compare", "count", "diff", "evaluate"),
    *("export", "generate", "ingest", "lint", "replay", "report", "tolerance", "verdict"),
)
_HOME = {
    **{name: f"adapt.functions:{name}" for name in _FUNCTIONS},
    **{name: f"adapt.core.errors:{name}" for name in ("AdaptError", "BadInput", "EnvironmentFailure", "UsageError")},
    "Frequencies": "adapt.core.counting.frequencies:Frequencies",
    **{name: f"adapt.core.own_policies.view:{name}" for name in ("MovePolicy", "ScalePolicy", "View")},
    "Plan": "adapt.core.partitioning.plans.plan:Plan",
    "Recipe": "adapt.core.partitioning.build:Recipe",
    "Resources": "adapt.core.partitioning.measures.resources:Resources",
    "Router": "adapt.traces.deploy.kafka:Router",
    "SparkPlan": "adapt.traces.deploy.spark:SparkPlan",
    "Splitter": "adapt.core.partitioning.loop.splitter:Splitter",
    "Trace": "adapt.traces.store.trace:Trace",
    "read_plan": "adapt.traces.store.plans:read_plan",
    "read_rekey": "adapt.traces.deploy.rekeys:read_rekey",
    "read_splitter": "adapt.traces.deploy.splitters:read_splitter",
    "read_trace": "adapt.traces.store.trace:open_trace",
    "route": "adapt.traces.routing:route",
    "write_splitter": "adapt.traces.deploy.splitters:write_splitter",
}
"""The definition of each name, as `module:attribute`."""

__all__ = ["AdaptError", "BadInput", "EnvironmentFailure", "Frequencies", "MovePolicy", "Plan", "Recipe", "Resources"]
__all__ += ["Router", "ScalePolicy", "SparkPlan", "Splitter", "Trace", "UsageError", "View", "__version__", "advise"]
__all__ += ["build", "calibrate", "check", "clean", "cluster", "compare", "count", "diff", "evaluate", "export"]
__all__ += ["generate", "ingest", "lint", "read_plan", "read_rekey", "read_splitter", "read_trace", "replay"]
__all__ += ["report", "route", "tolerance", "verdict", "write_splitter"]


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
