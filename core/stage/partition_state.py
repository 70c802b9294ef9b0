"""The state of a partition: taken out at one site, put in at another.

Source: Flux, section 5.1, getPartitionState and installPartitionState.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.arrays import Arrays, Records


@dataclass(frozen=True, slots=True, eq=False)
class PartitionState:
    """The windows of the groups of one partition.

    Attributes:
        windows: Where each group is in its window, and the sum over it, shape (groups of the partition,).
        values: The values in them, shape (groups of the partition, window).
    """

    windows: Records
    values: NDArray[np.int64]


class States:
    """Takes out and puts in the states of the partitions of a stage."""

    def __init__(self, arrays: Arrays) -> None:
        """The states as they lie in the arrays of a stage."""
        self._arrays = arrays
        self._window = int(arrays.world["window"])
        partitions = arrays["group"]["partition"]
        self._groups = np.argsort(partitions, kind="stable")
        self._firsts = np.searchsorted(partitions[self._groups], np.arange(int(arrays.world["partitions"]) + 1))

    def take(self, partition: int) -> PartitionState:
        """The state of a partition, which is gone from where it was."""
        groups = self._groups_of(partition)
        windows, past = self._arrays["window"], self._arrays["past"].reshape(-1, max(1, self._window))
        taken = PartitionState(windows[groups], past["value"][groups])
        windows[groups] = 0
        past[groups] = 0
        return taken

    def put(self, partition: int, state: PartitionState) -> None:
        """Install the state of a partition, in place of whatever is there."""
        groups = self._groups_of(partition)
        self._arrays["window"][groups] = state.windows
        self._arrays["past"].reshape(-1, max(1, self._window))["value"][groups] = state.values

    def _groups_of(self, partition: int) -> NDArray[np.int64]:
        if self._window == 0:
            return np.empty(0, np.int64)
        return self._groups[self._firsts[partition] : self._firsts[partition + 1]]
