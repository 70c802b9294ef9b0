"""Split keys of a plan: keys with several channels each."""

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.keys.partitioner import Channels
from adapt.core.phrases import counted
from adapt.core.stream import Key, KeyType


class SplitKeys(Mapping[Key, tuple[int, ...]]):
    """Keys whose records are spread over several channels, in key order.

    Attributes:
        column: The keys, distinct, none of them null; shape (keys,).
        channels: The channels of all keys, one key after the other; shape (places,).
        offsets: Key i has channels[offsets[i]:offsets[i + 1]]; shape (keys + 1,).
    """

    column: pa.Array
    channels: Channels
    offsets: NDArray[np.int64]

    def __init__(self, channels: Mapping[Key, tuple[int, ...]], key_type: KeyType) -> None:
        """Give each key its channels.

        Raises:
            BadInput: a key is null, or has fewer than two channels or one of them twice.
        """
        for key, places in channels.items():
            if key is None or len(places) < 2 or len(set(places)) < len(places):
                raise BadInput(f"split key {key!r} needs two or more different channels (got {list(places)})")
        self._channels = {key: tuple(channels[key]) for key in sorted(channels)}  # type: ignore[type-var]
        self.column = pa.array(list(self._channels), ARROW_TYPES[key_type])
        self.offsets = np.cumsum([0, *map(len, self._channels.values())])
        self.channels = np.array([each for places in self._channels.values() for each in places], np.int32)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The row in `column` of each place; shape (places,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def keys_of_places(self) -> pa.Array:
        """The key of each place; shape (places,)."""
        return self.column.take(pa.array(self.rows))

    def refuse_pinned(self, pinned: Mapping[Key, int]) -> None:
        """Check that no key is pinned too.

        Raises:
            BadInput: one is.
        """
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
        return f"SplitKeys({len(self)} keys over {len(self.channels)} places)"
