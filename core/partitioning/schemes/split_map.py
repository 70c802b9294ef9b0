"""Split map of a plan: keys with several channels each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.core.keys.columns import ARROW_TYPES, key_type_of
from adapt.core.keys.hashes import HashedKeys
from adapt.core.keys.key_index import KeyIndex
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.phrases import counted
from adapt.core.stream import Key, KeyType


class SplitMap(Mapping[Key, tuple[int, ...]]):
    """Keys whose records are spread over several channels, in key order."""

    column: pa.Array  # the keys, distinct, none of them null; shape (keys,)
    channels: Channels  # the channels of all keys, one key after the other; shape (places,)
    offsets: NDArray[np.int64]  # key i has channels[offsets[i]:offsets[i + 1]]; shape (keys + 1,)

    def __init__(self, channels: Mapping[Key, tuple[int, ...]], key_type: KeyType) -> None:
        """Give each key its channels."""
        for key, places in channels.items():
            if key is None or len(places) < 2 or len(set(places)) < len(places):
                raise BadInput(f"split key {key!r} needs two or more different workers (got {list(places)})")
        self._channels = {key: tuple(channels[key]) for key in sorted(channels)}  # type: ignore[type-var]
        self.column = pa.array(list(self._channels), ARROW_TYPES[key_type])
        self.offsets = np.cumsum([0, *map(len, self._channels.values())])
        self.channels = np.array([each for places in self._channels.values() for each in places], np.int32)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row in `column` of each place; shape (places,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def keys_of_places(self) -> pa.Array:
        """The key of each place; shape (places,)."""
        return self.column.take(pa.array(self.rows))

    def refuse_pinned(self, pinned: Mapping[Key, int]) -> None:
        """Check that no key is pinned too."""
        both = [key for key in self if key in pinned] if self else []
        if both:
            raise BadInput(f"{counted(len(both), 'key')} both pinned and split, such as {both[0]!r}")

    def __getitem__(self, key: Key) -> tuple[int, ...]:
        return self._channels[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._channels)

    def __len__(self) -> int:
        return len(self._channels)

    def __repr__(self) -> str:
        return f"SplitMap({len(self)} keys over {len(self.channels)} places)"

    def __reduce__(self) -> tuple[type["SplitMap"], tuple[dict[Key, tuple[int, ...]], KeyType]]:
        return SplitMap, (self._channels, key_type_of(self.column.type))


@dataclass(frozen=True, slots=True)
class Dealing:
    """Equal parts of the records of keys, by place."""

    rows: NDArray[np.int64]  # the row of each place's key in a column, rising; shape (places,)
    channels: Channels  # its channel, shape (places,)
    share: NDArray[np.float64]  # its share of the key's records, shape (places,)


@dataclass(frozen=True, slots=True)
class SplitPartitioner:
    """Deals the records of split keys to their channels.

    All other keys are placed whole.
    """

    splits: SplitMap
    whole: Partitioner  # the partitioner of the keys that are not split

    @property
    def channels(self) -> int:
        """N, the number of parallel channels."""
        return self.whole.channels

    def channels_of(self, keys: pa.Array) -> Channels:
        """The channel of each key of a column; a split key's first."""
        rows, placed = self.rows_of(keys), self.whole.channels_of(keys).copy()
        placed[rows >= 0] = self.splits.channels[self.splits.offsets[rows[rows >= 0]]]
        return placed

    def channel_of(self, key: Key) -> int:
        """The channel of one key; of a split key its first."""
        return self.splits[key][0] if key in self.splits else self.whole.channel_of(key)

    def rows_of(self, keys: pa.Array) -> NDArray[np.int32]:
        """The row of each key among the split ones, or -1."""
        return KeyIndex(self.splits.column).rows_of(HashedKeys.from_column(keys, HashName.MURMUR3))

    def deal(self, keys: pa.Array) -> Dealing:
        """The places of records, those of split keys in equal parts."""
        rows = self.rows_of(keys)
        parts = np.where(rows >= 0, np.diff(self.splits.offsets, append=0)[rows], 1)
        owners = np.repeat(np.arange(len(keys)), parts)
        channels = np.repeat(self.whole.channels_of(keys), parts)
        first = np.cumsum(parts) - parts
        for row in np.flatnonzero(rows >= 0):
            begin, end = self.splits.offsets[rows[row]], self.splits.offsets[rows[row] + 1]
            channels[first[row] : first[row] + parts[row]] = self.splits.channels[begin:end]
        return Dealing(owners, channels, 1.0 / parts[owners])

    def merge_messages(self) -> NDArray[np.float64]:
        """Messages of one merge on each channel, shape (channels,).

        One per replacement, to the channel of its key.
        """
        home = self.whole.channels_of(self.splits.column)
        return np.bincount(home[self.splits.rows], minlength=self.channels).astype(np.float64)
