"""CPU time of each row, and a tap on the stream.

It comes from a column or from the row's key, alone or with a spread around it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.core.random_bits import substream, uniforms
from adapt.core.stage.conditions.service_times import Spread
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.world import ROW

_DRAWS = 2**16
"""Draws that rows share."""

_PURPOSE = 0x5E471CE
"""Purpose of the random numbers that assign them."""

Reader: TypeAlias = Callable[[pa.Array, int], NDArray[np.float64]]
"""CPU seconds of rows, given their column and the number of rows before them."""


class Means(Protocol):
    """Mean CPU seconds of rows by a column."""

    @property
    def named(self) -> str:
        """Where service times come from, in a run's parameters."""

    def of(self, column: pa.Array, /) -> NDArray[np.float64]:
        """The mean of each row, shape (rows,)."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyCosts:
    """Mean CPU seconds of keys."""

    named: ClassVar[str] = "keys"

    keys: pa.Array  # the keys, each once
    mean_s: NDArray[np.float64]  # mean of each, shape (keys,)
    others_s: float | None = None  # mean of all other keys; None, the mean over those named

    def __post_init__(self) -> None:
        if not len(self.keys):
            raise BadInput("the file of service times has no keys; add a row for each key")
        if pc.count_distinct(self.keys, mode="all").as_py() < len(self.keys):
            raise BadInput("the service times of keys name a key twice; keep one row for each")
        if not (np.isfinite(self.mean_s).all() and (self.mean_s >= 0).all()):
            raise BadInput("the service time of a key is negative or infinite")

    def of(self, keys: pa.Array) -> NDArray[np.float64]:
        """The mean of each row's key."""
        others_s = self.mean_s.mean() if self.others_s is None else self.others_s
        if pa.types.is_dictionary(keys.type):
            known = self.of(keys.dictionary)
            places = keys.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
            return np.asarray(np.append(known, others_s)[places])
        try:
            named = self.keys.cast(keys.type)
        except pa.ArrowInvalid:
            raise BadInput(f"the service times of keys have {self.keys.type} keys, the trace {keys.type}") from None
        found = pc.index_in(keys, value_set=named).fill_null(len(named)).to_numpy(zero_copy_only=False)
        return np.asarray(np.append(self.mean_s, others_s)[found])


@dataclass(frozen=True, slots=True, eq=False)
class SizeCosts:
    """Mean CPU seconds of rows by their bytes."""

    named: ClassVar[str] = "sizes"

    most_bytes: NDArray[np.int64]  # largest size of each class, ascending; larger rows are in the last
    mean_s: NDArray[np.float64]  # mean of each class

    def of(self, sizes: pa.Array) -> NDArray[np.float64]:
        """The mean of each row's class."""
        found = np.searchsorted(self.most_bytes, amounts(sizes))
        return np.asarray(self.mean_s[np.minimum(found, len(self.mean_s) - 1)])


@dataclass(frozen=True, slots=True)
class StatedCosts:
    """CPU seconds of rows by a column of microseconds."""

    named: ClassVar[str] = "trace"

    factor: float = 1.0  # seconds per second that the column states
    fixed_s: float = 0.0  # seconds of every row on top

    def of(self, micros: pa.Array) -> NDArray[np.float64]:
        """Seconds of each row; a missing number counts as 0."""
        return np.asarray(self.fixed_s + amounts(micros) * (1e-6 * self.factor))


