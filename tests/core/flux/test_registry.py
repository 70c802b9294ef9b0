import pytest

from adapt.core.flux.load import LoadBalancing
from adapt.core.flux.names import FluxPolicy
from adapt.core.flux.registry import POLICIES, controller_of
from adapt.core.stage.arrivals import Drawn
from adapt.core.stage.disturbances import ExternalLoad
from adapt.core.stage.memory import Memory, MemoryChange
from adapt.core.stage.settings import StageSettings, even_groups, even_owners
from adapt.core.stage.simulate import simulate


def test_every_policy_is_listed():
    assert set(POLICIES) == set(FluxPolicy)
    assert controller_of(FluxPolicy.NONE) is None


@pytest.mark.parametrize("policy", FluxPolicy)
def test_every_policy_adapts_a_stage_that_is_loaded_and_short_of_memory(policy):
    of = StageSettings(
        4, even_owners(4, 8), even_groups(64, 32), window=2, disturbances=(ExternalLoad(0, 0.1, 9.0),), buffer_tuples=64
    )
    memory = Memory(8e6, (MemoryChange(1, 0.5, 4e6),), quantum_s=0.02)
    run = simulate(of, Drawn(), 1.5, controller_of(policy, 0.02), memory)
    assert run.census.whole
    assert bool(run.moves) == (policy is not FluxPolicy.NONE)
    for done in run.rounds:
        ends = [site for move in done.moves for site in (move.donor, move.receiver)]
        assert not {move.donor for move in done.moves} & {move.receiver for move in done.moves}
        assert len(ends) == len(set(ends)) or policy is FluxPolicy.LOAD_SEVERAL


def test_thresholds_are_those_that_were_given():
    pairs = LoadBalancing(min_imbalance=1.5, max_receiver=0.8)
    policies = {name: POLICIES[name](pairs) for name in FluxPolicy if POLICIES[name]}
    assert policies[FluxPolicy.LOAD] is pairs
    assert policies[FluxPolicy.MEMORY].min_imbalance == policies[FluxPolicy.HYBRID].memory.min_imbalance == 1.5
    assert policies[FluxPolicy.HYBRID].load is policies[FluxPolicy.LOAD_GUARDED].pairs is pairs
    assert policies[FluxPolicy.LOAD_SEVERAL].guard.pairs is pairs
