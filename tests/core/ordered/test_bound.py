"""Binding a chain to a stream."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.core.ordered.bound import VALUE, bind
from adapt.core.ordered.chain import Chain, Operator
from adapt.core.ordered.names import OperatorKind, PartitionBy
from adapt.core.partitioners.uniform import UniformPartitioner
from tests.core.ordered.chains import partitioned, stateful, stateless


def test_a_tuple_has_the_number_of_its_key_its_cost_and_its_row() -> None:
    columns = {
        "key": pa.array(["b", None, "b", "a"]),
        "cost": pa.array([0.5, 1, 2, 0.0004]),
        "more": pa.array([1, 2, 3, 4]),
    }
    chain = bind(Chain((stateless("parse", cost="cost"), partitioned("by key", 3))), columns)
    assert chain.fields == ("cost cost", "key key", VALUE)
    assert chain.tuples.tolist() == [[500, 0, 0], [1000, 1, 1], [2000, 0, 2], [0, 2, 3]]
    first, second = chain.operators
    assert (first.cost_at, first.key_at, first.value_at, first.partitions) == (0, -1, 2, 1)
    assert (second.cost_at, second.key_at, second.value_at, second.keys) == (-1, 1, 2, 3)


def test_partitions_by_hash_are_those_of_the_uniform_scheme() -> None:
    keys = pa.array(["b", None, "c", "a"])
    chain = bind(Chain((partitioned("by key", 3),)), {"key": keys})
    assert chain.operators[0].partition_of is not None
    assert chain.operators[0].partition_of.tolist() == UniformPartitioner(3).channels_of(keys).tolist()


def test_partitions_by_plan_are_its_channels() -> None:
    keys = pa.chunked_array([pa.array([5, 9]), pa.array([5, 7])])
    plan = UniformPartitioner(5)
    by_plan = Operator("by plan", OperatorKind.PARTITIONED, "key", by=PartitionBy.PLAN)
    operator = bind(Chain((by_plan,)), {"key": keys}, plan).operators[0]
    assert operator.partitions == 5
    assert operator.partition_of is not None
    assert operator.partition_of.tolist() == plan.channels_of(pa.array([5, 9, 7])).tolist()
    with pytest.raises(UsageError, match="operator 'by plan' is partitioned by a plan, and none is given"):
        bind(Chain((by_plan,)), {"key": keys})


def test_two_operators_of_one_key_share_its_numbers() -> None:
    chain = bind(Chain((partitioned("first", 3), partitioned("second", 4))), {"key": pa.array([4, 4, 2])})
    assert chain.fields == ("key key", VALUE)
    assert [operator.partitions for operator in chain.operators] == [3, 4]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint32(), pa.string(), pa.large_string(), pa.binary()])
def test_keys_of_these_types_are_taken(kind: pa.DataType) -> None:
    texts = pa.array(["1", "2", "1"])
    chain = bind(Chain((partitioned("by key", 3),)), {"key": texts.cast(kind)})
    assert chain.tuples[:, 0].tolist() == [0, 1, 0]
    encoded = bind(Chain((partitioned("by key", 3),)), {"key": texts.cast(kind).dictionary_encode()})
    assert np.array_equal(chain.tuples, encoded.tuples)


def test_a_stream_without_rows_is_bound() -> None:
    chain = bind(Chain((partitioned("by key", 3), stateful("all"))), {"key": pa.chunked_array([], pa.string())})
    assert chain.tuples.shape == (0, 2)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"kay": pa.array([1])}, "operator 'by key': the stream has no column 'key'; did you mean 'kay'?"),
        ({"key": pa.array([1.5])}, "operator 'by key': column 'key' is of type double, and a key is a string"),
        ({"key": pa.array([1])}, "operator 'priced': the stream has no column 'cost'"),
        ({"key": pa.array([1]), "cost": pa.array(["x"])}, "its cost, column 'cost', is of type string"),
        ({"key": pa.array([1, 1]), "cost": pa.array([1, -2])}, "its cost, column 'cost', is -2 in row 1"),
        ({"key": pa.array([1]), "cost": pa.array([None], pa.float64())}, "its cost, column 'cost', is nan in row 0"),
    ],
)
def test_a_column_that_will_not_do_is_named_with_its_operator(columns: dict[str, pa.Array], told: str) -> None:
    with pytest.raises(BadInput) as refused:
        bind(Chain((partitioned("by key"), stateless("priced", cost="cost"))), columns)
    assert told in str(refused.value)
