"""Rates of generated packets, whose bursts have the same shape at every scale."""

from functools import cache

import numpy as np
import pyarrow as pa

from adapt.core.arrays import Floats
from adapt.core.synthetic.variation import Cascade, Lags, Variation
from adapt.traces.generators.keyed import packet_stream

LINKS = ("s1", "s2")
"""The inputs: two links, each with its own bursts."""

_SECONDS, _RATE_PER_S, _SEED = 1024, 400.0, 0


@cache
def packet_rates() -> Floats:
    """Packets per second by second; shape (seconds, links)."""
    varying = Variation(lags=Lags(len(LINKS)), cascade=Cascade())
    rows = round(_SECONDS * _RATE_PER_S)
    made = packet_stream(rows, seed=_SEED, rate_per_s=_RATE_PER_S, start="1970-01-01", variation=varying).block(0)
    at_s = made.column("ts").cast(pa.int64()).to_numpy() // 1_000_000
    links = made.column("stream").to_numpy(zero_copy_only=False)
    return np.stack([np.bincount(at_s[links == link], minlength=_SECONDS) for link in LINKS], axis=1).astype(np.float64)
