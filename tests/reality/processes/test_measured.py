"""Costs of recorded rows and moves, against records made of known times."""

import numpy as np
import pytest

from adapt.core.stage.movement.controller import Move, Moved
from reality.processes.measured import Recorded, measured_rows, measured_state
from reality.processes.messages import Installed
from reality.processes.records import DONE

ROWS, GAP_S, WAY_S = 2000, 50e-6, 300e-6
ALONE_S = 1e-4
"""What the driver does for one move before it waits."""


def recorded(interval_s, seed=0):
    """Two workers; rows are sent at an interval, and each takes the time of its number."""
    chance = np.random.default_rng(seed)
    service_s, free_s = chance.exponential(1e-3, ROWS), [0.0, 0.0]
    of, found = chance.integers(0, 2, ROWS), Recorded(0.5)
    reports = []
    for row in range(ROWS):
        worker, sent_s = int(of[row]), row * interval_s
        taken_s = max(sent_s + WAY_S, free_s[worker] + GAP_S)
        free_s[worker] = taken_s + service_s[row]
        found.sent.append((np.array([row]), np.array([service_s[row] / 2]), np.array([sent_s])))
        reports.append((worker, np.array([(0, 0, 0, row, taken_s, free_s[worker])], DONE)))
    found.done += [reports[at] for at in np.argsort([float(rows["done"][0]) for _, rows in reports])]
    return found, service_s


def test_rows_without_a_pause_between_them_give_service_and_transport():
    found, service_s = recorded(0.0)
    rows = measured_rows(found)
    assert rows.transport_s == pytest.approx(GAP_S)
    assert rows.service_s == pytest.approx(service_s)
    assert rows.costs_s == pytest.approx(service_s / 2)
    assert rows.rate == pytest.approx(ROWS / max(float(one["done"].max()) for _, one in found.done))


def test_rows_that_find_an_idle_worker_give_the_way():
    rows = measured_rows(recorded(5e-3)[0])
    assert len(rows.waited_s) > ROWS / 2
    assert np.median(rows.waited_s) == pytest.approx(WAY_S)


def test_a_stall_between_rows_belongs_to_the_next_row():
    found, service_s = recorded(0.0)
    worker, last = found.done[1000]
    for at, rows in found.done[1000:]:
        if at == worker:
            rows["taken"] += 0.1
            rows["done"] += 0.1
    rows = measured_rows(found)
    assert rows.transport_s == pytest.approx(GAP_S)
    stalled = int(last["number"][0])
    assert rows.service_s[stalled] == pytest.approx(service_s[stalled] + 0.1)


def moves(sizes, fixed_s, byte_s):
    """Moves one by one, whose steps take a time, and one per byte."""
    found = Recorded(0.5)
    for at_s, size in enumerate(sizes):
        steps_s = at_s + np.cumsum(np.array(fixed_s) + size * np.array(byte_s))
        found.installed.append(Installed(0, int(size), float(at_s), *steps_s.tolist()))
        found.moves.append(moved(at_s, *steps_s[::2]))
        found.polled_s.append(at_s + ALONE_S)
    return found


def moved(decided_s, extracted_s, installed_s):
    times_s = {"decided": float(decided_s), "extracted": float(extracted_s), "installed": float(installed_s)}
    return Moved(Move(0, 0, 1), 0, times_s)


@pytest.mark.parametrize("sizes", [[0, 1_000_000] * 10, [0] * 30 + [500_000] * 9])
def test_state_costs_are_those_of_a_byte_without_what_a_move_takes_anyway(sizes):
    costs = measured_state(moves(sizes, (1e-3, 5e-3, 2e-3), (1e-9, 8e-9, 4e-9)))
    assert costs.serialize_byte_s == pytest.approx(1e-9)
    assert costs.transfer_byte_s == pytest.approx(8e-9)
    assert costs.install_byte_s == pytest.approx(4e-9)


def test_moves_that_are_ordered_together_give_what_each_takes_besides_its_state():
    """12 moves, of which the receiver gets the last 2 after a row of 1 s."""
    found = moves([0, 1_000_000] * 10, (1e-3, 5e-3, 2e-3), (1e-9, 8e-9, 4e-9))
    for number in range(12):
        late_s = number > 9
        found.moves.append(moved(100, 100.5 + 30e-6 * number, 100.7 + 40e-6 * number + late_s))
    found.polled_s.append(100 + ALONE_S + 11 * 20e-6)
    costs = measured_state(found)
    assert costs.order_move_s == pytest.approx(20e-6)
    assert costs.serialize_move_s == pytest.approx(30e-6)
    assert costs.install_move_s == pytest.approx(40e-6)
    assert costs.transfer_byte_s == pytest.approx(8e-9)
    assert costs.between_rows
