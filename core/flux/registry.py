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

POLICIES: Mapping[FluxPolicy, Callable[[], Policy] | None] = MappingProxyType(
    {
        FluxPolicy.NONE: None,
        FluxPolicy.LOAD: LoadBalancing,
        FluxPolicy.MEMORY: MemoryBalancing,
        FluxPolicy.HYBRID: HybridBalancing,
        FluxPolicy.LOAD_GUARDED: GuardedLoadBalancing,
        FluxPolicy.LOAD_SEVERAL: SeveralMoves,
    }
)


def controller_of(policy: FluxPolicy, min_collection_s: float = MIN_COLLECTION_S) -> Controller | None:
    """The controller of a policy with its defaults; None, of that which moves nothing.

    Raises:
        UsageError: the least collection time is not above 0.
    """
    made = POLICIES[policy]
    return None if made is None else PacedController(made(), min_collection_s)
