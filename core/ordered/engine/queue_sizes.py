"""Work queue sizes that rule out a deadlock."""

from itertools import pairwise

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.names import OperatorKind, Reorder, WorkQueue
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.own.function import function_of


def queue_sizes(chain: BoundChain, settings: RunSettings) -> list[int]:
    """Capacity of each operator's work queue in tuples, a power of two.

    With `claim` and `lock` the settings decide: a full work queue stops the sender (backpressure). A worker that
    retries holds its outputs until they are sent, so nothing may stop sending. Workers then skip an operator while the
    next one has its configured number of tuples waiting, and each work queue has room for all outputs of tuples already
    claimed.

    Raises:
        UsageError: workers could retry forever: an operator has no limit on its outputs; or, with partitioned work
            queues, all workers may hold outputs that wait for a tuple of an idle partition, unless the ring buffer has
            room for all waiting tuples.

    Source: ordered streams, section 3.2, which only says "blocked".
    """
    sizes, operators, punctuated = [settings.queue_capacity], chain.operators, len(chain.punctuations) > 0
    if settings.reorder is not Reorder.RETRY:
        return sizes * len(operators)
    for bound, after in pairwise(operators):
        function = function_of(bound)
        if function.unbounded:
            raise UsageError(
                f"operator {bound.operator.name!r} runs {bound.operator.function}, which may give any number of "
                f"outputs "
                f"at once, and reorder {Reorder.RETRY} needs a work queue with room for all of them; use reorder "
                f"{Reorder.CLAIM} or {Reorder.LOCK}"
            )
        most = max(function.most(bound), 1) + (after.partitions if punctuated else 0)
        sizes.append(1 << (settings.queue_capacity + sizes[-1] * most - 1).bit_length())
    for bound, size in zip(operators, sizes, strict=True):
        if (
            bound.operator.kind is OperatorKind.PARTITIONED
            and settings.work_queue is WorkQueue.PARTITIONED
            and settings.ring_buffer < size
        ):
            raise UsageError(
                f"operator {bound.operator.name!r} would hang: with reorder {Reorder.RETRY} and work queue "
                f"{WorkQueue.PARTITIONED}, all workers can wait for room in the ring buffer of {settings.ring_buffer} "
                f"while the tuple "
                f"that would make room waits in an idle partition; use reorder {Reorder.CLAIM}, work queue "
                f"{WorkQueue.HYBRID}, or a ring buffer of {size}"
            )
    return sizes
