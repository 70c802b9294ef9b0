from pathlib import Path

import numpy as np
import pytest

from adapt.core.flux.policies.load_policy import LoadBalancing
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import CONTROLLERS, controller_of
from adapt.core.stage.conditions.arrivals import Drawn
from adapt.core.stage.conditions.faults import ExternalLoad
from adapt.core.stage.conditions.settings import StageSettings, even_groups, even_owners
from adapt.core.stage.movement.spilling import Memory, MemoryChange
from adapt.core.stage.simulate import Actors, simulate
from tests.core.flux.observations import observed

SEVERAL = (
    *(FluxPolicy.LOAD_SEVERAL, FluxPolicy.MEMORY_SEVERAL, FluxPolicy.HYBRID_SEVERAL),
    FluxPolicy.SLICER,
)
"""Those that move more than one partition of a worker in a round."""

UNPAIRED = (FluxPolicy.NONE, FluxPolicy.SLICER)
"""Those that know no pairs of workers."""


def test_every_policy_is_listed():
    assert set(CONTROLLERS) == set(FluxPolicy)
    assert controller_of(FluxPolicy.NONE) is None


def test_every_policy_is_described():
    page = (Path(__file__).parents[4] / "docs/flux.md").read_text(encoding="utf-8")
    assert all(f"| `{policy}` | " in page for policy in FluxPolicy if policy is not FluxPolicy.NONE)


@pytest.mark.parametrize("policy", FluxPolicy)
def test_every_policy_adapts_a_stage_that_is_loaded_and_short_of_memory(policy):
    of = StageSettings(
        4, even_owners(4, 8), even_groups(64, 32), window=2, disturbances=(ExternalLoad(0, 0.1, 9.0),), buffer_tuples=64
    )
    memory = Memory(8e6, (MemoryChange(1, 0.5, 4e6),), quantum_s=0.02)
    run = simulate(of, Drawn(), 1.5, Actors(controller_of(policy, 0.02), memory))
    assert run.census.whole
    assert bool(run.moves) == (policy is not FluxPolicy.NONE)
    for done in run.rounds:
        ends = [worker for move in done.moves for worker in (move.donor, move.receiver)]
        assert not {move.donor for move in done.moves} & {move.receiver for move in done.moves}
        assert len(ends) == len(set(ends)) or policy in SEVERAL


@pytest.mark.parametrize("policy", [policy for policy in FluxPolicy if policy not in UNPAIRED])
def test_thresholds_are_those_that_were_given(policy):
    """Worker 0 is 1.6 times as busy as worker 1 and uses 2.1 times the share of its memory, so that all help it."""
    seen = observed(
        [0.2, 0.5], [0] * 8 + [1] * 5, [100] * 13, available_bytes=np.array([7.5e6, 1e7]), on_disk=np.arange(13) == 0
    )
    assert controller_of(policy, pairs=LoadBalancing(1.2)).plan(seen)
    assert not controller_of(policy, pairs=LoadBalancing(3.0)).plan(seen)
