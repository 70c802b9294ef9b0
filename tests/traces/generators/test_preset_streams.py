"""Streams of the chains by name: a block alone is what it is among the others, and the chains read them."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from adapt.core.ordered.chain.bound import bind
from adapt.core.ordered.presets.presets import PRESETS
from adapt.core.stream import KeyType
from adapt.traces.generators.calls import CallStream
from adapt.traces.generators.clicks import ClickStream
from adapt.traces.generators.names import GeneratorName
from adapt.traces.generators.registry import GENERATORS
from adapt.traces.generators.sales import SaleStream
from adapt.traces.store.trace import BLOCK_ROWS
from tests.conftest import InProcess

STREAMS = {"calls": CallStream, "clicks": ClickStream, "sales": SaleStream}


@pytest.mark.parametrize("name", STREAMS)
def test_blocks_are_in_order_whichever_is_made_first(name: str) -> None:
    stream = STREAMS[name](2 * BLOCK_ROWS + 5, seed=3, key_type=KeyType.INT64)
    last, first, second = (stream.block(index) for index in (2, 0, 1))
    assert (first.num_rows, second.num_rows, last.num_rows) == (BLOCK_ROWS, BLOCK_ROWS, 5)
    assert last.equals(STREAMS[name](2 * BLOCK_ROWS + 5, seed=3, key_type=KeyType.INT64).block(2))
    assert not last.equals(STREAMS[name](2 * BLOCK_ROWS + 5, seed=4, key_type=KeyType.INT64).block(2))
    times = [block.column("ts").cast(pa.int64()).to_numpy() for block in (first, second, last)]
    assert all(before[-1] <= after[0] for before, after in pairwise(times))
    if name == "calls":
        return
    # tickets, and sessions as they are counted, lie in one block
    grouped = "session" if name == "clicks" else "key"
    assert pa.compute.max(first.column(grouped)).as_py() < pa.compute.min(second.column(grouped)).as_py()


@pytest.mark.parametrize("name", STREAMS)
def test_keys_are_named_where_they_are_strings(name: str) -> None:
    named, numbered = (STREAMS[name](50, key_type=kind).block(0) for kind in (KeyType.STRING, KeyType.INT64))
    letter = {"calls": "p", "clicks": "u", "sales": "t"}[name]
    assert named.column("key").to_pylist() == [f"{letter}{number}" for number in numbered.column("key").to_pylist()]
    assert named.drop_columns("key").equals(numbered.drop_columns("key"))


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_a_chain_can_be_bound_to_the_stream_that_it_is_for(preset: Any) -> None:
    rows = STREAMS[preset.stream](300).block(0)
    assert GeneratorName(preset.stream) in GENERATORS
    assert bind(preset.chain, {name: rows.column(name) for name in rows.schema.names}).rows == 300


def test_a_generated_trace_is_replayed_by_the_name_of_its_chain(
    spark: SparkSession,
    adapt: InProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    adapt.done("generate", "sales", "--rows", 3000, "--rate", 0.01, "-o", "sales.trace")
    line = "replay ordered sales.trace --chain retail-q15 --workers 1,2 --format json --backend threads"
    document = json.loads(adapt.done(*line.split()).out)
    assert document["parameters"]["chain"]["name"] == "retail-q15"
    assert [row["ordered"] for row in document["workers"]] == [True, True]
    refused = adapt.refused(3, *"replay ordered sales.trace --chain retail-q2 --workers 1".split())
    assert "retail-q2, line 4: operator 'no searches': column 'page' does not exist" in refused
    refused = adapt.refused(2, *"generate clicks --bursts 3 -o clicks.trace".split())
    assert "clicks does not take --bursts, an option of packets, self-similar, zipf" in refused
