"""Recurring pauses of workers: against a plain queue, and their schedules."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from adapt.core.costs.profile import Pause
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.settings import Costs, Network, StageSettings, even_groups, even_owners
from adapt.core.stage.engine.initial_arrays import PAUSES, prepare
from adapt.core.stage.simulate import simulate

ROWS = 4000
SHORT, LONG = Pause("gc", 0.05, (0.001, 0.004, 0.02)), Pause("checkpoint", 0.4, (0.1, 0.3), together=True)
BARE = StageSettings(
    workers=2,
    owners=even_owners(2, 1),
    partition_of=even_groups(2, 2),
    network=Network(latency_s=0.0, connection_tuples=ROWS),
    costs=Costs(service_s=1e-3, service_sd_s=0.0, produce_s=0.0),
)


def stage(*pauses, **changes):
    return replace(BARE, costs=replace(BARE.costs, pauses=pauses), **changes)


def stream(seed, rows=ROWS):
    """Rows of both workers at random times, with costs of their own."""
    chance = np.random.default_rng(seed)
    due_s = np.sort(chance.uniform(0, rows * 1.2e-3, rows))
    groups, costs = chance.integers(0, 2, rows).astype(np.int32), chance.exponential(1e-3, rows)
    return groups, due_s, costs, Rows(lambda: iter([Chunk(groups, groups, due_s, cost_s=costs)]))


def schedule(settings, until_s):
    """Starts and ends of the pauses of each worker."""
    arrays = prepare(settings, stream(0, 1)[-1])
    found = []
    for worker in range(settings.workers):
        own, at, pauses = arrays["pause"][worker * PAUSES : (worker + 1) * PAUSES], 0, []
        start = float(arrays["worker"]["pause_from"][worker])
        while start < until_s:
            end = start + own["lasts"][at % PAUSES]
            pauses.append((start, end))
            start, at = end + own["gap"][at % PAUSES], at + 1
        found.append(pauses)
    return found


def served(begin, work, pauses):
    """When work is done that these pauses interrupt."""
    at = begin
    for start, end in pauses:
        if end <= at:
            continue
        if at + work <= start:
            break
        if start > at:
            work -= start - at
        at = end
    return at + work


@pytest.mark.parametrize("pauses", [(SHORT,), (LONG,), (SHORT, LONG)])
def test_every_row_is_done_when_a_plain_queue_with_pauses_says(pauses):
    settings = stage(*pauses)
    groups, due_s, costs, rows = stream(3)
    done = simulate(settings, rows, journal=ROWS)
    of_workers = schedule(settings, 60.0)
    free, expected = [0.0, 0.0], np.empty(ROWS)
    for row in range(ROWS):
        worker = groups[row]
        free[worker] = expected[row] = served(max(free[worker], due_s[row]), costs[row], of_workers[worker])
    found = np.empty(ROWS)
    found[done.journal["number"]] = done.journal["at"]
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("pauses", [(SHORT,), (LONG,), (SHORT, LONG)])
def test_pauses_are_as_long_and_as_rare_as_stated(pauses):
    wanted = sum(np.mean(one.durations_s) / (one.interval_s + np.mean(one.durations_s)) for one in pauses)
    most = np.prod([1 - np.mean(one.durations_s) / (one.interval_s + np.mean(one.durations_s)) for one in pauses])
    ratios = []
    for seed in range(8):
        of_workers = schedule(stage(*pauses, seed=seed), 50.0)
        ratios += [sum(end - start for start, end in own) / own[-1][1] for own in of_workers]
        for own in of_workers:
            assert all(end < following for (_, end), (following, _) in pairwise(own))
    assert np.mean(ratios) == pytest.approx(wanted if len(pauses) == 1 else 1 - most, rel=0.1)


def test_workers_pause_together_or_by_themselves():
    together, alone = schedule(stage(LONG), 20.0), schedule(stage(SHORT), 20.0)
    assert together[0] == together[1]
    assert alone[0] != alone[1]
    assert schedule(stage(SHORT, seed=1), 20.0) != alone


def test_without_pauses_a_stage_is_as_before():
    arrays = prepare(BARE, stream(0, 1)[-1])
    assert len(arrays["pause"]) == 0
    assert np.isinf(arrays["worker"]["pause_from"]).all()
