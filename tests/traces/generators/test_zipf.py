"""The zipf generator: its distribution, its times, and that nothing but its parameters decides the rows."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from adapt.core.counting.zipf import zipf_shares
from adapt.core.errors import UsageError
from adapt.core.stream import KeyType
from adapt.traces.generators.keyed import zipf_stream
from adapt.traces.generators.names import GeneratorName
from adapt.traces.generators.registry import GENERATORS
from adapt.traces.generators.write import generate, write_generated
from adapt.traces.ingest.profile import profile_trace
from adapt.traces.spark.progress import silent
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.trace import BLOCK_ROWS, open_trace
from tests.tiers import SOAK


def times_us(batch):
    return batch.column("ts").cast(pa.int64()).to_numpy()


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.5])
@pytest.mark.parametrize("seed", [1, 2])
def test_keys_follow_the_shares(exponent, seed):
    domain, rows = 1000, 200_000
    stream = zipf_stream(rows, domain, exponent, seed, key_type=KeyType.INT64)
    counts = np.bincount(stream.block(0).column("key").to_numpy(), minlength=domain + 1)[1:]
    expected = rows * zipf_shares(domain, exponent)
    head = int(np.count_nonzero(expected >= 10))  # the rare rest as one class, so that chi-square holds
    seen = [*counts[:head], counts[head:].sum()] if head < domain else counts
    wanted = [*expected[:head], expected[head:].sum()] if head < domain else expected
    assert stats.chisquare(seen, wanted, sum_check=False).pvalue > 1e-3


def test_arrivals_are_poisson():
    rows = 200_000
    times = times_us(zipf_stream(rows, 10, rate_per_s=100.0).block(0))
    gaps_s = np.diff(times) / 1e6
    assert stats.kstest(gaps_s, stats.expon(scale=1 / 100).cdf).pvalue > 1e-3


def test_keys_do_not_hang_on_times():
    batch = zipf_stream(200_000, 50, 1.0, seed=3, key_type=KeyType.INT64).block(0)
    gaps = np.diff(times_us(batch), prepend=0)
    assert abs(stats.spearmanr(gaps[1:], batch.column("key").to_numpy()[1:]).statistic) < 0.01  # 4.5 deviations


@given(rows=st.integers(1, 2000), rate=st.floats(1e-3, 1e9), seed=st.integers(0, 2**64 - 1))
def test_times_are_in_order_and_within_the_span(rows, rate, seed):
    times = times_us(zipf_stream(rows, 3, 1.0, seed, rate, "1970-01-01").block(0))
    assert (np.diff(times) >= 0).all()
    assert times[0] >= 0
    assert times[-1] <= max(rows * 1e6 / rate, 0)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"rows": 0}, "(got 0)"),
        ({"rows": 10**15}, "(got 1,000,000,000,000,000)"),
        ({"domain": 0}, "domain must be from 1 to 100,000,000 (got 0)"),
        ({"exponent": float("nan")}, "exponent must be at least 0 (got nan)"),
        ({"seed": -1}, "seed must be from 0 to 2^64 - 1 (got -1)"),
        ({"rate_per_s": 0.0}, "rate_per_s must be above 0 (got 0)"),
        ({"rate_per_s": 1e-9}, "end after the year 9999"),
        ({"start": "soon"}, "start must be a time such as 2026-01-31T12:00:00Z (got 'soon')"),
        ({"key_type": KeyType.BINARY}, "key_type must be string or int64 (got binary)"),
    ],
)
def test_parameters_out_of_range_are_refused(wrong, says):
    with pytest.raises(UsageError) as refused:
        zipf_stream(**{"rows": 10_000, "rate_per_s": 1.0, **wrong})
    assert says in str(refused.value)


@pytest.mark.usefixtures("spark")
def test_the_rows_do_not_depend_on_the_tasks_that_make_them(tmp_path):
    blocks = 8 if SOAK else 3
    stream = zipf_stream((blocks - 1) * BLOCK_ROWS + 1234, 1000, 1.1, 7)
    numbers = list(range(blocks))
    cuts = [[numbers], [numbers[1::2], numbers[::2][::-1]], [[number] for number in numbers]]
    hashes = {
        write_generated(
            stream, tmp_path / f"{at}.trace", Provenance("test"), tasks=tasks, progress=silent
        ).manifest.content_hash
        for at, tasks in enumerate(cuts)
    }
    assert len(hashes) == 1


def test_a_generated_trace_is_like_any_other(tmp_path, spark):
    out = tmp_path / "zipf.trace"
    trace = generate(zipf_stream(rows=BLOCK_ROWS + 10, domain=20, exponent=1.0, seed=5, rate_per_s=1e5), out).trace
    stream = zipf_stream(BLOCK_ROWS + 10, 20, 1.0, 5, 1e5)
    assert open_trace(out, check_all=True).rows == trace.rows == stream.rows
    rows = pa.Table.from_batches(trace.batches())
    made = pa.Table.from_batches([stream.block(0), stream.block(1)]).cast(rows.schema)
    assert rows.combine_chunks().equals(made.combine_chunks())
    assert (np.diff(times_us(rows)) >= 0).all()
    read_again = profile_trace(spark, trace.blocks(), rows.schema, tuple(times_us(rows)[[0, -1]].tolist()), silent)
    assert {**read_again.data, "key_type": trace.key_type} == trace.profile
    assert read_again.content_hash == trace.manifest.content_hash
    assert trace.profile["distinct_keys"] == 20
    assert trace.profile["top_keys"][0] == ["k1", pc.sum(pc.equal(made["key"], "k1")).as_py()]
    assert trace.manifest.made.seed == 5
    assert trace.manifest.made.parameters["generator"] == "zipf"


def test_every_name_has_a_generator():
    assert set(GENERATORS) == set(GeneratorName)
