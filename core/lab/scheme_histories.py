"""Counted keys, on which a scheme of a user's own is checked."""

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.lab.suite import History, Subject, Trial
from adapt.core.own.own_code import OwnCode
from adapt.core.partitioning.own_scheme import own_pins
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.uniform import UniformPartitioner

CHANNELS = (1, 2, 3, 8, 7, 64)
"""Channel counts, each plan after the one before."""

SHOWN = 3
"""Pinned keys that a counterexample names."""

Pin = Callable[[tuple[Frequencies, UniformPartitioner, HybridPartitioner | None]], ExplicitMap]


def zipf(keys: int, exponent: float) -> Frequencies:
    """Counts that fall with the rank."""
    counts = np.maximum(1, 10**6 / np.arange(1, keys + 1) ** exponent).astype(np.int64)
    names = [None, *(f"key{number}" for number in range(1, keys))]
    return frequencies_of(KeyCounts(pa.array(names, pa.string()), counts, int(counts.sum())))


def growing(keys: int, exponent: float, channels: tuple[int, ...] = CHANNELS) -> History:
    """One stream over several channel counts."""

    def run(pin: Pin) -> Iterable[str]:
        counted, current = zipf(keys, exponent), None
        for count in channels:
            base = UniformPartitioner(count)
            pins = pin((counted, base, current))
            current = HybridPartitioner(pins, base)
            first = [f"{key!r} to {to}" for key, to in list(pins.items())[:SHOWN]]
            digest = int(np.sum(pins.channels * (1.0 + np.arange(len(pins)))))
            yield f"pins {len(pins)} keys to {count} channels ({', '.join(first)}; checksum {digest})"

    return run


def scheme_subject(own: OwnCode) -> Subject:
    """A user's scheme with the streams that it is checked on."""

    def make() -> Pin:
        return lambda given: own_pins(own, given[0], given[1], given[2])

    streams = growing(1, 1.0), growing(5, 0.0), growing(2_000, 1.2)
    return Subject(
        name=own.name,
        make=make,
        possible=Trial("assignments are possible", streams),
        large=Trial("decides in time", (growing(100_000, 1.0, (64, 128)),)),
    )
