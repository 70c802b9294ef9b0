"""Policies that only this study compares: one that tunes its collection time, and one that knows the run."""

from enum import StrEnum
from typing import TypeAlias

from adapt.core.flux.policies.load_policy import LoadBalancing
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import controller_of
from adapt.core.stage.movement.controller import Controller
from paper.flux.clairvoyant import OptimumController, ahead_of
from paper.flux.scenarios import Scenario
from paper.flux.tuned import TunedController


class Beyond(StrEnum):
    """A policy that the program does not offer."""

    LOAD_AUTO = "load-auto"
    """The load policy with a collection time that tunes itself."""

    OPTIMUM = "optimum"
    """Clairvoyant: an upper bound for the others."""


Compared: TypeAlias = FluxPolicy | Beyond
"""A policy of the study."""


def controller_for(policy: Compared, collection_s: float, scenario: Scenario) -> Controller | None:
    """A controller of a policy for one run of a scenario; None for policy `none`."""
    if policy is Beyond.LOAD_AUTO:
        return TunedController(LoadBalancing(), collection_s)
    if policy is Beyond.OPTIMUM:
        return OptimumController(ahead_of(scenario.settings, scenario.source, scenario.memory), collection_s)
    return controller_of(FluxPolicy(policy), collection_s)
