"""State of a partition: extraction and installation.

Source: Flux, section 5.1, getPartitionState and installPartitionState.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.records.arrays import Arrays, Records
from adapt.core.stage.records.codes import NONE


@dataclass(frozen=True, slots=True, eq=False)
class PartitionState:
    """State of a partition: windows of groups, or a join's rows."""

    windows: Records  # position and sum of each group's window, shape (groups of the partition,)
    values: NDArray[np.int64]  # values in the windows, shape (groups of the partition, window)
    newest: NDArray[np.int64]  # for a join, the head of each list of rows, shape (groups of the partition, 2)

    @property
    def needed(self) -> NDArray[np.bool_]:
        """Whether the next answer of each group depends on its window."""
        others = np.arange(self.values.shape[1]) != self.windows["place"][:, None]
        return np.asarray((others & (self.values != 0)).any(axis=1))


class States:
    """Extracts and installs states of partitions, of owners and standby replicas."""

    def __init__(self, arrays: Arrays) -> None:
        """View of the arrays of a stage."""
        self._arrays = arrays
        self._window = int(arrays.world["window"])
        partitions = arrays["group"]["partition"]
        self._all = len(partitions)
        self._groups = np.argsort(partitions, kind="stable")
        self._firsts = np.searchsorted(partitions[self._groups], np.arange(int(arrays.world["partitions"]) + 1))

    def copy(self, partition: int, twin: bool = False) -> PartitionState:
        """Copy the state of a partition."""
        groups = self._groups_of(partition, twin)
        windows, past = self._arrays["window"], self._arrays["past"].reshape(-1, max(1, self._window))
        return PartitionState(windows[groups], past["value"][groups], self._newest()[self._joined_of(partition)])

    def take(self, partition: int, twin: bool = False) -> PartitionState:
        """Extract the state of a partition and clear it."""
        taken = self.copy(partition, twin)
        groups = self._groups_of(partition, twin)
        self._arrays["window"][groups] = 0
        self._arrays["past"].reshape(-1, max(1, self._window))[groups] = 0
        self._newest()[self._joined_of(partition)] = NONE
        return taken

    def put(self, partition: int, state: PartitionState, twin: bool = False) -> None:
        """Install the state of a partition, overwriting."""
        groups = self._groups_of(partition, twin)
        self._arrays["window"][groups] = state.windows
        self._arrays["past"].reshape(-1, max(1, self._window))["value"][groups] = state.values
        self._newest()[self._joined_of(partition)] = state.newest

    def groups_of(self, partition: int) -> NDArray[np.int64]:
        """The groups of a partition."""
        return self._groups[self._firsts[partition] : self._firsts[partition + 1]]

    def _newest(self) -> NDArray[np.int64]:
        """List heads by group and side."""
        return self._arrays["newest"]["at"].reshape(-1, 2)

    def _joined_of(self, partition: int) -> NDArray[np.int64]:
        """Groups with lists of a join."""
        return self.groups_of(partition) if self._arrays.world["joins"] else np.empty(0, np.int64)

    def _groups_of(self, partition: int, twin: bool) -> NDArray[np.int64]:
        """Positions of the windows of a partition."""
        if self._window == 0:
            return np.empty(0, np.int64)
        return self.groups_of(partition) + (self._all if twin else 0)
