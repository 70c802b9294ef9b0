"""Arrays of a stage, and the record that locates them."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.records.world import KINDS, WORLD, World

Records: TypeAlias = NDArray[Any]
"""An array of records."""


class Arrays:
    """Arrays of the compiled engine, and the record that locates them.

    Arrays have the names of `KINDS`, and the record is a `WORLD`. The record holds addresses, so replace an array only
    by `put`.
    """

    def __init__(self) -> None:
        """Store an empty array of each of `KINDS`, with zero sizes and costs."""
        self.share(np.zeros(1, WORLD))
        self._arrays: dict[str, Records] = {}
        for name in KINDS:
            self.fill(name, 0)

    @property
    def world(self) -> World:
        """The world record, mutable."""
        return self.worlds[0]

    @property
    def now_s(self) -> float:
        """Current simulated time."""
        return self._now.item()

    def __getitem__(self, name: str) -> Records:
        """Array by name."""
        return self._arrays[name]

    def share(self, worlds: Records) -> None:
        """Use another record, which must hold the same values."""
        self.worlds = worlds
        self._now: NDArray[np.float64] = worlds["now"]

    def put(self, name: str, array: Records) -> None:
        """Replace an array."""
        self._arrays[name] = kept = np.ascontiguousarray(array, KINDS[name])
        self.worlds[f"{name}_at"] = kept.ctypes.data

    def fill(self, name: str, size: int, **fields: object) -> None:
        """Replace an array by records with these fields; others are zero."""
        records = np.zeros(size, KINDS[name])
        for field, value in fields.items():
            records[field] = value
        self.put(name, records)
