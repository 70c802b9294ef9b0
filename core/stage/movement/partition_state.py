"""The state of a partition: taken out at one worker, put in at another.

Source: Flux, section 5.1, getPartitionState and installPartitionState.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.records.arrays import Arrays, Records
from adapt.core.stage.records.codes import NONE


@dataclass(frozen=True, slots=True, eq=False)
class PartitionState:
    """The windows of the groups of one partition, or what a join holds of them.

    Attributes:
        windows: Where each group is in its window, and the sum over it, shape (groups of the partition,).
        values: The values in them, shape (groups of the partition, window).
        newest: Of a join, from where each list of rows is found, shape (groups of the partition, 2).
    """

    windows: Records
    values: NDArray[np.int64]
    newest: NDArray[np.int64]

    @property
    def needed(self) -> NDArray[np.bool_]:
        """Whether the next answer depends on any value: on one other than that which it replaces, and not 0."""
        others = np.arange(self.values.shape[1]) != self.windows["place"][:, None]
        return np.asarray((others & (self.values != 0)).any(axis=1))


class States:
    """Takes out and puts in the states of the partitions of a stage, of owners and of twins."""

    def __init__(self, arrays: Arrays) -> None:
        """The states as they lie in the arrays of a stage."""
        self._arrays = arrays
        self._window = int(arrays.world["window"])
        partitions = arrays["group"]["partition"]
        self._all = len(partitions)
        self._groups = np.argsort(partitions, kind="stable")
        self._firsts = np.searchsorted(partitions[self._groups], np.arange(int(arrays.world["partitions"]) + 1))

    def copy(self, partition: int, twin: bool = False) -> PartitionState:
        """The state of a partition, which stays where it is."""
        groups = self._groups_of(partition, twin)
        windows, past = self._arrays["window"], self._arrays["past"].reshape(-1, max(1, self._window))
        return PartitionState(windows[groups], past["value"][groups], self._newest()[self._joined_of(partition)])

    def take(self, partition: int, twin: bool = False) -> PartitionState:
        """The state of a partition, which is gone from where it was."""
        taken = self.copy(partition, twin)
        groups = self._groups_of(partition, twin)
        self._arrays["window"][groups] = 0
        self._arrays["past"].reshape(-1, max(1, self._window))[groups] = 0
        self._newest()[self._joined_of(partition)] = NONE
        return taken

    def put(self, partition: int, state: PartitionState, twin: bool = False) -> None:
        """Install the state of a partition, in place of whatever is there."""
        groups = self._groups_of(partition, twin)
        self._arrays["window"][groups] = state.windows
        self._arrays["past"].reshape(-1, max(1, self._window))["value"][groups] = state.values
        self._newest()[self._joined_of(partition)] = state.newest

    def groups_of(self, partition: int) -> NDArray[np.int64]:
        """The groups of a partition."""
        return self._groups[self._firsts[partition] : self._firsts[partition + 1]]

    def _newest(self) -> NDArray[np.int64]:
        """By group and side."""
        return self._arrays["newest"]["at"].reshape(-1, 2)

    def _joined_of(self, partition: int) -> NDArray[np.int64]:
        """Where the lists of a join are."""
        return self.groups_of(partition) if self._arrays.world["joins"] else np.empty(0, np.int64)

    def _groups_of(self, partition: int, twin: bool) -> NDArray[np.int64]:
        """Where their windows are."""
        if self._window == 0:
            return np.empty(0, np.int64)
        return self.groups_of(partition) + (self._all if twin else 0)
