"""A chain bound by blocks against the same chain bound to the whole trace."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput
from adapt.core.ordered.chain.bound import BoundChain, bind, bind_blocks, in_memory
from adapt.core.ordered.chain.chain import Chain, Operator, Punctuations
from adapt.core.ordered.chain.names import PartitionBy
from adapt.core.ordered.presets.presets import PRESETS
from adapt.core.partitioning.schemes.uniform import UniformPartitioner
from tests.core.ordered.chains import PARTITIONED, partitioned, stateful, stateless

ROWS = 400


def columns(seed: int) -> dict[str, pa.Array]:
    random = np.random.default_rng(seed)
    keys = [None if key == 3 else f"k{key}" for key in (random.zipf(1.4, ROWS) % 60).tolist()]
    numbers = random.integers(0, 40, ROWS)
    times = np.cumsum(random.integers(0, 3_000_000, ROWS) * (random.random(ROWS) < 0.3))
    return {
        "key": pa.array(keys),
        "other": pa.array(numbers),
        "cost": pa.array(random.uniform(0, 2, ROWS)),
        "ts": pa.array(times, pa.timestamp("us")),
        "item": pa.array(numbers),
        "user": pa.array(random.integers(0, 9, ROWS)),
        "page": pa.array(random.choice(["view", "cart", "checkout"], ROWS)),
        "ticket": pa.array(np.arange(ROWS) // 3),
    }


def by_blocks(chain: Chain, whole: dict[str, pa.Array], cuts: list[int], plan: Any = None) -> BoundChain:
    parts = [
        {name: pa.chunked_array([column.slice(first, end - first)]) for name, column in whole.items()}
        for first, end in zip([0, *cuts], [*cuts, ROWS], strict=True)
    ]
    return bind_blocks(chain, parts, plan, in_memory)


def same(one: BoundChain, other: BoundChain) -> None:
    assert one.tuples.tolist() == other.tuples.tolist()
    assert one.punctuations.tolist() == other.punctuations.tolist()
    assert {name: texts.to_pylist() for name, texts in one.texts.items()} == {
        name: texts.to_pylist() for name, texts in other.texts.items()
    }
    assert (one.types, one.times) == (other.types, other.times)
    for mine, its in zip(one.operators, other.operators, strict=True):
        assert (mine.fields, mine.gives, mine.partitions, mine.types) == (
            its.fields,
            its.gives,
            its.partitions,
            its.types,
        )
        assert (mine.partition_of is None) == (its.partition_of is None)
        assert mine.partition_of is None or mine.partition_of.tolist() == its.partition_of.tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("every_us", [None, 5_000_000, 0])
def test_blocks_give_the_tuples_of_the_whole_trace(seed: int, every_us: int | None) -> None:
    random = np.random.default_rng([seed, 1])
    by = [PartitionBy.HASH, PartitionBy.RANGE, PartitionBy.PLAN][seed % 3]
    key = "other" if by is PartitionBy.RANGE else "key"
    operators = (
        stateless("a", cost="cost"),
        partitioned("b", by=PartitionBy.RANGE, key="other"),
        Operator("c", PARTITIONED, key=key, partitions=None if by is PartitionBy.PLAN else 8, by=by),
        replace(stateful("d"), tuple_bytes=8 * seed),
    )
    chain = Chain(operators, None if every_us == 0 else Punctuations("ts", every_us))
    whole, plan = columns(seed), UniformPartitioner(8)
    cuts = sorted(random.choice(np.arange(1, ROWS), 1 + 3 * seed, replace=False).tolist())
    same(by_blocks(chain, whole, cuts, plan), bind(chain, whole, plan))


@pytest.mark.parametrize("name", ["retail-q2", "retail-q3", "retail-q4"])
def test_retail_chains_are_bound_by_blocks_too(name: str) -> None:
    chain, whole = PRESETS[name].chain, columns(3)
    same(by_blocks(chain, whole, [1, 50, 51, 333]), bind(chain, whole))


def test_times_that_go_back_between_blocks_are_refused() -> None:
    whole = columns(1)
    whole["ts"] = pa.array([5] * 100 + [4] * (ROWS - 100))
    with pytest.raises(BadInput, match=r"\[punctuations\]: column 'ts' goes back in time in row 100; sort the input"):
        by_blocks(Chain((stateless("a"),), Punctuations("ts", 10)), whole, [100])
