"""When workers shed, and what was offered then: against rows that are looked at one by one."""

import numpy as np
import pytest

from adapt.core.elastic.policies.names import ScalingPolicy
from adapt.core.elastic.policies.placements import range_placement
from adapt.core.elastic.policies.registry import policy_of
from adapt.core.elastic.policies.scaler import ElasticController
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.settings import Costs, StageSettings, even_groups, even_owners
from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor
from adapt.core.stage.control.workers import Scaling
from adapt.core.stage.simulate import Actors, simulate

HELD_S, CAPACITY = 0.1, 50


def stage(overload=True):
    return StageSettings(
        4,
        even_owners(4, 2),
        even_groups(8, 8),
        costs=Costs(service_s=1e-6, service_sd_s=0.0),
        overload=Overload(ShedFactor(), CAPACITY, HELD_S) if overload else None,
    )


def watched(due_s, groups, period_s, overload=True):
    numbers = np.arange(len(due_s))
    rows = Rows(lambda: iter([Chunk(groups, numbers % 4, due_s)]))
    scaler = ElasticController(policy_of(ScalingPolicy.FIXED), 2, 4)
    return simulate(
        stage(overload), rows, actors=Actors(scaling=Scaling(scaler, range_placement(8), period_s)), journal=10**5
    )


@pytest.mark.parametrize("period_s", [0.004, 0.03, 0.25, 10.0])
def test_what_is_shed_is_told_with_what_was_offered_at_that_time(period_s):
    """Two calm seconds with a tenth of a second in between in which 4 times as much comes as two workers hold."""
    chance = np.random.default_rng(1)
    due_s = np.sort(np.concatenate([chance.uniform(0, 2, 400), chance.uniform(1, 1.1, 400)]))
    run = watched(due_s, chance.integers(0, 8, 800), period_s)
    told = run.watched
    assert told.shed.sum() == run.census.shed > 100
    assert (told.workers == 2).all()
    # Workers take what is due at once, so that what is not in the journal was shed when it was due.
    gone = due_s[np.setdiff1d(np.arange(800), run.journal["number"])]
    # A stretch is an eighth of what rows are held, and begins anywhere in one of those by which rows are counted.
    off = 2 * HELD_S / 8
    least, most = (
        np.sort([np.count_nonzero((due_s > at - HELD_S + side) & (due_s <= at - side)) for at in gone])
        for side in (off, -off)
    )
    expanded = np.sort(np.repeat(told.offered, told.shed))
    assert (least <= expanded).all()
    assert (expanded <= most).all()


def test_where_nothing_is_shed_nothing_is_told():
    due_s = np.arange(100) / 50
    assert len(watched(due_s, np.arange(100) % 8, 0.1).watched.shed) == 0
    assert len(watched(due_s, np.arange(100) % 8, 0.1, overload=False).watched.shed) == 0
