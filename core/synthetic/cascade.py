"""Self-similar bursts: a binomial cascade, the b-model of network and disk traffic."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.random_bits import output, substream
from adapt.core.synthetic.variation import Cascade
from adapt.core.units.settings import SettingError

MOST_LEVELS = 50

_CASCADE = 16
"""First random substream; one per stream."""


@dataclass(frozen=True, slots=True, eq=False)
class CascadePath:
    """Expected rows over time, of streams with a cascade each.

    Nothing is stored: the halves of a span are found from its random number.
    """

    bias: float  # as in `Cascade`
    levels: int  # how often the whole span is halved
    rows: float  # expected rows of all streams
    span_s: float  # length in seconds
    seeds: NDArray[np.uint64]  # of the streams, shape (streams,)

    @classmethod
    def of(cls, cascade: Cascade, rows: int, rate_per_s: float, streams: int, seed: int) -> "CascadePath":
        """The path of this many rows, the same number in every stream."""
        span_s = rows / rate_per_s
        levels = max(math.ceil(math.log2(span_s / cascade.finest_s)), 0)
        if levels > MOST_LEVELS:
            least_s = span_s / 2**MOST_LEVELS
            raise SettingError(Cascade, f"{{finest_s}} must be at least {least_s:.3g}s for a trace of {span_s:.3g}s")
        seeds = np.array([substream(seed, _CASCADE + stream) for stream in range(streams)], np.uint64)
        return cls(cascade.bias, levels, float(rows), span_s, seeds)

    def times_s(self, rows: Floats) -> Floats:
        """Times, in seconds, at which rows are expected; shape (rows,)."""
        spans = np.empty(len(rows))
        _spans(np.asarray(rows, float), self.rows, self.bias, self.levels, self.seeds, spans)
        return np.asarray(spans * (self.span_s / 2**self.levels))

    def streams(self, times_s: Floats, uniforms: Floats) -> NDArray[np.int64]:
        """Stream of the row at each time; shape (rows,).

        Args:
            times_s: Shape (rows,).
            uniforms: In [0, 1), one per row.
        """
        spans = np.clip(times_s * (2**self.levels / self.span_s), 0, 2**self.levels - 1).astype(np.int64)
        drawn = np.empty(len(spans), np.int64)
        _streams(spans, uniforms, self.bias, self.levels, self.seeds, drawn)
        return drawn


@inlined
def _left(seed: np.uint64, span: int, bias: float) -> float:
    """Share of the first half of a span; spans are numbered level by level, from 1."""
    return bias if output(seed, np.uint64(span)) >> np.uint64(63) else 1.0 - bias


@compiled
def _spans(rows: Floats, total: float, bias: float, levels: int, seeds: NDArray[np.uint64], spans: Floats) -> None:
    """Where rows are expected, in spans of the last level and parts of them."""
    streams = len(seeds)
    masses, lefts = np.empty(streams), np.empty(streams)
    for at in range(len(rows)):
        into, mass, span = rows[at], total, 1
        masses[:] = total / streams
        for _ in range(levels):
            left = 0.0
            for stream in range(streams):
                lefts[stream] = masses[stream] * _left(seeds[stream], span, bias)
                left += lefts[stream]
            span *= 2
            if into < left:
                masses[:] = lefts
                mass = left
            else:
                into, mass, span = into - left, 0.0, span + 1
                for stream in range(streams):
                    masses[stream] -= lefts[stream]
                    mass += masses[stream]
        spans[at] = span - (1 << levels) + min(max(into / mass, 0.0), 1.0)


@compiled
def _streams(
    spans: NDArray[np.int64],
    uniforms: Floats,
    bias: float,
    levels: int,
    seeds: NDArray[np.uint64],
    drawn: NDArray[np.int64],
) -> None:
    streams = len(seeds)
    masses = np.empty(streams)
    for at in range(len(spans)):
        total = 0.0
        for stream in range(streams):
            mass = 1.0
            for level in range(levels):
                left = _left(seeds[stream], (1 << level) + (spans[at] >> (levels - level)), bias)
                mass *= 1.0 - left if (spans[at] >> (levels - level - 1)) & 1 else left
            masses[stream] = mass
            total += mass
        sought, stream = uniforms[at] * total, 0
        while stream < streams - 1 and sought >= masses[stream]:
            sought -= masses[stream]
            stream += 1
        drawn[at] = stream
