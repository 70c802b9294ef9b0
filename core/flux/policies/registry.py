"""Registry of rebalancing policies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from adapt.core.flux.policies.guarded_policy import GuardedLoadBalancing, SeveralMoves
from adapt.core.flux.policies.load_policy import (
    MIN_COLLECTION_S,
    HybridBalancing,
    LoadBalancing,
    MemoryBalancing,
    PacedController,
    Policy,
)
from adapt.core.flux.policies.multi_move_memory import SeveralMemoryController, SeveralMemoryMoves
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.settling import SettlingController
from adapt.core.flux.policies.weighted_move import WeightedMoves
from adapt.core.own.own_code import ChosenPolicy, OwnCode
from adapt.core.own_policies.view import OwnMoves
from adapt.core.stage.movement.controller import Controller
from adapt.core.units.settings import settings_from

AnyFluxPolicy: TypeAlias = FluxPolicy | OwnCode
"""A rebalancing policy: built in, or a user's own."""

ChosenFluxPolicy: TypeAlias = ChosenPolicy[FluxPolicy, LoadBalancing]
"""A rebalancing policy with its thresholds."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Arguments of a controller."""

    pairs: LoadBalancing  # thresholds of the paper
    min_collection_s: float  # minimum collection time, delta_min


def _paced(policy: Callable[[LoadBalancing], Policy]) -> Callable[[Chosen], Controller]:
    """A policy with the paper's round lengths."""
    return lambda chosen: PacedController(policy(chosen.pairs), chosen.min_collection_s)


def _settling(chosen: Chosen) -> SettlingController:
    return SettlingController(SeveralMoves(GuardedLoadBalancing(chosen.pairs)), chosen.min_collection_s)


def _several_memory(chosen: Chosen) -> Controller:
    memory = SeveralMemoryMoves(settings_from(chosen.pairs, MemoryBalancing))
    return SeveralMemoryController(memory, None, chosen.min_collection_s)


def _several_hybrid(chosen: Chosen) -> Controller:
    memory = SeveralMemoryMoves(settings_from(chosen.pairs, MemoryBalancing))
    load = SettlingController(
        SeveralMoves(GuardedLoadBalancing(chosen.pairs), within_memory=True), chosen.min_collection_s
    )
    return SeveralMemoryController(memory, load, chosen.min_collection_s)


CONTROLLERS: Mapping[FluxPolicy, Callable[[Chosen], Controller] | None] = MappingProxyType(
    {
        FluxPolicy.NONE: None,
        FluxPolicy.LOAD: _paced(lambda pairs: pairs),
        FluxPolicy.MEMORY: _paced(lambda pairs: settings_from(pairs, MemoryBalancing)),
        FluxPolicy.HYBRID: _paced(lambda pairs: HybridBalancing(pairs, settings_from(pairs, MemoryBalancing))),
        FluxPolicy.LOAD_GUARDED: _paced(GuardedLoadBalancing),
        FluxPolicy.LOAD_SEVERAL: _settling,
        FluxPolicy.MEMORY_SEVERAL: _several_memory,
        FluxPolicy.HYBRID_SEVERAL: _several_hybrid,
        FluxPolicy.SLICER: _paced(lambda _: WeightedMoves()),
    }
)
"""Factory of each policy's controller; None for `none`."""


def controller_of(
    policy: AnyFluxPolicy,
    min_collection_s: float = MIN_COLLECTION_S,
    pairs: LoadBalancing | None = None,
) -> Controller | None:
    """A controller of a policy for one run; None for policy `none`.

    Args:
        min_collection_s: Minimum collection time, delta_min.
        pairs: Thresholds; None, those of the paper.
    """
    if isinstance(policy, OwnCode):
        return PacedController(OwnMoves(policy), min_collection_s)
    made = CONTROLLERS[policy]
    if made is None:
        return None
    return made(Chosen(pairs or LoadBalancing(), min_collection_s))
