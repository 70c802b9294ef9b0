"""Binding a chain to a stream."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.core.ordered.chain.bound import END, VALUE, bind, columns_of
from adapt.core.ordered.chain.chain import Chain, Operator, Punctuations
from adapt.core.ordered.chain.mixing import mixed
from adapt.core.ordered.chain.names import FunctionName, OperatorKind, PartitionBy, PartitionCount
from adapt.core.partitioning.schemes.uniform import UniformPartitioner
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


@pytest.mark.parametrize("by", [PartitionBy.HASH, PartitionBy.RANGE])
def test_partitions_by_workers_are_those_of_so_many_partitions(by: PartitionBy) -> None:
    columns, workers = {"key": pa.array([7, 3, 3, 90, 41, 7])}, Operator("w", OperatorKind.PARTITIONED, "key", 1)
    chain = bind(Chain((replace(workers, partitions=PartitionCount.WORKERS, by=by),)), columns)
    assert chain.operators[0].partitions == 1
    for count in (1, 2, 5):
        fixed = bind(Chain((replace(workers, partitions=count, by=by),)), columns).operators[0]
        (found,) = chain.by_workers(count).operators
        assert found.partitions == count
        assert found.partition_of is not None
        assert fixed.partition_of is not None
        assert found.partition_of.tolist() == fixed.partition_of.tolist()


def test_tuples_carry_the_largest_payload_that_an_operator_reads() -> None:
    operators = (replace(stateless("a"), tuple_bytes=8), replace(stateful("b"), tuple_bytes=24))
    chain = bind(Chain(operators), {"key": pa.array([1, 1])})
    assert chain.fields == chain.gives == (VALUE, "payload 0", "payload 1", "payload 2")
    factors = [mixed(number) for number in (1, 2, 3)]
    expected = [[row, *((row + 1) * factor % 2**64 for factor in factors)] for row in (0, 1)]
    assert chain.tuples.view(np.uint64).tolist() == expected


def test_partitions_by_plan_are_its_channels() -> None:
    keys = pa.chunked_array([pa.array([5, 9]), pa.array([5, 7])])
    plan = UniformPartitioner(5)
    by_plan = Operator("by plan", OperatorKind.PARTITIONED, "key", by=PartitionBy.PLAN)
    operator = bind(Chain((by_plan,)), {"key": keys}, plan).operators[0]
    assert operator.partitions == 5
    assert operator.partition_of is not None
    assert operator.partition_of.tolist() == plan.channels_of(pa.array([5, 9, 7])).tolist()
    with pytest.raises(UsageError, match="operator 'by plan' is partitioned by a plan; name one with --plan"):
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
        ({"kay": pa.array([1])}, "operator 'by key': column 'key' does not exist; did you mean 'kay'?"),
        ({"key": pa.array([1.5])}, "operator 'by key': key column 'key' must be string"),
        ({"key": pa.array([1])}, "operator 'priced': column 'cost' does not exist"),
        ({"key": pa.array([1]), "cost": pa.array(["x"])}, "cost column 'cost' must be numeric (its type is string)"),
        ({"key": pa.array([1, 1]), "cost": pa.array([1, -2])}, "(got -2 in row 1)"),
        ({"key": pa.array([1]), "cost": pa.array([None], pa.float64())}, "(got nan in row 0)"),
    ],
)
def test_a_column_that_will_not_do_is_named_with_its_operator(columns: dict[str, pa.Array], told: str) -> None:
    with pytest.raises(BadInput) as refused:
        bind(Chain((partitioned("by key"), stateless("priced", cost="cost"))), columns)
    assert told in str(refused.value)


def function(name: str, kind: OperatorKind, of: FunctionName, key: str | None = None) -> Operator:
    return Operator(name, kind, key, 4 if key else None, function=of)


CLICKS = {
    "ts": pa.array([5, 59, 60, 60, 200]),
    "key": pa.array([1, 2, 1, 2, 1]),
    "page": pa.array(["view", "cart", "search", "checkout", "view"]),
    "item": pa.array([3, 4, 5, 6, 7]),
}
SESSIONS = (
    function("project", OperatorKind.STATELESS, FunctionName.PROJECT),
    function("sessions", OperatorKind.PARTITIONED, FunctionName.SESSION_PAGES, "key"),
    function("mean", OperatorKind.STATEFUL, FunctionName.MEAN_PAGES),
)


def test_a_punctuation_follows_the_last_row_of_each_stretch_that_has_rows_and_one_the_last_of_all() -> None:
    chain = bind(Chain(SESSIONS, Punctuations(every_us=60)), CLICKS)
    assert chain.punctuations.tolist() == [2, 5, 7, 8]
    assert chain.tuples[chain.punctuations, 0].tolist() == [60, 120, 240, END]
    assert chain.rows == 5
    assert bind(Chain(SESSIONS, Punctuations()), CLICKS).punctuations.tolist() == [5]
    none = bind(Chain(SESSIONS, Punctuations(every_us=60)), {name: column[:0] for name, column in CLICKS.items()})
    assert none.punctuations.tolist() == [0]


def test_operators_read_what_they_need_and_columns_are_named_once() -> None:
    chain = Chain(SESSIONS, Punctuations("at"))
    assert columns_of(chain) == ("key", "ts", "page", "at")
    bound = bind(Chain(SESSIONS, Punctuations()), CLICKS)
    assert [set(operator.fields) for operator in bound.operators] == [
        {"key key", "ts", "page"},
        {"key key", "ts", "page"},
        {"pages", "kinds"},
    ]
    assert bound.gives == ("pages", "sessions")
    assert bound.tuples[:5, bound.fields.index("page")].tolist() == [0, 1, 3, 2, 0]


def test_fields_that_a_later_operator_reads_are_passed_on_and_others_are_not() -> None:
    hours = function("hours", OperatorKind.STATELESS, FunctionName.HOUR)
    pairs = function("pairs", OperatorKind.PARTITIONED, FunctionName.BASKET_PAIRS, "key")
    bound = bind(Chain((hours, pairs)), CLICKS)
    assert set(bound.operators[0].fields) == {"ts", "key key", "item"}
    assert set(bound.operators[0].gives) == set(bound.operators[1].fields) == {"key key", "item", "hour"}


@pytest.mark.parametrize(
    ("operators", "changed", "told"),
    [
        (SESSIONS, {"ts": pa.array([5, 4, 6, 7, 8])}, "column 'ts' goes back in time in row 1"),
        (
            SESSIONS,
            {"page": pa.array(["view", "card", "view", "view", "view"])},
            "column 'page' must contain only view, cart",
        ),
        (SESSIONS, {"page": pa.array([1, 2, 3, 4, 5])}, "column 'page' must hold one of view, cart"),
        (SESSIONS, {"ts": pa.array([1, None, 2, 3, 4])}, "column 'ts' has nulls"),
        (SESSIONS, {"ts": pa.array([-1, 1, 2, 3, 4])}, "operator 'sessions': column 'ts' must be from 0"),
        (
            (*SESSIONS[:2], function("again", OperatorKind.PARTITIONED, FunctionName.SESSION_PAGES, "key")),
            {},
            "operator 'again' reads the key key, which is dropped by operator 'sessions'",
        ),
    ],
)
def test_what_operators_cannot_read_is_named(
    operators: tuple[Operator, ...], changed: dict[str, pa.Array], told: str
) -> None:
    with pytest.raises(BadInput) as refused:
        bind(Chain(operators, Punctuations(every_us=60)), {**CLICKS, **changed})
    assert told in str(refused.value)