@dataclass(frozen=True, slots=True, eq=False)
class RowCosts:
    """CPU time of each row of a trace."""

    column: str  # the column that decides it
    means: Means = StatedCosts()  # the mean by this column; by default it has microseconds
    spread: Spread | None = None  # spread around the mean; None, none
    seed: int = 0  # seed of the spread
    transport_s: float = 0.0  # seconds of every row on top
    byte_s: float = 0.0  # seconds per byte on top, where the column is the rows' bytes

    @property
    def named(self) -> str:
        """Where service times come from, in a run's parameters."""
        return self.means.named

    def reader(self) -> Reader:
        """A reader for one pass over the rows.

        A row's draw depends on its number and the seed alone.
        """
        if self.spread is None:
            return lambda column, _: self.means.of(column) + self._transport_s(column)
        factors = self.spread.factors(_DRAWS, np.random.default_rng([self.seed, _PURPOSE]))
        stream = substream(self.seed, _PURPOSE)

        def read(column: pa.Array, before: int) -> NDArray[np.float64]:
            drawn = uniforms(stream, np.arange(before, before + len(column)))
            factor = factors[(drawn * _DRAWS).astype(np.int64)]
            return np.asarray(self.means.of(column) * factor + self._transport_s(column))

        return read

    def _transport_s(self, column: pa.Array) -> float | NDArray[np.float64]:
        """Seconds of transport."""
        return self.transport_s + self.byte_s * amounts(column) if self.byte_s else self.transport_s


def amounts(column: pa.Array) -> NDArray[np.float64]:
    """Numbers; a missing one counts as 0."""
    found: NDArray[np.float64] = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return found


_SPARSE = 8
"""Numbers per row up to which rows are sorted by a table of all numbers between the first and the last."""


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """Rows taken by producers, sorted by arrival time and number."""

    partitions: NDArray[np.int32]  # partition of each row, shape (rows,)
    # CPU seconds of each row, with matches in order for a join; negative if unknown. Shape (rows,)
    cost_s: NDArray[np.float64]
    times_s: NDArray[np.float64]  # arrival time of each row, at least that of rows taken earlier; shape (rows,)


class Intake:
    """Records the rows that producers take."""

    def __init__(self, stage: Stage) -> None:
        """Start recording."""
        self._stage = stage
        self._seen: NDArray[np.int64] = np.zeros(stage.settings.workers, np.int64)
        self._parts: list[Records] = []
        self._last_s = 0.0
        stage.on_rows_wanted = self._note

    def take(self) -> Taken:
        """Rows taken since the last call."""
        self._note()
        rows = np.concatenate([np.empty(0, ROW), *self._parts])
        self._parts.clear()
        rows = rows[_by_arrival(rows)]
        times_s = np.maximum(rows["due"], self._last_s)
        self._last_s = float(times_s[-1]) if len(rows) else self._last_s
        return Taken(self._stage.settings.partition_of[rows["group"]], rows["cost"].copy(), times_s)

    def _note(self) -> None:
        """Keep the rows taken before they are overwritten."""
        producers = self._stage.arrays["producer"]
        generated, ends = producers["generated"].copy(), producers["row"]
        taken = generated - self._seen
        if not taken.any():
            return
        self._seen = generated
        source = self._stage.arrays["row"]
        rows = np.concatenate(
            [source[end - more : end] for end, more in zip(ends.tolist(), taken.tolist(), strict=True)]
        )
        recent = self._stage.recent
        if recent is not None and self._stage.settings.join is not None:
            own_s = np.where(rows["cost"] < 0, self._stage.settings.costs.service_s, rows["cost"])
            rows["cost"] = own_s + recent.match_s(rows["number"])
        self._parts.append(rows)


def _by_arrival(rows: Records) -> NDArray[np.int64]:
    """The order of rows by arrival time, then number, shape (rows,)."""
    number, due_s = np.ascontiguousarray(rows["number"]), np.ascontiguousarray(rows["due"])
    first = int(number.min(initial=0))
    if len(rows) and int(number.max()) - first < _SPARSE * len(rows):
        places = np.full(int(number.max()) - first + 1, len(rows))
        places[number - first] = np.arange(len(rows))
        order = places[places < len(rows)]
        sorted_s = due_s[order]
        if len(order) == len(rows) and (sorted_s[1:] >= sorted_s[:-1]).all():
            return order
    return np.lexsort((number, due_s))
