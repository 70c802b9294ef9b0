import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.flux.policies.guarded_policy import GuardedLoadBalancing, SeveralMoves
from adapt.core.flux.policies.load_policy import LoadBalancing
from adapt.core.stage.movement.controller import Move
from tests.core.flux.observations import observations, observed

BOTH = (GuardedLoadBalancing(), SeveralMoves())


@given(observations())
def test_the_guarded_policy_moves_at_most_where_the_faithful_one_pairs(seen):
    moves = GuardedLoadBalancing().plan(seen)
    assert {(move.donor, move.receiver) for move in moves} <= set(LoadBalancing().worth_evening(seen))
    assert all(seen.owners[move.partition] == move.donor for move in moves)


@given(observations())
def test_of_several_moves_each_partition_has_one_and_no_worker_gives_and_takes(seen):
    moves = SeveralMoves().plan(seen)
    assert len({move.partition for move in moves}) == len(moves)
    assert not {move.donor for move in moves} & {move.receiver for move in moves}
    assert all(seen.owners[move.partition] == move.donor for move in moves)


@pytest.mark.parametrize("policy", BOTH)
def test_a_partition_that_is_most_of_a_worker_stays(policy):
    seen = observed([0.0, 1.0], [0, 0, 1], [80, 20, 0])
    assert LoadBalancing().plan(seen) == (Move(0, 0, 1),)
    assert all(move.partition == 1 for move in policy.plan(seen))


@pytest.mark.parametrize("policy", BOTH)
def test_an_idle_receiver_is_thought_to_pay_what_the_donor_pays(policy):
    """The receiver was nearly idle over 100 tuples; the heaviest partition, at the donor's cost, would fill it."""
    seen = observed([0.0, 0.99, 0.1], [0, 0, 1, 2], [960, 30, 100, 900])
    assert LoadBalancing().plan(seen)[0] == Move(0, 0, 1)
    assert Move(0, 0, 1) not in policy.plan(seen)


def test_only_a_busy_receiver_is_believed_to_pay_less_than_the_donor():
    """A loaded worker gives to one that is not, which does as many tuples with 0.6 of its CPU, or with 0.05."""
    believing = SeveralMoves(GuardedLoadBalancing(least_cost=0.0))
    busy, idle = (observed([0.0, 1 - used], [0, 0, 1], [80, 20, 100]) for used in (0.6, 0.05))
    assert GuardedLoadBalancing(least_cost=0.0).cost_ratio(busy, 0, 1) == pytest.approx(0.6)
    assert GuardedLoadBalancing(least_cost=0.0).cost_ratio(idle, 0, 1) == 1
    assert Move(0, 0, 1) not in believing.plan(idle)


def test_several_partitions_leave_at_once():
    """A worker of 8 like partitions beside three idle ones keeps two or three: the others then have two or one each."""
    seen = observed([0.0, 1.0, 1.0, 1.0], [0] * 8, [10] * 8)
    moves = SeveralMoves().plan(seen)
    assert len(moves) in (5, 6)
    assert {move.receiver for move in moves} == {1, 2, 3}
    assert len(GuardedLoadBalancing().plan(seen)) == 1


@pytest.mark.parametrize("policy", BOTH)
@given(workers=st.integers(2, 6), partitions=st.integers(1, 40), seed=st.integers(0, 2**20))
def test_under_constant_load_moves_end(policy, workers, partitions, seed):
    """A stage whose workers are alike and keep up: utilization is what its partitions make."""
    chance = np.random.default_rng(seed)
    owners, tuples = chance.integers(0, workers, partitions), chance.integers(0, 100, partitions)
    per_tuple = 0.9 / max(1, tuples.sum())
    for _ in range(5 * partitions):
        busy = np.bincount(owners, tuples, workers) * per_tuple
        moves = policy.plan(observed(1 - busy, owners, tuples))
        if not moves:
            return
        for move in moves:
            owners[move.partition] = move.receiver
    pytest.fail(f"moves never end, seed {seed}")


def test_a_gain_that_is_none_is_refused():
    with pytest.raises(UsageError, match="gain"):
        GuardedLoadBalancing(min_gain=0.0)
