"""Sizes of work queues, so that no worker can wait for ever."""

from itertools import pairwise

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.names import OperatorKind, Reorder, Worklist
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.functions.registry import function_of


def queue_sizes(chain: BoundChain, settings: RunSettings) -> list[int]:
    """Tuples that the worklist of each operator holds, a power of two.

    With `claim` and `lock` that is what the settings say: who sends stops at a full worklist. A worker that retries
    holds its outputs until they are sent, so nothing may stop sending; workers then leave an operator alone while the
    next has as many tuples as the settings say, and each worklist has room for all that those already claimed can add.

    Raises:
        UsageError: workers would retry for ever: where there can be any number of outputs; and with partitioned
            worklists, where all may hold outputs that wait for a tuple of a partition in which nobody works, unless the
            ring has room for all that waits.

    Source: ordered streams, section 3.2, which only says "blocked".
    """
    sizes, operators, punctuated = [settings.queue], chain.operators, len(chain.punctuations) > 0
    if settings.reorder is not Reorder.RETRY:
        return sizes * len(operators)
    for bound, after in pairwise(operators):
        function = function_of(bound.operator)
        if function.unbounded:
            raise UsageError(
                f"operator {bound.operator.name!r} runs {bound.operator.function}, which gives any number of outputs "
                f"at once; with reorder {Reorder.RETRY} a worklist must have room for all of them; take reorder "
                f"{Reorder.CLAIM} or {Reorder.LOCK}"
            )
        most = max(function.most(bound), 1) + (after.partitions if punctuated else 0)
        sizes.append(1 << (settings.queue + sizes[-1] * most - 1).bit_length())
    for bound, size in zip(operators, sizes, strict=True):
        if (
            bound.operator.kind is OperatorKind.PARTITIONED
            and settings.worklist is Worklist.PARTITIONED
            and settings.ring < size
        ):
            raise UsageError(
                f"operator {bound.operator.name!r} would hang: with reorder {Reorder.RETRY} and worklist "
                f"{Worklist.PARTITIONED}, all workers can wait for room in the ring of {settings.ring} while the tuple "
                f"that would make it waits in a partition of nobody; take reorder {Reorder.CLAIM}, worklist "
                f"{Worklist.HYBRID}, or a ring of {size}"
            )
    return sizes
