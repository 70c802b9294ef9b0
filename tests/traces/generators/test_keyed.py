"""Synthetic streams that change: any block alone is what it is among the others, and carries what was asked for."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from adapt.core.errors import UsageError
from adapt.core.stream import KeyType
from adapt.core.synthetic.distribution import Distribution
from adapt.core.synthetic.popularity import SelfSimilarKeys
from adapt.core.synthetic.rates import rate_path
from adapt.core.synthetic.variation import Bursts, Diurnal, Drift, Lags, Variation
from adapt.traces.generators.keyed import KeyedStream, self_similar_stream, zipf_stream
from adapt.traces.generators.write import generate, write_generated
from adapt.traces.spark.progress import silent
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.trace import BLOCK_ROWS

ALL = Variation(
    Diurnal(0.7, 600.0),
    Bursts(6.0, 60.0, 10.0),
    Lags(3, 5.0),
    Drift(30.0, 0.2),
    200.0,
    Distribution("lognormal", (100.0, 0.5)),
    Distribution("pareto", (64.0, 1.3)),
)


def times_us(batch):
    return batch.column("ts").cast(pa.int64()).to_numpy()


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
