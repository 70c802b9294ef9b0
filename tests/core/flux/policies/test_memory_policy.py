import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.flux.policies.guarded_policy import SeveralMoves
from adapt.core.flux.policies.load_policy import (
    HybridBalancing,
    LoadBalancing,
    MemoryBalancing,
    excess_bytes,
    used_share,
)
from adapt.core.flux.policies.multi_move_memory import SeveralMemoryController, SeveralMemoryMoves
from adapt.core.flux.policies.settling import SettlingController
from adapt.core.stage.movement.controller import Move, Round
from tests.core.flux.observations import observations, observed


def pressed(available, owners, sizes, on_disk=(), **changes):
    flags = np.zeros(len(owners), bool)
    flags[list(on_disk)] = True
    idle = np.zeros(len(available))
    return observed(
        changes.pop("idle", idle),
        owners,
        changes.pop("processed", np.ones(len(owners))),
        state_bytes=np.array(sizes),
        available_bytes=np.array(available, float),
        on_disk=flags,
        **changes,
    )


def test_the_worker_short_of_memory_gives_to_the_one_with_most():
    seen = pressed([5, 10, 20], [0, 0, 0, 1, 2], [3, 3, 2, 5, 3])
    assert MemoryBalancing().plan(seen) == (Move(1, 0, 2),)


def test_what_is_in_memory_goes_before_what_is_on_disk():
    seen = pressed([5, 20], [0, 0, 0, 1], [3, 3, 2, 3], on_disk=[0, 1])
    assert MemoryBalancing().plan(seen) == (Move(2, 0, 1),)


def test_of_what_is_on_disk_the_one_with_the_least_spilled_input_goes_first():
    seen = pressed([5, 20], [0, 0, 0, 1], [3, 2, 3, 3], on_disk=[0, 1, 2], unprocessed=np.array([9, 4, 7, 0]))
    assert MemoryBalancing().plan(seen) == (Move(1, 0, 1),)


def test_workers_that_use_like_shares_of_their_memory_rest():
    assert MemoryBalancing().plan(pressed([10, 11], [0, 0, 1], [5, 4, 8])) == ()


def test_a_worker_on_which_not_all_fits_does_not_rest():
    """The shares in use are 1.1 and 1, less than 1.2 apart."""
    assert MemoryBalancing().plan(pressed([10, 20], [0, 0, 1], [9, 2, 20])) == ()
    assert MemoryBalancing().plan(pressed([10, 20], [0, 0, 1], [9, 2, 18])) == (Move(1, 0, 1),)


@given(observations(), st.integers(0, 2**20))
def test_every_move_narrows_its_pair_and_names_its_workers_once(seen, seed):
    chance = np.random.default_rng(seed)
    seen = pressed(chance.integers(1, 50, seen.workers), seen.owners, chance.integers(0, 10, len(seen.owners)))
    excess = excess_bytes(seen)
    moves = MemoryBalancing().plan(seen)
    named = [worker for move in moves for worker in (move.donor, move.receiver)]
    assert len(named) == len(set(named))
    for move in moves:
        size = seen.state_bytes[move.partition]
        before = excess[move.receiver] - excess[move.donor]
        assert seen.owners[move.partition] == move.donor
        assert before > 0
        assert abs(before - 2 * size) < before
        assert excess[move.donor] < 0 or used_share(seen)[move.donor] >= 1.2 * used_share(seen)[move.receiver]


def test_a_worker_over_its_memory_gives_however_much_others_use():
    """Shares of 1.1 and 0.95: a ratio of 1.16."""
    seen = pressed([10, 40], [0, 0, 1, 1], [9, 2, 30, 8])
    assert MemoryBalancing().plan(seen) == SeveralMemoryMoves().plan(seen) == (Move(1, 0, 1),)


@given(observations(), st.integers(0, 2**20), st.integers(1, 4))
def test_of_several_moves_each_narrows_its_pair_and_no_worker_gives_and_takes(seen, seed, most):
    chance = np.random.default_rng(seed)
    seen = pressed(chance.integers(1, 50, seen.workers), seen.owners, chance.integers(0, 10, len(seen.owners)))
    excess = excess_bytes(seen)
    moves = SeveralMemoryMoves(most_per_worker=most).plan(seen)
    donors = [move.donor for move in moves]
    assert not set(donors) & {move.receiver for move in moves}
    assert all(donors.count(donor) <= most for donor in donors)
    assert len({move.partition for move in moves}) == len(moves)
    for move in moves:
        size, before = seen.state_bytes[move.partition], excess[move.receiver] - excess[move.donor]
        assert seen.owners[move.partition] == move.donor
        assert abs(before - 2 * size) < before
        assert size <= excess[move.receiver], "no worker is pushed beyond its limit to relieve another"
        excess[move.donor] += size
        excess[move.receiver] -= size


def test_the_hybrid_passes_over_an_idle_worker_without_room():
    """The idlest worker has no room; the next one takes."""
    seen = pressed([50, 5, 20], [0, 0, 1, 2], [4, 4, 2, 4], idle=[0.0, 0.9, 0.5], processed=[30, 20, 10, 40])
    assert LoadBalancing().plan(seen) == (Move(0, 0, 1),)
    assert HybridBalancing().plan(seen) == (Move(0, 0, 2),)


@pytest.mark.parametrize("policy", [HybridBalancing(), SeveralMoves(within_memory=True)])
def test_room_is_asked_for_the_partition_that_moves(policy):
    """Neither worker has room for the hottest and largest partition of the stage, which is 9."""
    seen = pressed([20, 8], [0, 0, 0, 1], [9, 5, 4, 2], idle=[0.0, 0.8], processed=[30, 20, 10, 10])
    assert policy.plan(seen) == (Move(1, 0, 1),)
    full = pressed([20, 5], [0, 0, 0, 1], [9, 5, 4, 2], idle=[0.0, 0.8], processed=[30, 20, 10, 10])
    assert policy.plan(full) == ()


