"""What a policy of one's own sees, and how its answers are carried out."""

from pathlib import Path

import numpy as np
import pytest

import adapt
from adapt.core.errors import BadInput, UsageError
from adapt.core.own_policies.view import OwnMoves, OwnScaling, view_of_period, view_of_round
from adapt.core.stage.control.workers import PartitionsSeen
from adapt.core.stage.movement.controller import Move
from tests.core.elastic.observations import seen
from tests.core.flux.observations import observed
from tests.core.own_policies import policies as written
from tests.core.own_policies.policies import own


def test_a_round_is_seen_by_numbers_of_workers():
    of_live = observed(
        [0.5, 0.0], owners=[0, 1, 1], processed=[10, 30, 10], numbers=(0, 2), in_all=3, at_s=4.0,
        in_flight=np.array([0, 5, 1]), unprocessed=np.array([0, 0, 2]), available_bytes=np.array([1e6, 2e6]),
    )  # fmt: skip
    view = view_of_round(of_live)
    assert (view.workers, view.partitions, view.time_s, view.period_s) == (3, 3, 4.0, 1.0)
    assert view.up.tolist() == [True, False, True]
    assert view.utilization.tolist() == [0.5, 0.0, 1.0]
    assert view.owner.tolist() == [0, 2, 2]
    assert view.load.tolist() == [0.5, 0.75, 0.25]
    assert view.queued.tolist() == [0, 5, 3]
    assert view.free_bytes.tolist() == [200_000, 0, 400_000]


def test_a_view_is_read_only():
    view = view_of_round(observed([0.5, 0.0], [0, 1], [10, 30]))
    with pytest.raises(ValueError, match="read-only"):
        view.load[0] = 1
    with pytest.raises(AttributeError):
        view.time_s = 0


def test_moves_are_carried_out_by_rank_of_live_workers():
    class ToLast:
        def moves(self, view):
            return {0: view.workers - 1, np.int64(1): np.int32(2)}

    of_live = observed([0.5, 0.0], owners=[0, 1, 1], processed=[1, 1, 1], numbers=(0, 2), in_all=3)
    assert OwnMoves(own(ToLast)).plan(of_live) == (Move(0, donor=0, receiver=1),)


WRONG = {
    written.UnknownPartition: "moves partition 2, but partitions are 0 to 1",
    written.UnknownWorker: "moves partition 0 to worker 3, but workers are 0 to 2",
    written.Negative: "moves partition -1, but partitions are 0 to 1",
    written.Listed: "such as {3: 0}, empty for no move (got [(0, 1)], a list)",
    written.Forgotten: "moves must return a mapping of partition to worker, such as {3: 0}, empty for",
    written.Named: "(got {'0': 1}, a dict)",
    written.ToTheDead: "moves partition 0 to worker 1, which is down; workers that are up: 0, 2",
    written.Writes: "ValueError: assignment destination is read-only",
    written.NoWorkers: "workers must return a whole number from 1 (got 0)",
    written.HalfAWorker: "(got 1.5, a float)",
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_answer_names_policy_time_and_what_is_allowed(kind):
    two = observed([0.5, 0.0], [0, 1], [10, 30], at_s=2.5, numbers=(0, 2), in_all=3)
    asked = (
        (lambda: OwnMoves(own(kind)).plan(two))
        if hasattr(kind, "moves")
        else (lambda: OwnScaling(own(kind)).wanted(seen(2.5, 2, partitions=lambda: partitions([10, 30]))))
    )
    with pytest.raises(BadInput) as raised:
        asked()
    assert f"policy policies:{kind.__name__}" in str(raised.value)
    assert "1 at 2.5 s: " in str(raised.value)
    assert WRONG[kind] in str(raised.value)


def test_an_exception_names_file_and_line():
    policy = OwnMoves(own(written.Raises))
    with pytest.raises(BadInput) as raised:
        policy.plan(observed([0.5, 0.0], [0, 1], [10, 30], at_s=2.5))
    line = 1 + next(
        at
        for at, text in enumerate(Path(written.__file__).read_text().splitlines())
        if "view.load[view.partitions]" in text
    )
    assert str(raised.value) == (
        "policy policies:Raises failed in round 1 at 2.5 s: IndexError: index 2 is out of bounds for axis 0 with size 2"
        f" ({written.__file__}, line {line})"
    )


def partitions(processed):
    return PartitionsSeen(8, np.array([0, 1], np.int32), np.array(processed), np.array([4, 0]), np.array([7, 9]))


def test_a_period_is_seen_with_its_partitions():
    view = view_of_period(seen(3.0, 2, waiting=50), partitions([150, 110]), np.array([50, 10]))
    assert (view.time_s, view.workers, view.most_workers, view.arrived, view.waiting) == (3.0, 2, 8, 200, 50)
    assert view.processed.tolist() == [100, 100]
    assert view.load.tolist() == [0.5, 0.5]
    assert (view.queued.tolist(), view.state_bytes.tolist()) == ([4, 0], [7, 9])


def test_each_period_sees_the_rows_since_the_last():
    rows = []

    class Keeps:
        def workers(self, view):
            rows.append(view.processed.tolist())
            return view.workers

    policy = OwnScaling(own(Keeps))
    for processed in ([10, 20], [15, 20]):
        policy.wanted(seen(1.0, 2, partitions=lambda processed=processed: partitions(processed)))
    assert rows == [[10, 20], [5, 0]]


def test_a_class_for_the_other_command_is_refused():
    with pytest.raises(UsageError, match=r"has no method workers\(self, view\); it fits `adapt replay flux`"):
        OwnScaling(own(written.Calm))
    with pytest.raises(UsageError, match="cannot be made with thresh=1: TypeError"):
        OwnMoves(own(written.Calm, thresh=1))


def test_the_protocols_are_public():
    assert isinstance(written.Both(), adapt.MovePolicy)
    assert isinstance(written.Both(), adapt.ScalePolicy)
    assert not isinstance(written.Half(), adapt.MovePolicy)
    assert adapt.View is type(view_of_round(observed([0.5], [0], [1])))
