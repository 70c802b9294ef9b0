"""Loads of keys and channels in consecutive windows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.out_of_sample.counted_panes import CountedPane
from adapt.core.partitioning.measures.floors import imbalance_floor


@dataclass(frozen=True, slots=True)
class Windows:
    """Loads of a stream in consecutive windows, as placed today."""

    starts_us: tuple[int, ...]  # time of the first row of each window, in microseconds since 1970
    rows: tuple[int, ...]
    keys: pa.Array  # all keys listed in some window, distinct; shape (keys,)
    shares: Floats  # share of each key in the load of each window; shape (keys, windows)
    home: Channels  # channel of each key today; shape (keys,)
    loads: Floats  # share of each channel in the load of each window, as placed today; shape (channels, windows)
    capacities: Floats  # of each channel; shape (channels,)
    floors: Floats  # best possible imbalance of each window with whole keys; shape (windows,)

    def __len__(self) -> int:
        return len(self.starts_us)

    @classmethod
    def from_panes(
        cls,
        panes: Sequence[CountedPane],
        today: Partitioner,
        capacities: Floats | None = None,
        loads: Floats | None = None,
    ) -> "Windows":
        """The loads of counted windows, each with some load.

        Args:
            loads: Load of each channel in each window, as placed today; shape (channels, windows). Without them, load
                on keys that a lossy counter did not list is spread over the channels by capacity.
        """
        each = np.ones(today.channels) if capacities is None else capacities
        keys, shares = _shares(panes)
        home = today.channels_of(keys)
        counts = [pane.frequencies for pane in panes]
        falling = [np.sort(of.count_low[: of.real])[::-1] for of in counts]
        floors = [
            imbalance_floor(heavy, of.total, len(each), capacities) or 1.0
            for heavy, of in zip(falling, counts, strict=True)
        ]
        return cls(
            tuple(pane.start_us for pane in panes),
            tuple(pane.frequencies.rows for pane in panes),
            keys,
            shares,
            home,
            loads_of(home, shares, each) if loads is None else loads / loads.sum(axis=0),
            each,
            np.array(floors),
        )

    def imbalances(self, loads: Floats) -> Floats:
        """Imbalance of channel loads by window; shape (windows,)."""
        return np.asarray((loads / self.capacities[:, None]).max(axis=0) * self.capacities.sum())


def loads_of(placed: Channels, shares: Floats, capacities: Floats) -> Floats:
    """Share of each channel in each window; shape (channels, windows)."""
    channels, windows = len(capacities), shares.shape[1]
    loads = np.empty((channels, windows))
    for at in range(windows):
        loads[:, at] = np.bincount(placed, shares[:, at], channels)
    unlisted = np.maximum(1 - shares.sum(axis=0), 0.0)
    return np.asarray(loads + np.outer(capacities / capacities.sum(), unlisted))


def _shares(panes: Sequence[CountedPane]) -> tuple[pa.Array, Floats]:
    """The distinct keys of all windows, and their shares."""
    chunks = [pane.frequencies.keys[: pane.frequencies.real] for pane in panes]
    encoded = pa.chunked_array(chunks).combine_chunks().dictionary_encode(null_encoding="encode")
    codes, keys = encoded.indices.to_numpy(), encoded.dictionary
    shares = np.zeros((len(keys), len(panes)))
    first = 0
    for at, pane in enumerate(panes):
        end = first + pane.frequencies.real
        shares[codes[first:end], at] = pane.frequencies.count_low[: end - first] / pane.frequencies.total
        first = end
    return keys, shares
