from dataclasses import replace

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.arrivals import Chunk, Drawn, Rows
from adapt.core.stage.conditions.growth import Growth
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import Costs, StageSettings, even_groups, even_owners
from adapt.core.stage.movement.controller import Move
from adapt.core.stage.movement.spilling import Memory
from adapt.core.stage.movement.splitting import HotSplit
from adapt.core.stage.simulate import Actors, assemble, simulate

WORKERS, GROUPS = 4, 64
STAGE = StageSettings(WORKERS, even_owners(WORKERS, 8), even_groups(GROUPS, WORKERS * 8))
FULL = WORKERS / 45.5e-6
SKEWED = Drawn(np.where(np.arange(GROUPS) == 5, 0.6, 0.4 / (GROUPS - 1)))
OFTEN = HotSplit(every_s=0.02)


def rates(hot):
    run = simulate(STAGE, SKEWED, 0.6, Actors(hot=hot), interval_s=0.1)
    return run, np.array([one.throughput for one in run.intervals]) / FULL


def test_a_partition_too_hot_for_a_worker_is_split_and_the_rate_rises():
    _, whole = rates(None)
    run, split = rates(OFTEN)
    assert whole[-1] <= 1 / (WORKERS * 0.6)
    assert split[-1] >= 1.8 * whole[-1]
    assert run.splits.most >= 3
    assert run.splits.added >= run.splits.most - 1
    assert run.splits.sent_bytes == run.splits.merged * STAGE.costs.tuple_bytes
    assert 0.02 <= run.splits.lag_s <= 0.06


def burst():
    """A partition is hot for 0.2 s, then everything is even."""
    due = np.arange(0, 0.6, 1e-5 * 2)
    groups = np.where((due < 0.2) & (np.arange(len(due)) % 5 < 4), 5, np.arange(len(due)) % GROUPS).astype(np.int32)
    keep = (due < 0.2) | (np.arange(len(due)) % 5 == 0)
    producers = (np.arange(len(due)) % WORKERS).astype(np.int32)
    return Rows(lambda: iter([Chunk(groups[keep], producers[keep], due[keep], None)])), groups[keep]


def test_parts_are_joined_once_the_heat_is_over_and_the_totals_are_whole():
    rows, groups = burst()
    one = assemble(STAGE, rows, Actors(hot=OFTEN))
    one.stage.run(0.19)
    assert list(one.splitting.parts) == [5]
    assert not one.splitting.merged
    one.stage.run(3.0)
    assert one.splitting.parts == {}
    assert one.splitting.merged
    assert one.splitting.report.added == one.splitting.report.removed
    assert int(np.count_nonzero(one.stage.in_use)) == STAGE.partitions
    assert (one.stage.arrays["total"]["count"][:GROUPS] == np.bincount(groups, minlength=GROUPS)).all()


def test_a_part_moves_like_a_partition_and_a_merge_waits_while_its_partition_moves():
    one = assemble(STAGE, SKEWED, Actors(hot=OFTEN))
    one.stage.run(0.2)
    (_, part, *_) = one.splitting.parts[5]
    owners = one.stage.arrays["partition"]["owner"]
    moves = [Move(each, int(owners[each]), (int(owners[each]) + 1) % WORKERS) for each in (5, part)]
    one.movement.start(moves, lambda: None)
    one.stage.run(1.0)
    assert [int(owners[each.partition]) for each in moves] == [each.receiver for each in moves]
    assert int(one.splitting.totals()["count"].sum()) == one.stage.census().processed


def test_the_merge_is_charged():
    """By the time to serialize a partial aggregate, twice, and to process a tuple."""
    costs = Costs(service_sd_s=0.0, produce_s=0.0, marshal_s=1e-3)
    one = assemble(replace(STAGE, costs=costs), SKEWED, Actors(hot=OFTEN))
    one.stage.run(0.5)
    report, workers = one.splitting.report, one.stage.arrays["worker"]
    sent = report.sent_bytes // costs.tuple_bytes
    charged_s = sent * costs.marshal_s + report.merged * (costs.marshal_s + costs.service_s)
    assert report.merged > 20
    assert workers["busy"].sum() - one.stage.census().processed * costs.service_s == pytest.approx(charged_s, rel=0.05)


@pytest.mark.parametrize(
    ("of", "actors", "told"),
    [
        ({"router": Router.RIVER}, {}, "only distributive aggregates"),
        ({"window": 3}, {}, "only distributive aggregates"),
        ({"state": Growth(row_bytes=80)}, {}, "only distributive aggregates"),
        ({}, {"standby": True}, "splitting hot partitions excludes"),
        ({}, {"memory": Memory()}, "splitting hot partitions excludes"),
    ],
)
def test_what_cannot_be_split_is_refused(of, actors, told):
    with pytest.raises(UsageError, match=told):
        assemble(replace(STAGE, **of), Drawn(), Actors(hot=OFTEN, **actors))


@pytest.mark.parametrize(("threshold", "every_s"), [(0.0, 1.0), (1.1, 1.0), (0.5, 0.0), (0.5, np.inf)])
def test_a_threshold_or_interval_out_of_range_is_refused(threshold, every_s):
    with pytest.raises(UsageError, match="a partition is split above"):
        HotSplit(threshold, every_s)
