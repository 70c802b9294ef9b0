"""Every planner by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from adapt.core.shedding.fragments import Apart
from adapt.core.shedding.local import GreedyLocal
from adapt.core.shedding.names import DropPlanner
from adapt.core.shedding.network import Network
from adapt.core.shedding.planner import Planner
from adapt.core.shedding.program import Program
from adapt.core.shedding.without_table import Exact, LinearProgram, Nothing, Proportional

PLANNERS: Mapping[DropPlanner, Callable[[Program], Planner]] = MappingProxyType(
    {
        DropPlanner.NONE: Nothing,
        DropPlanner.PROPORTIONAL: Proportional,
        DropPlanner.GREEDY_LOCAL: GreedyLocal,
        DropPlanner.LP: LinearProgram,
        DropPlanner.EXACT: Exact,
    }
)


def planner_of(name: DropPlanner, network: Network, headroom: float = 0.0) -> Apart:
    """A planner of a network, each fragment planned apart, a part of every resource left free."""
    return Apart(network, lambda fragment: PLANNERS[name](Program.of(fragment.network, headroom)))
