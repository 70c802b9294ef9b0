"""Symmetry of the search: interchangeable keys and channels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels


@dataclass(frozen=True, slots=True)
class Alike:
    """Groups of equal keys, and how many each channel needs.

    Interchangeable channels may be renumbered in any assignment by the first key on each. Then the j-th of them,
    counted from 0, has none of the first j keys; no other assignment needs to be searched.
    """

    keys: NDArray[np.intp]  # the keys in the order of their groups, shape (keys,)
    sizes: NDArray[np.int64]  # number of keys of each group, shape (groups,)
    # the groups of interchangeable channels, by rising number; unique channels may be missing
    channels: tuple[NDArray[np.intp], ...]
    most: NDArray[np.int64]  # how many keys of each group each channel may have, shape (groups, channels)

    @classmethod
    def from_descriptions(cls, described: Sequence[Floats], channels: Floats, unlike: Channels) -> "Alike":
        """Group keys and channels of equal properties.

        Args:
            described: Properties of keys, loads first; each of shape (keys,).
            channels: A property of channels, shape (channels,).
            unlike: Channels that are unique whatever their property; numbers out of range are ignored.
        """
        columns = np.stack([-described[0], *described[1:]])
        _, of_key, sizes = np.unique(columns, axis=1, return_inverse=True, return_counts=True)
        others = np.setdiff1d(np.arange(len(channels)), unlike)
        alike = tuple(others[channels[others] == each] for each in np.unique(channels[others]))
        before = np.zeros(len(channels), np.int64)
        for group in alike:
            before[group] = np.arange(len(group))
        most = np.where(np.cumsum(sizes)[:, None] > before, sizes[:, None], 0)
        return cls(np.argsort(of_key.reshape(-1), kind="stable"), sizes, alike, most)

    @property
    def heads(self) -> NDArray[np.intp]:
        """One key of each group, shape (groups,)."""
        return np.asarray(self.keys[np.cumsum(self.sizes) - self.sizes])

    def counted(self, placement: Channels) -> NDArray[np.int64]:
        """Number of keys of each group per channel, after renumbering.

        Shape (groups, channels).
        """
        channels = self.most.shape[1]
        placed = placement[self.keys]
        first = np.full(channels, len(placed))
        np.minimum.at(first, placed, np.arange(len(placed)))
        number = np.arange(channels)
        for group in self.channels:
            number[group[np.argsort(first[group], kind="stable")]] = group
        group_of = np.repeat(np.arange(len(self.sizes)), self.sizes)
        counted = np.zeros(self.most.shape, np.int64)
        np.add.at(counted, (group_of, number[placed]), 1)
        return counted

    def placement(self, counted: NDArray[np.int64]) -> Channels:
        """The channel of each key, from numbers per group.

        Earlier keys are on lower channels.
        """
        placed = np.empty(len(self.keys), np.int32)
        groups, channels = counted.shape
        placed[self.keys] = np.repeat(np.tile(np.arange(channels), groups), counted.reshape(-1))
        return placed
