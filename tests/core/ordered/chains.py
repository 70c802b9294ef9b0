"""Chains and streams that tests of the ordered runtime share."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.names import FunctionName, OperatorKind, PartitionBy

STATELESS, PARTITIONED, STATEFUL = OperatorKind.STATELESS, OperatorKind.PARTITIONED, OperatorKind.STATEFUL


def stateless(name: str, selectivity: float = 1.0, cost: float | str = 0.0) -> Operator:
    return Operator(name, STATELESS, selectivity=selectivity, cost=cost)


def partitioned(
    name: str, partitions: int = 8, selectivity: float = 1.0, key: str = "key", by: PartitionBy = PartitionBy.HASH
) -> Operator:
    return Operator(name, PARTITIONED, key=key, partitions=partitions, by=by, selectivity=selectivity)


def stateful(name: str, selectivity: float = 1.0) -> Operator:
    return Operator(name, STATEFUL, selectivity=selectivity)


def counting(name: str, partitions: int = 8) -> Operator:
    return Operator(name, PARTITIONED, key="key", partitions=partitions, function=FunctionName.COUNT)


def stream(tuples: int, keys: int = 100, skew: float = 1.0, seed: int = 1) -> dict[str, pa.Array]:
    """Keys of which a few are frequent, and costs of 0 to 2 microseconds."""
    random = np.random.default_rng(seed)
    weights = np.arange(1, keys + 1) ** -skew
    key = random.choice(keys, tuples, p=weights / weights.sum())
    return {"key": pa.array(key), "cost": pa.array(random.uniform(0, 2, tuples))}


def bound(operators: Sequence[Operator], tuples: int, keys: int = 100, skew: float = 1.0) -> BoundChain:
    return bind(Chain(tuple(operators)), stream(tuples, keys, skew))
