"""Reorder ring and work queues: every interleaving of workers that run the ordered engine's own source."""

from pathlib import Path

import pytest

from adapt.core.ordered.chain.names import Reorder, WorkQueue
from adapt.core.ordered.engine.settings import RunSettings
from tests.tiers import SOAK, soak
from tests.trust.models.explorer import Refused
from tests.trust.models.kernel_steps import Run

pytestmark = pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="memory is read as Linux lets it be read")


def run(rows, reorder, ring, partitions=0, work_queue=WorkQueue.HYBRID, faults=()):
    settings = RunSettings(2, reorder, work_queue, ring_buffer=ring, queue_capacity=4, chunk=1)
    return Run(settings, rows, partitions, faults)


@pytest.mark.parametrize(
    ("rows", "reorder", "ring"),
    [(2, Reorder.CLAIM, 2)]
    + SOAK
    * [(2, Reorder.LOCK, 2), (3, Reorder.CLAIM, 2), (3, Reorder.CLAIM, 1), (3, Reorder.LOCK, 2), (2, Reorder.RETRY, 1)],
)
def test_rows_leave_once_and_in_order_whatever_the_workers_do_when(rows, reorder, ring, promise):
    found = run(rows, reorder, ring).search()
    assert found.ends
    promise("reorder-ring").checked(found.states)


@pytest.mark.parametrize("work_queue", [WorkQueue.PARTITIONED, pytest.param(WorkQueue.HYBRID, marks=soak)])
def test_a_partition_has_one_worker_at_a_time_and_its_rows_in_order(work_queue, promise):
    found = run(2, Reorder.CLAIM, 2, 2, work_queue).search()
    assert found.ends
    promise("hybrid-queue").checked(found.states)


RING = {
    "two workers send": (
        'while not exchange(operator, "sending", 1):',
        'while not load_atomic(operator, "sending"):\n        publish(operator, "sending", 1)',
    ),
    "a place is given back before it is read": (
        "            sent = _send_plain(header, operator, outputs_at(operator, serial), tuples)\n",
        '            publish(operator, "next", serial + tuples)\n'
        "            sent = _send_plain(header, operator, outputs_at(operator, serial), tuples)\n",
    ),
    "more is claimed than the ring holds": (
        'return min(end, load_atomic(operator, "next") + fixed(operator, "ring_mask") + 1)',
        "return end",
    ),
}


@pytest.mark.parametrize("fault", RING)
def test_a_faulty_ring_is_refused(fault, promise):
    with pytest.raises(Refused):
        run(3, Reorder.CLAIM, 1 if "more" in fault else 2, faults=[RING[fault]]).search()
    promise("reorder-ring").checked(1)


QUEUE = {
    "a lane is left before its tuples are done": (
        "        run_claimed(header, tally, scratch, operator, lane, queue, head, tuples)\n        done += tuples\n"
        '        waiting = fetch_add(part, "waiting", -tuples) - tuples\n',
        '        waiting = fetch_add(part, "waiting", -tuples) - tuples\n'
        "        run_claimed(header, tally, scratch, operator, lane, queue, head, tuples)\n        done += tuples\n",
    ),
    "a busy lane is entered": (
        'if fetch_add(partition_at(operator, lane), "waiting", waiting):',
        'if fetch_add(partition_at(operator, lane), "waiting", waiting) > 1:',
    ),
}


@pytest.mark.parametrize("fault", QUEUE if SOAK else list(QUEUE)[1:])
def test_a_faulty_hybrid_queue_is_refused(fault, promise):
    with pytest.raises(Refused):
        run(2, Reorder.CLAIM, 2, 2, faults=[QUEUE[fault]]).search()
    promise("hybrid-queue").checked(1)
