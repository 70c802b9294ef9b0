"""Binding of workers to operators, by scheme, and buffer sizes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain, BoundOperator
from adapt.core.ordered.chain.names import OperatorKind, Parallelism, Reorder, WorkQueue
from adapt.core.ordered.engine.settings import MOST_SLOTS, RunSettings

STATIC = (Parallelism.REPLICATED, Parallelism.PIPELINE)
"""Schemes in which each worker is bound to its operators."""


def degrees_of(operators: Sequence[BoundOperator], settings: RunSettings) -> tuple[int, ...]:
    """Most workers on each operator: its replicas, if it has any.

    By its kind, never more than the workers or its partitions.
    """
    given = settings.degrees or (settings.workers,)
    if settings.parallelism is Parallelism.PIPELINE:
        given = (1,)
    if len(given) == 1:
        given *= len(operators)
    if len(given) != len(operators):
        raise UsageError(
            f"degrees of parallelism must be one for all operators or one for each of {len(operators)} (got "
            f"{len(given)}: {','.join(map(str, given))})"
        )
    return tuple(min(degree, settings.workers, _most(bound)) for degree, bound in zip(given, operators, strict=True))


def _most(bound: BoundOperator) -> int:
    """Workers that an operator of its kind can have."""
    match bound.operator.kind:
        case OperatorKind.STATELESS:
            return np.iinfo(np.int64).max
        case OperatorKind.PARTITIONED:
            return bound.partitions
        case OperatorKind.STATEFUL:
            return 1


def workers_used(chain: BoundChain, settings: RunSettings) -> int:
    """Number of workers that the scheme has replicas for.

    All, if they are not bound.
    """
    if settings.parallelism not in STATIC:
        return settings.workers
    return min(settings.workers, sum(degrees_of(chain.operators, settings)))


def replicas_of_workers(chain: BoundChain, settings: RunSettings) -> NDArray[np.int64]:
    """Replicas by worker and operator, -1 for none; shape (workers, operators).

    Replicas are numbered along the chain, and number n is bound to worker n modulo the workers.
    """
    degrees, bound_to = degrees_of(chain.operators, settings), np.arange(settings.workers)
    firsts = np.cumsum([0, *degrees[:-1]])
    places = [(bound_to - first) % settings.workers for first in firsts]
    return np.array([np.where(each < degree, each, -1) for each, degree in zip(places, degrees, strict=True)]).T


def barred(chain: BoundChain, settings: RunSettings) -> NDArray[np.int64]:
    """Operators that each worker may not enter, as bits."""
    if settings.parallelism not in STATIC:
        return np.zeros(settings.workers, np.int64)
    bits = np.left_shift(1, np.arange(len(chain.operators), dtype=np.int64))
    return np.asarray((replicas_of_workers(chain, settings) < 0) @ bits, np.int64)


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
