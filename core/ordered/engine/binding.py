"""Binding of workers to operators, by parallelization scheme."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain, BoundOperator
from adapt.core.ordered.chain.names import OperatorKind, Parallelism
from adapt.core.ordered.engine.settings import RunSettings

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
