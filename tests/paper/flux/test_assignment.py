from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, milp

from paper.flux.clairvoyant import Demand, assign, bound_s


def demand(work, speeds, fixed_s=0.0, sizes=None, room=None):
    work, speeds = np.array(work, float), np.array(speeds, float)
    return Demand(
        work,
        fixed_s,
        speeds,
        np.ones(len(work)) if sizes is None else np.array(sizes, float),
        np.full(len(speeds), np.inf) if room is None else np.array(room, float),
    )


@st.composite
def demands(draw, partitions=6, workers=3):
    work = draw(st.lists(st.integers(0, 20), min_size=1, max_size=partitions))
    speeds = draw(st.lists(st.sampled_from([0.25, 3 / 7, 1.0]), min_size=2, max_size=workers))
    return demand(work, speeds, draw(st.sampled_from([0.0, 0.5])))


def least_by_trying_all(given):
    workers = range(len(given.speeds))
    return min(given.slowest_s(np.array(one)) for one in product(workers, repeat=len(given.work_s)))


def least_by_milp(given):
    """Minimize t with each partition on one worker, and work and what is fixed within speed x t at each."""
    partitions, workers = len(given.work_s), len(given.speeds)
    once = np.hstack([np.kron(np.eye(partitions), np.ones(workers)), np.zeros((partitions, 1))])
    within = np.hstack([np.kron(given.work_s, np.eye(workers)), -given.speeds[:, None]])
    solved = milp(
        np.eye(partitions * workers + 1)[-1],
        constraints=[LinearConstraint(once, 1, 1), LinearConstraint(within, -np.inf, -given.fixed_s)],
        integrality=np.append(np.ones(partitions * workers), 0),
        options={"mip_rel_gap": 1e-6},
    )
    return solved.fun


@given(demands(), st.data())
def test_the_bound_holds_for_every_assignment_and_what_is_found_is_one(given, data):
    owners = data.draw(st.lists(st.integers(0, len(given.speeds) - 1), min_size=1, max_size=6).map(np.array))
    owners = np.resize(owners, len(given.work_s)).astype(np.int32)
    best, found = least_by_trying_all(given), assign(owners, given)
    assert bound_s(given) == found.bound_s <= best * (1 + 1e-9)
    assert found.slowest_s == given.slowest_s(found.owners) <= given.slowest_s(owners) * (1 + 1e-9)
    assert 0 <= found.owners.min() <= found.owners.max() < len(given.speeds)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_found_is_near_the_optimum(seed):
    chance = np.random.default_rng(seed)
    given = demand(chance.pareto(1.5, 12) + 0.1, chance.choice([3 / 7, 1.0], 3), 0.1)
    found = assign(chance.integers(0, 3, 12).astype(np.int32), given)
    best = least_by_milp(given)
    assert bound_s(given) <= best * (1 + 1e-6)
    assert best * (1 - 1e-6) <= found.slowest_s <= 1.05 * best


def test_state_goes_to_where_there_is_room():
    owners = np.zeros(6, np.int32)
    found = assign(owners, demand(np.ones(6), [1, 1, 1], sizes=np.full(6, 10), room=[20, 40, 10]))
    assert (np.bincount(found.owners, minlength=3) <= [2, 4, 1]).all()