@given(observations(), st.integers(0, 2**20))
def test_what_moves_for_load_fits_where_it_goes(seen, seed):
    chance = np.random.default_rng(seed)
    idle, sizes = seen.idle_s, chance.integers(0, 10, len(seen.owners))
    used = np.bincount(seen.owners, sizes, seen.workers)
    seen = pressed(used + chance.integers(0, 12, seen.workers), seen.owners, sizes, idle=idle, processed=seen.processed)
    for policy in (HybridBalancing(), SeveralMoves(within_memory=True)):
        room = excess_bytes(seen)
        for move in policy.plan(seen):
            room[move.receiver] -= sizes[move.partition]
        assert room.min() >= 0


def test_the_hybrid_puts_a_worker_into_one_move_however_rooms_lie():
    """A receiver out of turn, in place of one without room, is not a donor later in the round."""
    chance = np.random.default_rng(5)
    for _ in range(4000):
        workers = int(chance.integers(3, 9))
        owners = np.sort(chance.integers(0, workers, int(chance.integers(workers, 25))))
        sizes, tuples = chance.integers(0, 10, len(owners)), chance.integers(0, 60, len(owners))
        memory = np.bincount(owners, sizes, workers) + chance.integers(0, 6, workers)
        seen = pressed(memory, owners, sizes, idle=chance.random(workers) * 0.4, processed=tuples)
        moves = HybridBalancing(LoadBalancing(min_imbalance=1.0, max_receiver_utilization=1.0)).plan(seen)
        named = [worker for move in moves for worker in (move.donor, move.receiver)]
        assert len(named) == len(set(named))


def test_several_moves_for_load_go_only_to_where_there_is_room():
    """Eight like partitions on one worker, whose receivers have room for one each."""
    seen = pressed([50, 8, 8], [0] * 8 + [1, 2], [4] * 10, idle=[0.0, 1.0, 1.0], processed=[10] * 8 + [0, 0])
    controller = SeveralMemoryController(SeveralMemoryMoves(), SettlingController(SeveralMoves(within_memory=True)))
    assert len(SettlingController().plan(seen)) > 2
    assert sorted(move.receiver for move in controller.plan(seen)) == [1, 2]


def test_a_full_worker_that_is_idle_does_not_keep_others_from_taking():
    """The mean utilization is 0.65, and only it is below that."""
    owners = np.repeat(np.arange(4), [10, 9, 9, 4])
    seen = pressed([90, 90, 90, 16], owners, [4] * 32, idle=[0.0, 0.26, 0.26, 0.9], processed=[10] * 32)
    assert SeveralMoves(within_memory=True).plan(seen) == (Move(0, 0, 1), Move(1, 0, 2))


def test_workers_that_are_alike_and_have_no_room_move_no_load():
    seen = observed([1.0, 1.0], [0, 1], [0, 0], available_bytes=np.zeros(2))
    assert SeveralMoves(within_memory=True).plan(seen) == ()


def test_rounds_on_memory_do_not_collect_for_as_long_as_moves_take():
    short = pressed([5, 20], [0, 0, 1], [4, 4, 2], on_disk=[0])
    controller = SeveralMemoryController(SeveralMemoryMoves(), None, 0.1)
    moves = controller.plan(short)
    assert controller.collection_s(Round(0.1, tuple(moves), 3.0)) == 0.1


@pytest.mark.parametrize("policy", [MemoryBalancing(), SeveralMemoryMoves()])
@given(st.integers(2, 6), st.integers(1, 30), st.integers(0, 2**20))
def test_under_constant_pressure_moves_end(policy, workers, partitions, seed):
    """Every move lowers the sum of squared excesses, so that none can come back."""
    chance = np.random.default_rng(seed)
    owners = chance.integers(0, workers, partitions)
    sizes, available = chance.integers(1, 10, partitions), chance.integers(10, 60, workers)
    for _ in range(20 * partitions):
        moves = policy.plan(pressed(available, owners, sizes))
        if not moves:
            return
        for move in moves:
            owners[move.partition] = move.receiver
    pytest.fail(f"moves never end, seed {seed}")


def test_the_hybrid_minds_memory_while_anything_is_on_disk():
    owners, sizes = [0, 0, 1], [4, 4, 2]
    short = pressed([5, 20], owners, sizes, on_disk=[0], idle=[0.0, 0.8], processed=[30, 20, 10])
    assert HybridBalancing().plan(short) == MemoryBalancing().plan(short) == (Move(1, 0, 1),)
    roomy = pressed([50, 60], owners, sizes, idle=[0.0, 0.8], processed=[30, 20, 10])
    assert HybridBalancing().plan(roomy) == LoadBalancing().plan(roomy) == (Move(0, 0, 1),)


def test_the_hybrid_moves_load_only_to_where_there_is_room():
    seen = pressed([50, 5], [0, 0, 1], [4, 4, 2], idle=[0.0, 0.8], processed=[30, 20, 10])
    assert LoadBalancing().plan(seen) == (Move(0, 0, 1),)
    assert HybridBalancing().plan(seen) == ()


def test_a_worker_that_gives_nothing_is_refused():
    with pytest.raises(UsageError, match="at least 1"):
        SeveralMemoryMoves(most_per_worker=0)


def test_an_imbalance_below_one_is_refused():
    with pytest.raises(UsageError, match="at least 1"):
        MemoryBalancing(0.5)


def test_where_memory_has_no_limit_nothing_moves():
    assert MemoryBalancing().plan(pressed([np.inf, np.inf], [1], [3])) == ()
