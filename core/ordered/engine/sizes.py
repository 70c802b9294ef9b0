"""Sizes of ring buffers and work queues that rule out a deadlock."""

from collections.abc import Sequence
from typing import NamedTuple

from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.names import OperatorKind, Parallelism, Reorder, WorkQueue
from adapt.core.ordered.engine.settings import MOST_SLOTS, RunSettings


class Sizes(NamedTuple):
    """Sizes of an operator in tuples, powers of two."""

    queue: int  # capacity of its work queue
    ring: int  # size of its ring buffer


def sizes_of(chain: BoundChain, settings: RunSettings, most: Sequence[int | None]) -> list[Sizes]:
    """Sizes by operator.

    With `claim` and `lock` those of the settings: a full work queue stops the sender (backpressure), and no worker
    holds a tuple that waits for room. With `retry` workers wait while they hold outputs. If all of them waited, nobody
    would process the tuple that makes room, in two cases:

    - The next work queue is full, so that nothing is sent. Therefore workers skip an operator while the next one has
      its configured number of tuples, and the next work queue also has room for all outputs of the tuples that may be
      claimed. These are as many as a work queue is configured to hold.
    - That tuple is in a partition that no worker owns, with partitioned work queues, or its replica's worker is at
      another operator. A hybrid one is claimed in serial order, so that a worker is processing it.

    Where the second case can happen, or outputs are too many for such a queue, the ring buffer has room for all tuples
    that may be claimed, so that no worker waits. Each smaller power of two can hang.

    Args:
        most: Outputs per tuple for which an operator has room; None if it may have more.

    Source: ordered streams, section 3.2, which only says "blocked".
    """
    capacity, operators = settings.queue_capacity, chain.operators
    if settings.reorder is not Reorder.RETRY:
        return [Sizes(capacity, settings.ring_buffer)] * len(operators)
    sizes, queue = [], capacity
    for bound, after, outputs in zip(operators, (*operators[1:], None), most, strict=True):
        keeps_sending, room = True, capacity
        if after is not None:
            # Of each punctuation, an operator processes one copy by partition, and the last one goes on.
            punctuations = min(len(chain.punctuations), capacity // bound.partitions + 1)
            room += capacity * (outputs or 0) + punctuations * after.partitions
            keeps_sending = outputs is not None and room <= MOST_SLOTS
        skips = bound.operator.kind is OperatorKind.PARTITIONED and settings.work_queue is not WorkQueue.HYBRID
        skips = skips or settings.parallelism is Parallelism.REPLICATED
        sizes.append(Sizes(queue, max(settings.ring_buffer, capacity if skips or not keeps_sending else 0)))
        queue = 1 << (room - 1).bit_length() if keeps_sending else capacity
    return sizes
