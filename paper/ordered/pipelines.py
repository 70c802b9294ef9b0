"""Pipelines of the paper as chains of synthetic work.

Table 1 gives the kinds of the operators of each query. It gives neither costs nor selectivities: costs are 1 to 4 us
here, and selectivities follow from the descriptions of the queries and their streams.

In the model of these chains an output is a copy of its input. Keys that are made in a chain, pairs of items and items
seen, are therefore drawn uniformly there, or all pairs of a session would be equal.

Source: ordered streams, section 7 and Table 1.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from adapt.core.ordered.chain.bound import BoundChain, bind, columns_of
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.columns import Words
from adapt.core.ordered.chain.names import OperatorKind, PartitionBy
from adapt.core.ordered.presets.presets import PRESETS
from adapt.traces.generators.clicks import ClickStream
from adapt.traces.generators.sales import SaleStream
from adapt.traces.store.trace import BLOCK_ROWS

KEYS = 10_000
"""Number of tickets, users, items and pairs of items, each."""

CATEGORIES = 10

_MADE = ("pair", "item")
"""Keys that are made in a chain."""

PARTITIONS = 100
"""Partitions of the hybrid work queue (Figure 9)."""


def _stateless(name: str, cost_us: float, selectivity: float = 1.0) -> Operator:
    return Operator(name, OperatorKind.STATELESS, cost=cost_us, selectivity=selectivity)


def _partitioned(
    name: str, key: str, cost_us: float, selectivity: float = 1.0, partitions: int = PARTITIONS
) -> Operator:
    return Operator(name, OperatorKind.PARTITIONED, key, partitions, cost=cost_us, selectivity=selectivity)


def _stateful(name: str, cost_us: float, selectivity: float) -> Operator:
    return Operator(name, OperatorKind.STATEFUL, cost=cost_us, selectivity=selectivity)


QUERIES: Mapping[str, tuple[Operator, ...]] = {
    "Q1": (
        _stateless("parse", 1),
        _partitioned("basket", "ticket", 2, 2.3),  # pairs of items of a line: tickets have 1 to 8 lines
        _partitioned("count", "pair", 1, 0.02),
        _stateful("top", 4, 0.1),
    ),
    "Q2": (
        _stateless("clicks", 1, 0.8),
        _partitioned("session", "user", 2, 0.15),
        _stateless("pairs", 4, 47),
        _partitioned("count", "pair", 1, 0.01),
        _stateful("top", 2, 0.1),
    ),
    "Q3": (
        _stateless("views", 1, 0.85),
        _partitioned("last five", "user", 3, 0.2),
        _partitioned("count", "item", 2, 0.01),
    ),
    "Q4": (
        _stateless("project", 1),
        _partitioned("session", "user", 3, 0.13),
        _stateless("abandoned", 2, 0.2),
        _stateful("mean", 1, 0.1),
    ),
    "Q15": (
        _stateless("project", 1),
        _stateless("revenue", 1),
        _partitioned("slope", "category", 4, 0.001, CATEGORIES),
    ),
}
"""Queries by their names in Table 1."""


def query(
    name: str,
    rows: int,
    seed: int,
    partitions: int = PARTITIONS,
    skew: float = 0.0,
    heavier: float = 1.0,
    *,
    threads: bool = False,
) -> BoundChain:
    """A query with its input.

    Args:
        name: Name in Table 1.
        rows: Input tuples.
        seed: Random seed of the keys.
        partitions: Partitions of each partitioned operator; for Q15 at most 10, one per category.
        skew: Zipf exponent of the keys; 0 for uniform keys. Categories are always uniform.
        heavier: Factor on the cost of each operator.
        threads: Whether threads will run it, which need all keys as columns of the input.
    """
    operators = [_sized(operator, partitions, heavier) for operator in QUERIES[name]]
    chance = np.random.default_rng(seed)
    columns = {
        operator.key: pa.array(_keys(chance, rows, CATEGORIES if operator.key == "category" else KEYS, skew))
        for operator in operators
        if operator.key is not None
    }
    chain = bind(Chain(tuple(operators)), columns)
    if threads:
        return chain
    drawn = (replace(bound, partition_of=None) if bound.operator.key in _MADE else bound for bound in chain.operators)
    return replace(chain, operators=tuple(drawn))


def retail(rows: int, seed: int, name: str, partitions: int) -> BoundChain:
    """A shipped retail chain over a generated stream of clicks or sales.

    Args:
        rows: Rows of the stream.
        seed: Random seed of the stream.
        name: Name in Table 1.
        partitions: Partitions of each partitioned operator; for Q15 at most 10, one per category.
    """
    preset = PRESETS[f"retail-{name.lower()}"]
    operators = tuple(
        replace(each, partitions=min(partitions, CATEGORIES) if each.by is PartitionBy.RANGE else partitions)
        if each.key
        else each
        for each in preset.chain.operators
    )
    chain = replace(preset.chain, operators=operators)
    stream = (SaleStream if preset.stream == "sales" else ClickStream)(rows=rows, seed=seed)
    table = pa.Table.from_batches(stream.block(number) for number in range(-(-rows // BLOCK_ROWS)))
    return replace(bind(chain, {column: table[column] for column in columns_of(chain)}), runs=True)


def retail_costs(name: str) -> tuple[float, ...]:
    """Stated cost of a tuple by operator, in microseconds: those of the chain of synthetic work."""
    return tuple(float(operator.cost) for operator in QUERIES[name])


def one_partitioned(rows: int, seed: int, cost_us: float, partitions: int, sigma: float = 0.0) -> BoundChain:
    """One partitioned operator, for Figures 9 and 10.

    Args:
        rows: Input tuples.
        seed: Random seed of the keys.
        cost_us: Cost of a tuple.
        partitions: Number of partitions.
        sigma: Deviation of the normal distribution on [-1, 1] of keys, which are divided into ranges; 0 for uniform,
            hashed keys.
    """
    chance = np.random.default_rng(seed)
    by = PartitionBy.RANGE if sigma else PartitionBy.HASH
    keys = _normal(chance, rows, sigma) if sigma else _keys(chance, rows, KEYS, 0.0)
    operator = Operator("keyed", OperatorKind.PARTITIONED, "key", partitions, by, cost_us)
    return bind(Chain((operator,)), {"key": pa.array(keys)})


def one_stateless(rows: int, seed: int, cost_us: float) -> BoundChain:  # noqa: ARG001 (nothing is drawn here)
    """One stateless operator, for Figure 12."""
    return bind(Chain((_stateless("light", cost_us),)), {"row": pa.array(np.arange(rows))})


def many_outputs(rows: int, seed: int, cost_us: float, selectivity: float, second_us: float) -> BoundChain:
    """A stateless operator with many outputs, for Figure 13.

    Followed by a partitioned one.
    """
    keys = _keys(np.random.default_rng(seed), rows, KEYS, 0.0)
    operators = (_stateless("many", cost_us, selectivity), _partitioned("keyed", "key", second_us))
    return bind(Chain(operators), {"key": pa.array(keys)})


PIPELINES: Mapping[str, Callable[..., BoundChain]] = {
    each.__name__: each for each in (query, retail, one_partitioned, one_stateless, many_outputs)
}


def _sized(operator: Operator, partitions: int, heavier: float) -> Operator:
    assert not isinstance(operator.cost, str)
    cost = heavier * operator.cost
    match operator.kind:
        case OperatorKind.STATELESS:
            return _stateless(operator.name, cost, operator.selectivity)
        case OperatorKind.STATEFUL:
            return _stateful(operator.name, cost, operator.selectivity)
    key = operator.key or ""
    if key == "category":
        # In ranges, so that each category has its own partition.
        few = min(partitions, CATEGORIES)
        return Operator(
            operator.name, operator.kind, key, few, PartitionBy.RANGE, cost, selectivity=operator.selectivity
        )
    return _partitioned(operator.name, key, cost, operator.selectivity, partitions)


def _keys(chance: np.random.Generator, rows: int, keys: int, skew: float) -> Words:
    ends = np.cumsum((1.0 + np.arange(keys)) ** -skew)
    return np.asarray(np.searchsorted(ends, chance.random(rows) * ends[-1], "right"), np.int64)


def _normal(chance: np.random.Generator, rows: int, sigma: float) -> Words:
    """Random keys from -1 to 1 in millionths; both ends occur, so that the ranges span them."""
    drawn: list[Words] = [np.array([-(10**6), 10**6])]
    while sum(map(len, drawn)) < rows:
        values = chance.normal(0.0, sigma, rows)
        drawn.append(np.rint(values[np.abs(values) <= 1] * 1e6).astype(np.int64))
    return np.concatenate(drawn)[:rows]
