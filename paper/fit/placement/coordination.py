"""What a coordinator of a placed network exchanges."""

from adapt.core.arrays import Floats
from adapt.core.fit.control import Control
from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.fit.registry import PlannerOptions


def coordination(network: Network, rates: Floats, headroom: float) -> float:
    """Mean bytes that a coordinator exchanges when all rates change.

    Args:
        rates: Tuples/s, shape (points, inputs); each point differs from the one before.
    """
    settings = SheddingSettings(lag_ticks=0, headroom=headroom)
    control = Control(network, DropPlanner.EXACT, PlannerOptions(settings), clock=lambda: 0.0)
    control.decide(rates[0])
    known = control.sent.size
    changes = [*rates[1:], rates[0] * (1 + 1e-6)]
    for each in changes:
        control.decide(each)
    return (control.sent.size - known) / len(changes)
