"""Synthetic streams of independent keys."""

import math
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.stream import KeyType
from adapt.core.synthetic.cascade import CascadePath
from adapt.core.synthetic.popularity import SelfSimilarKeys, ZipfKeys, check_drifts, drifted, lived
from adapt.core.synthetic.rates import RatePath, rate_path
from adapt.core.synthetic.variation import Cascade, Variation
from adapt.core.units.settings import SettingError, settings
from adapt.traces.generators.steady import GeneratedRows, coded_keys, random_of, start_us, steady_us
from adapt.traces.store.trace import BLOCK_ROWS

MOST_BYTES = 1 << 62

_ROWS, _STREAMS, _COSTS, _SIZES = (np.uint64(purpose) << np.uint64(60) for purpose in range(4))
"""Added to a block's number, for random numbers that do not depend on whether others are drawn."""


_NAMES: dict[type, str] = {ZipfKeys: "zipf", SelfSimilarKeys: "self-similar"}


class KeyLaw(Protocol):
    """Popularity of keys; a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def domain(self) -> int:
        """Number of keys."""

    def ranks(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Rank, from 1, of each number in [0, 1); shape (rows,)."""


@settings()
class KeyedStream(GeneratedRows):
    """A stream of independent keys.

    Each block of rows has its own random numbers, keyed by (seed, block), and its own range of expected rows, so any
    block can be made on its own. Within a block the arrivals are a Poisson process given their number: sorted uniform
    numbers of expected rows, which the rate turns into times.
    """

    keys: KeyLaw = ZipfKeys()
    variation: Variation = Variation()

    def __post_init__(self) -> None:
        GeneratedRows.__post_init__(self)
        ended_us = self._offset_us(self.rows)
        self.check_end(ended_us)
        self._check_popularity(ended_us / 1e6)

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters that determine the rows, for the manifest."""
        return {
            "generator": _NAMES[type(self.keys)],
            **asdict(self.keys),
            "rows": self.rows,
            "seed": self.seed,
            "rate_per_s": self.rate_per_s,
            "start": self.start,
            "key_type": self.key_type,
            **_given(self.variation),
        }

    def block(self, index: int) -> pa.RecordBatch:
        """Rows of one block, in time order; see `GeneratedStream`."""
        first = index * BLOCK_ROWS
        count = min(BLOCK_ROWS, self.rows - first)
        random = random_of(self.seed, np.uint64(index) | _ROWS)
        offsets = self._offsets_us(random, first, count)
        columns = {
            "ts": pa.array(self._start_us + offsets).cast(pa.timestamp("us", tz="UTC")),
            "key": self._keys(self.keys.ranks(random.random(count)), offsets / 1e6),
        }
        return pa.RecordBatch.from_pydict(columns | self._carried(index, offsets / 1e6))

    def _offsets_us(self, random: np.random.Generator, first: int, count: int) -> NDArray[np.int64]:
        """Arrival times in whole microseconds after the start, sorted."""
        if self.variation.steady:
            begun, ended = self._offset_us(first), self._offset_us(first + count)
            return begun + _sorted_uniforms(random, count, ended - begun)
        # sorted uniform numbers of expected rows
        sums = np.cumsum(random.standard_exponential(count + 1))
        return (self._path.times_s(first + sums[:-1] / sums[-1] * count) * 1e6).astype(np.int64)

    def _keys(self, ranks: NDArray[np.int64], times_s: NDArray[np.float64]) -> pa.Array:
        variation = self.variation
        if variation.drift:
            ranks = drifted(ranks, times_s, self.keys.domain, variation.drift, self.seed)
        if variation.life_s:
            ranks = lived(ranks, times_s, self.keys.domain, variation.life_s, self.seed)
        return coded_keys(ranks, "k", self.key_type)

    def _carried(self, index: int, times_s: NDArray[np.float64]) -> dict[str, pa.Array]:
        """Columns other than key and time."""
        variation, count, number = self.variation, len(times_s), np.uint64(index)
        columns: dict[str, pa.Array] = {}
        if variation.lags.streams > 1:
            drawn = self._path.streams(times_s, random_of(self.seed, number | _STREAMS).random(count))
            columns["stream"] = pc.binary_join_element_wise("s", pa.array(drawn + 1).cast(pa.string()), "")
        if variation.cost:
            columns["cost_us"] = pa.array(variation.cost.draw(random_of(self.seed, number | _COSTS), count))
        if variation.bytes_:
            sizes = np.rint(variation.bytes_.draw(random_of(self.seed, number | _SIZES), count))
            columns["bytes"] = pa.array(np.minimum(sizes, float(MOST_BYTES)).astype(np.int64))
        return columns

    def _check_popularity(self, ended_s: float) -> None:
        if self.variation.drift:
            check_drifts(ended_s, self.variation.drift)
        life_s = self.variation.life_s
        if life_s and (ended_s / life_s + 2) * self.keys.domain >= 1 << 62:
            raise SettingError(Variation, "{life_s} is too short: keys would exceed 64-bit numbers; increase it")

    @property
    def _path(self) -> RatePath | CascadePath:
        return _path_of(self.rows, self.rate_per_s, self.seed, self.variation)

    @property
    def _start_us(self) -> int:
        return start_us(self.start)

    def _offset_us(self, rows: int) -> int:
        """Time at which this number of rows is expected, in whole microseconds after the start."""
        if self.variation.steady:
            return steady_us(rows, self.rate_per_s)
        return math.floor(float(self._path.times_s(np.array([float(rows)]))[0]) * 1e6)


def _given(variation: Variation) -> dict[str, Any]:
    """The features in use, as plain data."""
    parts = {
        "diurnal": variation.diurnal,
        "bursts": variation.bursts,
        "lags": variation.lags if variation.lags.streams > 1 else None,
        "drift": variation.drift,
        "cascade": variation.cascade,
    }
    given: dict[str, Any] = {name: asdict(part) for name, part in parts.items() if part is not None}
    if variation.life_s:
        given["life"] = {"seconds": variation.life_s}
    if variation.cost:
        given["cost"] = variation.cost.text("us")
    if variation.bytes_:
        given["bytes"] = variation.bytes_.text("B")
    return given


@lru_cache(maxsize=1)
def _path_of(rows: int, rate_per_s: float, seed: int, variation: Variation) -> RatePath | CascadePath:
    if variation.cascade:
        return CascadePath.of(variation.cascade, rows, rate_per_s, variation.lags.streams, seed)
    return rate_path(rows, rate_per_s, seed, variation.diurnal, variation.bursts, variation.lags)


def _sorted_uniforms(random: np.random.Generator, count: int, span_us: int) -> NDArray[np.int64]:
    """Sorted times, uniform in [0, span), in whole microseconds.

    The first n of n + 1 running sums of exponential gaps, divided by the last, are n sorted uniform numbers.
    """
    sums = np.cumsum(random.standard_exponential(count + 1))
    times: NDArray[np.int64] = (sums[:-1] / sums[-1] * span_us).astype(np.int64)
    times[times >= span_us] = max(span_us - 1, 0)  # the last gap or the span is 0
    return times


def zipf_stream(
    rows: int,
    domain: int = 1_000_000,
    exponent: float = 1.0,
    seed: int = 0,
    rate_per_s: float = 1000.0,
    start: str = "2026-01-01T00:00:00Z",
    key_type: KeyType = KeyType.STRING,
    variation: Variation | None = None,
) -> KeyedStream:
    """A stream of Zipf keys; see `ZipfKeys` and `KeyedStream` for the parameters.

    Each Spark worker holds 8 bytes per key of the domain.
    """
    return KeyedStream(rows, seed, rate_per_s, start, key_type, ZipfKeys(domain, exponent), variation or Variation())


def self_similar_stream(
    rows: int,
    domain: int = 1_000_000,
    seed: int = 0,
    rate_per_s: float = 1000.0,
    start: str = "2026-01-01T00:00:00Z",
    key_type: KeyType = KeyType.STRING,
    variation: Variation | None = None,
) -> KeyedStream:
    """A stream of self-similar keys; see `SelfSimilarKeys` and `KeyedStream` for the parameters."""
    return KeyedStream(rows, seed, rate_per_s, start, key_type, SelfSimilarKeys(domain), variation or Variation())


ADDRESSES = 10_000


def packet_stream(
    rows: int,
    domain: int = ADDRESSES,
    exponent: float = 1.0,
    seed: int = 0,
    rate_per_s: float = 1000.0,
    start: str = "2026-01-01T00:00:00Z",
    key_type: KeyType = KeyType.STRING,
    variation: Variation | None = None,
) -> KeyedStream:
    """A stream of Zipf keys, the addresses, with self-similar bursts.

    See `Cascade`.
    """
    varying = variation or Variation()
    bursting = replace(varying, cascade=varying.cascade or Cascade())
    return zipf_stream(rows, domain, exponent, seed, rate_per_s, start, key_type, bursting)
