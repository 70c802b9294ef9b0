import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.flux.policies.load_policy import LoadBalancing
from adapt.core.stage.movement.controller import Move
from tests.core.flux.observations import observations, observed


def literal_plan(workers, min_imbalance, max_receiver_utilization):
    """Section 5.3 word for word. Workers are (utilization, {partition: tuples})."""
    ranked = sorted(range(len(workers)), key=lambda worker: (-workers[worker][0], worker))
    average = sum(utilization for utilization, _ in workers) / len(workers)
    moves = []
    while len(ranked) > 1:
        donor, receiver = ranked.pop(0), ranked.pop()
        (u_i, donor_tuples), (u_j, receiver_tuples) = workers[donor], workers[receiver]
        if u_i < average or u_i < min_imbalance * u_j or u_j > max_receiver_utilization:
            return moves
        total_i, total_j = sum(donor_tuples.values()), sum(receiver_tuples.values())
        for partition, n_p in sorted(donor_tuples.items(), key=lambda item: (-item[1], item[0])):
            if n_p == 0:
                continue
            after_i = u_i - u_i * n_p / total_i
            after_j = u_j + (u_j * n_p / total_j if total_j else 0)
            if abs(after_i - after_j) < u_i - u_j:
                if after_j <= max_receiver_utilization:
                    moves.append(Move(partition, donor, receiver))
                break
    return moves


@given(observations(), st.floats(1, 2), st.floats(0.5, 1))
def test_moves_are_those_of_the_paper(seen, min_imbalance, max_receiver_utilization):
    tuples = [
        {int(p): int(seen.processed[p]) for p in np.flatnonzero(seen.owners == worker)}
        for worker in range(seen.workers)
    ]
    workers = list(zip(seen.utilization.tolist(), tuples, strict=True))
    if np.isclose(seen.utilization.max(), seen.utilization.mean(), rtol=1e-12):
        return  # whether a worker is below the mean is then a matter of rounding
    policy = LoadBalancing(min_imbalance, max_receiver_utilization)
    assert list(policy.plan(seen)) == literal_plan(workers, min_imbalance, max_receiver_utilization)


@given(observations())
def test_a_worker_is_in_one_move_and_gives_what_it_owns(seen):
    moves = LoadBalancing().plan(seen)
    named = [worker for move in moves for worker in (move.donor, move.receiver)]
    assert len(moves) <= seen.workers // 2
    assert len(named) == len(set(named))
    assert all(seen.owners[move.partition] == move.donor for move in moves)


@given(observations())
def test_equal_workers_move_nothing(seen):
    idle = np.full(seen.workers, 0.3)
    assert LoadBalancing().plan(observed(idle, seen.owners, seen.processed)) == ()


def test_figure_5_moves_5_to_worker_4_and_8_to_worker_3():
    """Four workers of utilization 1, 0.8, 0.5 and 0.2; moving 9, the heaviest of worker 2, would reverse its pair."""
    owners = [0, 0, 0, 1, 1, 2, 3]
    tuples = [50, 30, 20, 60, 20, 50, 20]
    moves = LoadBalancing().plan(observed([0.0, 0.2, 0.5, 0.8], owners, tuples))
    assert moves == (Move(0, 0, 3), Move(4, 1, 2))


def test_a_full_receiver_gets_nothing():
    seen = observed([0.0, 0.04], [0, 0, 1], [30, 30, 50])
    assert LoadBalancing(min_imbalance=1.0).plan(seen) == ()
    assert LoadBalancing(min_imbalance=1.0, max_receiver_utilization=1.0).plan(seen) == ()


def test_a_worker_that_processed_nothing_is_thought_to_stay_idle():
    seen = observed([0.0, 0.9], [0, 0, 1], [30, 20, 0])
    assert LoadBalancing().plan(seen) == (Move(0, 0, 1),)


@pytest.mark.parametrize(
    "arguments", [{"min_imbalance": 0.9}, {"max_receiver_utilization": 0}, {"max_receiver_utilization": 1.1}]
)
def test_thresholds_that_are_none_are_refused(arguments):
    with pytest.raises(UsageError, match="must be"):
        LoadBalancing(**arguments)
