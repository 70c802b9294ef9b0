"""Every policy by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from adapt.core.flux.controller import MIN_COLLECTION_S, PacedController, Policy
from adapt.core.flux.guarded import GuardedLoadBalancing
from adapt.core.flux.hybrid import HybridBalancing
from adapt.core.flux.load import LoadBalancing
from adapt.core.flux.memory import MemoryBalancing
from adapt.core.flux.names import FluxPolicy
from adapt.core.flux.several import SeveralMoves
from adapt.core.stage.moves import Controller

POLICIES: Mapping[FluxPolicy, Callable[[LoadBalancing], Policy] | None] = MappingProxyType(
    {
        FluxPolicy.NONE: None,
        FluxPolicy.LOAD: lambda pairs: pairs,
        FluxPolicy.MEMORY: lambda pairs: MemoryBalancing(pairs.min_imbalance),
        FluxPolicy.HYBRID: lambda pairs: HybridBalancing(pairs, MemoryBalancing(pairs.min_imbalance)),
        FluxPolicy.LOAD_GUARDED: GuardedLoadBalancing,
        FluxPolicy.LOAD_SEVERAL: lambda pairs: SeveralMoves(GuardedLoadBalancing(pairs)),
    }
)
"""How each is made from the thresholds of the paper."""


def controller_of(
    policy: FluxPolicy, min_collection_s: float = MIN_COLLECTION_S, pairs: LoadBalancing | None = None
) -> Controller | None:
    """The controller of a policy; None, of that which moves nothing.

    Args:
        policy: Its name.
        min_collection_s: delta_min.
        pairs: The thresholds of the paper; its defaults if not given.

    Raises:
        UsageError: the least collection time is not above 0.
    """
    made = POLICIES[policy]
    return None if made is None else PacedController(made(pairs or LoadBalancing()), min_collection_s)
