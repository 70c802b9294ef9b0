"""The best assignment of units against an integer program, on random loads and on windows that it has not seen."""

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from adapt.core.errors import UsageError
from adapt.core.unit_loads.assigning import best_assignment, compared_assignments, floor_of, imbalances
from adapt.core.unit_loads.clients import Client


def optimum(totals, workers):
    """The least load of the busiest worker over the mean, and an assignment that reaches it."""
    units, cells = len(totals), len(totals) * workers
    each = np.hstack((np.kron(np.eye(units), np.ones(workers)), np.zeros((units, 1))))
    below = np.hstack((np.kron(totals * workers / totals.sum(), np.eye(workers)), -np.ones((workers, 1))))
    limits = [LinearConstraint(each, 1, 1), LinearConstraint(below, -np.inf, 0)]
    cost, whole = np.append(np.zeros(cells), 1), np.append(np.ones(cells), 0)
    found = milp(cost, constraints=limits, bounds=Bounds(0, np.append(np.ones(cells), np.inf)), integrality=whole)
    return found.fun, found.x[:-1].reshape(units, workers).argmax(axis=1).astype(np.int32)


def test_steady_loads_are_placed_as_well_as_possible():
    random = np.random.default_rng(3)
    for _ in range(12):
        workers = int(random.integers(2, 5))
        loads = random.pareto(1.5, (int(random.integers(workers, 11)), 1)) + 0.1
        reached = imbalances(loads, best_assignment(loads, workers), workers)[0]
        assert reached == pytest.approx(optimum(loads[:, 0], workers)[0], rel=1e-6)
        assert floor_of(loads, workers) <= reached * (1 + 1e-9)


def test_later_windows_are_as_balanced_as_by_the_optimum_of_the_past():
    """Loads that drift: a placement by windows is no worse than the best one by totals, and near that of the future."""
    random, ours, past, future, dealt = np.random.default_rng(4), [], [], [], []
    for _ in range(12):
        levels = random.lognormal(0, 0.8, (12, 1))
        loads = levels * np.exp(np.cumsum(random.normal(0, 0.12, (12, 24)), axis=1))
        before, after = loads[:, :12], loads[:, 12:]
        ours.append(imbalances(after, best_assignment(before, 4), 4).mean())
        past.append(imbalances(after, optimum(before.sum(axis=1), 4)[1], 4).mean())
        future.append(imbalances(after, optimum(after.sum(axis=1), 4)[1], 4).mean())
        dealt.append(imbalances(after, (np.arange(12) % 4).astype(np.int32), 4).mean())
    assert np.mean(ours) <= np.mean(past) * 1.005
    assert np.mean(ours) <= np.mean(future) * 1.1
    assert np.mean(ours) < np.mean(dealt) * 0.85


def test_today_s_assignment_stays_where_nothing_is_better():
    today = np.array([1, 0, 1, 0], np.int32)
    assert best_assignment(np.ones((4, 3)), 2, today).tolist() == today.tolist()
    assert best_assignment(np.zeros((4, 3)), 2, today).tolist() == today.tolist()


def test_few_units_move():
    """The names of workers are exchangeable, and a gain below 1 % is worth no move."""
    loads = np.array([[6.0], [5], [4], [3], [2], [2]])
    assert best_assignment(loads, 2, np.array([1, 0, 0, 1, 0, 1], np.int32)).tolist() == [1, 0, 0, 1, 0, 1]
    moved = best_assignment(loads, 2, np.array([1, 0, 0, 1, 1, 1], np.int32))
    assert imbalances(loads, moved, 2)[0] == 1
    assert (moved != [1, 0, 0, 1, 1, 1]).sum() == 1
    random = np.random.default_rng(6)
    for _ in range(20):
        loads, today = random.random((12, 6)), random.integers(0, 4, 12).astype(np.int32)
        with_today, without = best_assignment(loads, 4, today), best_assignment(loads, 4)
        assert imbalances(loads, with_today, 4).mean() <= imbalances(loads, without, 4).mean() * 1.02
        assert len(set(with_today)) == 4


def test_every_client_is_compared():
    loads = np.array([[8.0, 8.0], [1.0, 1.0], [7.0, 7.0], [2.0, 2.0]])
    by_name = {
        each.name: each
        for each in compared_assignments(loads, 2, list(Client), ["t"] * 4, np.array([0, 0, 1, 1], np.int32))
    }
    assert by_name["range"].imbalance == by_name["flink"].imbalance == by_name["today"].imbalance == 1.0
    assert by_name["round-robin"].imbalance == by_name["sticky"].imbalance == pytest.approx(15 / 9)
    assert by_name["best"].moved == 0
    assert by_name["round-robin"].moved == 0.5


def test_no_unit_is_refused():
    with pytest.raises(UsageError, match="at least 1 unit"):
        best_assignment(np.zeros((0, 3)), 2)
