"""Bursts at every scale: shares of spans as the b-model defines them, and its entropy in the rows."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.synthetic.cascade import MOST_LEVELS, CascadePath
from adapt.core.synthetic.variation import Cascade, Lags, Variation
from adapt.traces.generators.keyed import packet_stream


def times_s(batch):
    return batch.column("ts").cast(pa.int64()).to_numpy() / 1e6


def shares_of(path, level):
    """Share of the rows in each of 2^level spans, from the times at which rows are expected."""
    asked = np.linspace(0, path.rows, 400_001)
    bounds = np.arange(2**level + 1) * (path.span_s / 2**level)
    return np.diff(np.interp(bounds, path.times_s(asked), asked)) / path.rows


def entropy_bits(counts):
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


@pytest.mark.parametrize("bias", [0.5, 0.65, 0.9])
@pytest.mark.parametrize("seed", [0, 7])
def test_spans_of_every_level_have_the_shares_of_the_b_model(bias, seed):
    path = CascadePath.of(Cascade(bias, 1.0), 64_000, 1000.0, 1, seed)
    assert path.levels == 6
    for level in range(1, 7):
        ones = np.array([bin(span).count("1") for span in range(2**level)])
        expected = bias**ones * (1 - bias) ** (level - ones)
        assert np.sort(shares_of(path, level)) == pytest.approx(np.sort(expected), abs=1e-5)


@given(st.floats(0.5, 0.95), st.integers(1, 5), st.integers(0, 2**64 - 1), st.floats(1e-3, 10))
def test_times_rise_with_the_rows_expected_and_stay_within_the_trace(bias, streams, seed, finest):
    path = CascadePath.of(Cascade(bias, finest), 5000, 100.0, streams, seed)
    times = path.times_s(np.linspace(0, 5000, 777))
    assert (np.diff(times) >= 0).all()
    assert (times[0], times[-1]) == (0, pytest.approx(50))


@pytest.mark.parametrize(("bias", "seed"), [(0.6, 1), (0.75, 2)])
def test_the_entropy_of_the_rows_grows_by_the_same_bits_at_every_scale(bias, seed):
    """The entropy plot from which Wang et al. read the bias: a line with the slope of the bias's entropy."""
    rows, streams = 400_000, 2
    batch = packet_stream(
        rows, seed=seed, start="1970-01-01", variation=Variation(lags=Lags(streams), cascade=Cascade(bias, 1.0))
    ).block(0)
    slope = entropy_bits(np.array([bias, 1 - bias]))
    names = batch.column("stream").to_numpy(zero_copy_only=False)
    for stream in ("s1", "s2"):
        at = times_s(batch)[names == stream]
        assert len(at) == pytest.approx(rows / streams, abs=5 * np.sqrt(rows) / 2)
        counts = np.bincount((at / (rows / 1000 / 2**7)).astype(int), minlength=2**7)
        bits = [entropy_bits(counts.reshape(2**level, -1).sum(axis=1)) for level in range(8)]
        assert np.diff(bits) == pytest.approx([slope] * 7, abs=0.01)
    one, other = (np.bincount((times_s(batch)[names == name] / 3.125).astype(int)) for name in ("s1", "s2"))
    assert (one[:128] != other[:128]).mean() > 0.9, "each stream bursts by itself"


def test_bursts_too_fine_for_64_bits_and_other_bursts_are_refused():
    with pytest.raises(UsageError, match="finest_s must be at least"):
        CascadePath.of(Cascade(0.6, 2.0**-MOST_LEVELS), 3, 1.0, 1, 0)
    with pytest.raises(UsageError, match="cannot be combined with"):
        Variation(lags=Lags(2, 5.0), cascade=Cascade())
