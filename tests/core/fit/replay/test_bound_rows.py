"""Which rows of a trace come to which input of a network, and when."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput, UsageError
from adapt.core.fit.network.network import ColumnEquals, Input, KeyBucket, KeyRange, Network, Node, Output
from adapt.core.fit.replay.bound_rows import Binding, Counts
from adapt.core.partitioning.schemes.uniform import UniformPartitioner

START = 1_700_000_000_000_000


def network(*streams):
    inputs = tuple(Input(f"in{at}", stream) for at, stream in enumerate(streams))
    return Network((Node("A"),), inputs, (), tuple(Output(f"out{at}", f"in{at}") for at in range(len(streams))))


def trace(rows, cut=3):
    """Batches of rows of (microseconds since the start, key, topic, shard)."""
    times, keys, topics, shards = zip(*rows, strict=True)
    table = pa.table(
        {
            "ts": pa.array([START + at for at in times], pa.timestamp("us", "UTC")),
            "key": pa.array(keys, pa.string()),
            "topic": pa.array(topics, pa.string()),
            "shard": pa.array(shards, pa.int32()),
        }
    )
    return lambda: table.to_batches(cut)


ROWS = trace(
    [(0, "a", "x", 1), (5, "b", "y", 2), (5, None, "x", 1), (12, "c", None, None), (30, "d", "y", 1)],
)


def bound(binding, batches=ROWS):
    """(time, input) of all rows."""
    return [
        pair
        for each in binding.bound(batches())
        for pair in zip(each.at_us.tolist(), each.inputs.tolist(), strict=True)
    ]


def test_by_the_value_of_a_column_of_text_or_of_numbers() -> None:
    binding = Binding(network(ColumnEquals("topic", "x"), ColumnEquals("shard", 1)), 10)
    assert binding.columns == ["ts", "topic", "shard"]
    assert bound(binding) == [(0, 0), (0, 1), (5, 0), (5, 1), (30, 1)]


def test_by_ranges_of_keys_with_and_without_ends() -> None:
    assert bound(Binding(network(KeyRange("b", "d"), KeyRange("c", None), KeyRange(None, None)), 10)) == [
        (0, 2),
        (5, 0),
        (5, 2),
        (12, 0),
        (12, 1),
        (12, 2),
        (30, 1),
        (30, 2),
    ]


def test_by_buckets_of_keys_which_part_the_rows() -> None:
    found = bound(Binding(network(*(KeyBucket(bucket, 3) for bucket in range(3))), 10))
    channels = UniformPartitioner(3).channels_of(pa.array(["a", "b", None, "c", "d"], pa.string()))
    assert [entering for _, entering in found] == channels.tolist()


def test_counts_by_tick_and_says_what_matches_nothing() -> None:
    of = network(ColumnEquals("topic", "x"), ColumnEquals("topic", "z"))
    counts = Counts.from_batches(Binding(of, 10), ROWS())
    assert counts.by_tick.tolist() == [[2, 0], [0, 0], [0, 0], [0, 0]]
    assert (counts.rows, counts.unbound) == (5, 3)
    assert counts.unmatched(of) == ["input 'in1' (topic = 'z') matches none of the 5 rows"]


def test_inputs_that_read_the_same_rows_are_warned_of() -> None:
    of = network(ColumnEquals("topic", "x"), KeyRange(None, None))
    counts = Counts.from_batches(Binding(of, 10), ROWS())
    said = counts.unmatched(of)
    assert len(said) == 2
    assert said[0].startswith("input 'in0' (topic = 'x') shares 1 of its rows with other inputs")


@given(
    st.lists(
        st.tuples(st.integers(0, 200), st.sampled_from("abc"), st.sampled_from("xy"), st.integers(0, 2)), min_size=1
    ),
    st.integers(1, 50),
    st.integers(1, 7),
    st.sampled_from([1.0, 2.5]),
)
def test_ticks_hold_what_counts_say_however_batches_cut_the_rows(rows, tick_us, cut, speedup) -> None:
    batches = trace(sorted(rows), cut)
    binding = Binding(network(ColumnEquals("topic", "x"), KeyRange("b", None)), tick_us, speedup)
    counts = Counts.from_batches(binding, batches())
    ticks = list(binding.ticks(batches(), len(counts.by_tick)))
    assert [np.bincount(tick.inputs, minlength=2).tolist() for tick in ticks] == counts.by_tick.tolist()
    for tick in ticks:
        assert ((tick.at_us >= tick.begin_us) & (tick.at_us < tick.end_us)).all()
    together = [pair for tick in ticks for pair in zip(tick.at_us.tolist(), tick.inputs.tolist(), strict=True)]
    assert together == bound(binding, batches)


def test_bindings_that_cannot_be_are_refused_by_name() -> None:
    with pytest.raises(BadInput, match="'in0' has no stream"):
        Binding(network(None), 10).check(["ts"])
    with pytest.raises(BadInput, match=r"'in0' reads column 'topics'.*did you mean 'topic'.*--keep topics"):
        Binding(network(ColumnEquals("topics", "x")), 10).check(["ts", "topic"])
    with pytest.raises(BadInput, match="'in0' selects 'one', but the column holds int32"):
        bound(Binding(network(ColumnEquals("shard", "one")), 10))
    with pytest.raises(BadInput, match="'in0' selects 1, but the column holds string"):
        bound(Binding(network(ColumnEquals("topic", 1)), 10))
    with pytest.raises(UsageError, match="increase the tick"):
        Counts.from_batches(Binding(network(KeyBucket(0, 1)), 1), trace([(0, "a", "x", 1), (10**12, "a", "x", 1)])())
    with pytest.raises(BadInput, match="row 4 is earlier than the row before it"):
        bound(Binding(network(KeyBucket(0, 1)), 9), trace([(at, "a", "x", 1) for at in (1, 2, 4, 3)]))
    with pytest.raises(BadInput, match="no rows"):
        Counts.from_batches(Binding(network(KeyBucket(0, 1)), 1), iter(()))
