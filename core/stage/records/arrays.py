"""The arrays of a stage, and the record that finds them."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.records.world import KINDS, WORLD, World

Records: TypeAlias = NDArray[Any]
"""An array of records."""


class Arrays:
    """All that the compiled part keeps, by the names of `KINDS`, and the one record of kind `WORLD` that finds it.

    The record holds addresses, so an array is replaced only by `put`.
    """

    def __init__(self, **arrays: Records) -> None:
        """Arrays by their names, all of `KINDS`; sizes and costs in the world are 0."""
        self.worlds = np.zeros(1, WORLD)
        self._arrays: dict[str, Records] = {}
        for name in KINDS:
            self.put(name, arrays[name])

    @property
    def world(self) -> World:
        """The one record, to read and to change."""
        return self.worlds[0]

    def __getitem__(self, name: str) -> Records:
        """The array of a name."""
        return self._arrays[name]

    def share(self, worlds: Records) -> None:
        """Be found from now on by another record, which must say what the present one does."""
        self.worlds = worlds

    def put(self, name: str, array: Records) -> None:
        """Put an array in the place of one."""
        self._arrays[name] = kept = np.ascontiguousarray(array, KINDS[name])
        self.worlds[f"{name}_at"] = kept.ctypes.data
