"""Generators: their distributions, times and blocks, and that parameters alone decide the rows."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from scipy import stats

from adapt.core.counting.zipf import zipf_shares
from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import bind
from adapt.core.ordered.presets.presets import PRESETS
from adapt.core.stream import KeyType
from adapt.core.synthetic.distribution import Distribution
from adapt.core.synthetic.popularity import SelfSimilarKeys
from adapt.core.synthetic.rates import rate_path
from adapt.core.synthetic.variation import Bursts, Diurnal, Drift, Lags, Variation
from adapt.traces.generators.calls import CallStream
from adapt.traces.generators.clicks import ClickStream
from adapt.traces.generators.keyed import KeyedStream, self_similar_stream, zipf_stream
from adapt.traces.generators.names import GeneratorName
from adapt.traces.generators.registry import GENERATORS
from adapt.traces.generators.sales import SaleStream
from adapt.traces.generators.steady import keys_of
from adapt.traces.generators.write import generate, write_generated
from adapt.traces.ingest.profile import profile_trace
from adapt.traces.spark.progress import silent
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.trace import BLOCK_ROWS, open_trace
from tests.conftest import InProcess
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
    blocks = 8 if SOAK else 2
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


ALL = Variation(
    Diurnal(0.7, 600.0),
    Bursts(6.0, 60.0, 10.0),
    Lags(3, 5.0),
    Drift(30.0, 0.2),
    200.0,
    Distribution("lognormal", (100.0, 0.5)),
    Distribution("pareto", (64.0, 1.3)),
)


def changing(rows, **changed):
    return zipf_stream(rows, 500, 1.0, 9, 5000.0, key_type=KeyType.INT64, variation=ALL, **changed)


def test_rows_come_at_the_rate_of_the_path():
    rows = 200_000
    stream = zipf_stream(rows, 10, 1.0, 3, 1000.0, "1970-01-01", variation=Variation(ALL.diurnal, ALL.bursts))
    path = rate_path(rows, 1000.0, 3, ALL.diurnal, ALL.bursts, Lags())
    expected = np.interp(times_us(stream.block(0)) / 1e6, path.breaks_s, path.expected)
    # in expected rows the arrivals are a Poisson process of rate 1
    assert stats.kstest(np.diff(expected), stats.expon().cdf).pvalue > 1e-3


def test_blocks_are_in_order_whichever_is_made_first():
    stream = changing(2 * BLOCK_ROWS + 5)
    last, first, second = (stream.block(index) for index in (2, 0, 1))
    assert first.equals(changing(2 * BLOCK_ROWS + 5).block(0))
    ends = [(times_us(block)[0], times_us(block)[-1]) for block in (first, second, last)]
    assert all(before[1] <= after[0] for before, after in pairwise(ends))
    assert first.schema.names == ["ts", "key", "stream", "cost_us", "bytes"]
    assert set(first.column("stream").to_pylist()) == {"s1", "s2", "s3"}
    assert max(last.column("key").to_pylist()) > 500  # fresh keys


def test_threads_that_make_blocks_side_by_side_do_not_disturb_each_other():
    stream = changing(6 * BLOCK_ROWS)
    alone = [stream.block(index).column("key") for index in (0, 5)]
    with ThreadPoolExecutor(2) as threads:
        for _ in range(3):
            both = list(threads.map(lambda index: stream.block(index).column("key"), (0, 5)))
            assert all(one.equals(other) for one, other in zip(both, alone, strict=True))


@pytest.mark.usefixtures("spark")
def test_a_changing_stream_does_not_depend_on_the_tasks_that_make_it(tmp_path):
    stream = changing(BLOCK_ROWS + 1234)
    cuts = [None, [[0, 1]], [[1, 0]]]
    hashes = {
        write_generated(
            stream, tmp_path / f"{at}.trace", Provenance("test"), tasks=tasks, progress=silent
        ).manifest.content_hash
        for at, tasks in enumerate(cuts)
    }
    assert len(hashes) == 1


@pytest.mark.usefixtures("spark")
def test_the_manifest_says_all_that_was_asked_for_and_nothing_else(tmp_path):
    made = generate(self_similar_stream(rows=100, domain=10, variation=ALL), tmp_path / "a.trace").trace.manifest.made
    assert made.parameters["generator"] == "self-similar"
    assert made.parameters["bursts"] == {"factor": 6.0, "every_s": 60.0, "for_s": 10.0}
    assert made.parameters["cost"] == "lognormal(100us, 0.5)"
    assert made.parameters["bytes"] == "pareto(64B, 1.3)"
    plain = generate(self_similar_stream(rows=100, domain=10), tmp_path / "b.trace").trace.manifest.made
    assert not {"diurnal", "bursts", "lags", "drift", "life", "cost", "bytes"} & plain.parameters.keys()


def test_what_cannot_be_is_refused_before_anything_is_made():
    with pytest.raises(UsageError, match="every_s would change ranks"):
        zipf_stream(10**9, 5, rate_per_s=1.0, variation=Variation(drift=Drift(1.0)))
    keys = SelfSimilarKeys(1 << 53)
    with pytest.raises(UsageError, match="life_s is too short"):
        KeyedStream(10**6, keys=keys, rate_per_s=1.0, variation=Variation(life_s=1e-3))
    with pytest.raises(UsageError, match="end after the year 9999"):
        zipf_stream(10**6, 5, rate_per_s=1e-6, variation=Variation(Diurnal(0.1, 1e12)))


@given(st.lists(st.one_of(st.integers(0, 2**63 - 1), st.integers(0, 1000)), max_size=20))
def test_text_keys_are_a_letter_and_the_number(numbers):
    made = keys_of(np.array(numbers, np.int64), "k", KeyType.STRING)
    made.validate(full=True)
    assert made.type == pa.string()
    assert made.to_pylist() == [f"k{number}" for number in numbers]


STREAMS = {"calls": CallStream, "clicks": ClickStream, "sales": SaleStream}


@pytest.mark.parametrize("name", STREAMS)
def test_blocks_are_in_order_whichever_is_made_first_of_preset_streams(name: str) -> None:
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
