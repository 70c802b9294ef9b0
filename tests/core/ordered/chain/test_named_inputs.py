"""Rows of several inputs in one trace: which rows are of which input, and which of none."""

import pyarrow as pa
import pytest

from adapt.core.errors import BadInput
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.columns import Skipped, split_inputs
from adapt.core.ordered.chain.names import OperatorKind

BOTH = Operator("both", OperatorKind.PARTITIONED, key="key", partitions=2, sources=("1", "2"))
CHAIN = Chain((BOTH,), inputs=("1", "2"), input_column="kind")
ROWS = {"ts": [0, 1, 2, 3, 4], "key": [None, "a", None, "b", "c"], "one": [5, None, 7, None, 9]}


def split(kinds: pa.Array) -> tuple[list[dict[str, list[object]]], Skipped]:
    columns = {name: pa.chunked_array([values[:2], values[2:]]) for name, values in ROWS.items()}
    inputs, skipped = split_inputs(CHAIN, "kind", {**columns, "kind": pa.chunked_array([kinds])})
    return [{name: column.to_pylist() for name, column in each.items() if name != "kind"} for each in inputs], skipped


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_rows_go_to_the_input_that_they_name(kind: pa.DataType) -> None:
    inputs, skipped = split(pa.array([1, 2, 1, 2, 3]).cast(pa.string()).cast(kind))
    assert inputs == [
        {"ts": [0, 2], "key": [None, None], "one": [5, 7]},  # a key may be null
        {"ts": [1, 3], "key": ["a", "b"]},  # a column that is null throughout is not there
    ]
    assert skipped.values == {"3": 1}


def test_rows_that_name_no_input_are_counted_by_value() -> None:
    _, skipped = split(pa.array(["1", "2", None, None, "x"]))
    assert (skipped.rows, skipped.values) == (3, {None: 2, "x": 1})
    assert skipped.sentence().endswith("whose 'kind' is not an input of the chain: null (2 rows), 'x' (1 row).")


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        (
            pa.array(["1", "x", "y", "z", "w"]),
            r"no row of input '2'; column 'kind' has '1' \(1 row\), .* 2 other values",
        ),
        (pa.array([1.0, 2.0, 1.0, 2.0, 1.0]), "column 'kind' must hold texts or integers"),
    ],
)
def test_a_column_that_cannot_name_the_inputs_is_refused(kinds: pa.Array, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        split(kinds)
