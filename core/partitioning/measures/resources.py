"""Resources: state, computation and network load of keys."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Counts, Frequencies
from adapt.core.errors import UsageError, did_you_mean
from adapt.core.partitioning.measures.plan_settings import USUAL, PlanSettings, refused
from adapt.core.units.settings import SettingError, same, settings

RESOURCES = ("state", "computation", "network")
"""The three resources, in the order of their letters."""


class ResourceFunction(StrEnum):
    """Beta: the load of a key by its count.

    Source: partitioning functions, sections 3.1 and 4.4.
    """

    CONSTANT = "C"
    LINEAR = "L"
    QUADRATIC = "Q"

    def costs(self, counts: ArrayLike) -> Floats:
        """The cost of each count, same shape.

        A constant function costs 1 even for a count of 0: the window over a key's last tuples stays in state when the
        key no longer occurs.
        """
        values = np.asarray(counts, dtype=np.float64)
        if self is ResourceFunction.CONSTANT:
            return np.ones_like(values)
        return values * values if self is ResourceFunction.QUADRATIC else values


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured load: the sum of a column per key."""

    source: str

    @property
    def value(self) -> str:
        """Its name, as `ResourceFunction.value`."""
        return f"column:{self.source}"


Load: TypeAlias = ResourceFunction | Measured
"""The load of a key on its channel."""


def _not_measured(source: str) -> ArrayLike:
    raise UsageError(f"column {source!r} was not measured")


def load_of(load: Load, counts: ArrayLike, column: Callable[[str], ArrayLike] = _not_measured) -> Floats:
    """The load of keys by their counts and columns; same shape.

    Args:
        column: The values of these keys in a measured column.
    """
    return np.asarray(column(load.source), np.float64) if isinstance(load, Measured) else load.costs(counts)


@settings()
class Resources:
    """Loads and tolerances of state, computation and network.

    Attributes:
        functions: beta_s, beta_c, beta_n: how state, computation and network grow with a key's count.
        tolerance: alpha of each, the tolerated max/min channel load; finite, >= 1.
        sigma: Share of the tolerated imbalance left to the hashed keys, in (0, 1] (section 4.1.4).
        measured: The column that measures each, in place of its function; None without one.
    """

    functions: tuple[ResourceFunction, ResourceFunction, ResourceFunction] = (ResourceFunction.LINEAR,) * 3
    tolerance: tuple[float, float, float] = (1.2, 1.2, 1.2)
    sigma: float = same(PlanSettings, "sigma")
    measured: tuple[str | None, str | None, str | None] = (None, None, None)

    def __post_init__(self) -> None:
        for alpha in self.tolerance:
            if not (math.isfinite(alpha) and alpha >= 1):
                low = f"{{tolerance}} is a max/min load ratio of at least 1, such as 1.2 (got {alpha:g})"
                raise SettingError(Resources, low)

    @classmethod
    def parse(
        cls,
        loads: str = USUAL.resources,
        tolerance: float | Sequence[float] | str = USUAL.tolerance,
        sigma: float = USUAL.sigma,
        measure: Sequence[str] = (),
    ) -> "Resources":
        """Resources as typed: "LCL", 1.2 or "1.2,1.5,1.2", ["state=bytes,computation=cost"].

        Raises:
            UsageError: not three letters; not one or three tolerances from 1 up; sigma not in (0, 1]; or
                `measure` is not RESOURCE=COLUMN.
        """
        return cls(_functions(loads), _tolerances(tolerance), sigma, _measured(measure))

    @property
    def text(self) -> str:
        """The three letters of the functions."""
        return "".join(self.functions)

    @property
    def loads(self) -> tuple[Load, Load, Load]:
        """State, computation and network load: measured, else by count."""
        state, computation, network = (
            function if source is None else Measured(source)
            for function, source in zip(self.functions, self.measured, strict=True)
        )
        return state, computation, network

    @property
    def state(self) -> Load:
        """The state load, by which migration is measured."""
        return self.loads[0]

    @property
    def network(self) -> Load:
        """The network load, by which `imbalance` and the floors are measured."""
        return self.loads[2]

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns that measure resources, each once."""
        return tuple(dict.fromkeys(source for source in self.measured if source is not None))

    @property
    def by_count(self) -> "Resources":
        """The same without measured columns: loads by count."""
        return replace(self, measured=(None, None, None))

    def as_data(self) -> dict[str, Any]:
        """Loads, tolerances and replacing columns, as JSON data."""
        data: dict[str, Any] = {"resources": self.text, "tolerance": list(self.tolerance)}
        measured = {name: source for name, source in zip(RESOURCES, self.measured, strict=True) if source is not None}
        return data | ({"measured": measured} if measured else {})


def _functions(given: str) -> tuple[ResourceFunction, ResourceFunction, ResourceFunction]:
    """The function of each resource, from three letters."""
    if not re.fullmatch("[CLQclq]{3}", given):
        raise refused(
            "{resources} takes three letters of C, L, Q for state, computation and network, such as LLL (got"
            f" {given!r}); for measured loads use {{measure}}"
        )
    state, computation, network = map(ResourceFunction, given.upper())
    return state, computation, network


def _measured(given: Sequence[str]) -> tuple[str | None, str | None, str | None]:
    """The column of each resource, from texts like "state=bytes,computation=cost"."""
    found: dict[str, str] = {}
    for part in (part.strip() for text in given for part in text.split(",")):
        resource, equals, source = (side.strip() for side in part.partition("="))
        if not (resource and equals and source):
            raise refused(f"{{measure}} takes RESOURCE=COLUMN, such as state=bytes (got {part!r})")
        if resource not in RESOURCES:
            raise refused(f"{{measure}} {part}: unknown resource {resource!r}{did_you_mean(resource, RESOURCES)}")
        if found.setdefault(resource, source) != source:
            twice = f"{resource} is measured by {found[resource]!r} already; give one column per resource"
            raise refused(f"{{measure}} {part}: {twice}")
    state, computation, network = (found.get(name) for name in RESOURCES)
    return state, computation, network


def _tolerances(given: float | Sequence[float] | str) -> tuple[float, float, float]:
    try:
        if isinstance(given, str):
            values = [float(part) for part in given.split(",")]
        else:
            values = [float(part) for part in given] if isinstance(given, Sequence) else [float(given)]
    except ValueError:
        values = []
    if len(values) not in (1, 3):
        raise refused(
            "{tolerance} takes one number, or three for state, computation and network, such as 1.2 or 1.2,1.5,1.2 (got"
            f" {given!r})"
        )
    first, second, third = values * 3 if len(values) == 1 else values
    return first, second, third


def listed_loads(frequencies: Frequencies, load: Load) -> Floats:
    """The load of each listed key, shape (keys,)."""
    return load_of(load, frequencies.count_low, lambda source: frequencies.column(source).values)


def loads_at(frequencies: Frequencies, rows: NDArray[np.int32], load: Load) -> Floats:
    """The load of the key in each row.

    Shape (rows,); row -1 is a key that is not listed, of count 0.
    """
    counts = _at(frequencies.count_low, rows)
    return load_of(load, counts, lambda source: _at(frequencies.column(source).values, rows))


def largest_shares(frequencies: Frequencies, resources: Resources, rows: NDArray[np.int32] | None = None) -> Floats:
    """The largest share of each key in any load.

    Shape (keys,) or (rows,).

    This is a key's weight where loads were measured, since a rare key may be large in bytes. Constant resources are
    skipped: they do not tell keys apart.

    Args:
        rows: The rows of keys, -1 for one that is not listed. Default: all listed keys.
    """
    at = np.arange(len(frequencies.keys), dtype=np.int32) if rows is None else rows
    shares = [
        loads_at(frequencies, at, load) * share_of_unit(frequencies, load)
        for load in dict.fromkeys(resources.loads)
        if load is not ResourceFunction.CONSTANT
    ]
    return np.max(shares, axis=0) if shares else np.zeros(len(at))


def share_of_unit(frequencies: Frequencies, load: Load) -> float:
    """The share of one unit in a whole load; 0 without load."""
    whole = whole_load(frequencies, load)
    return 1 / whole if whole > 0 else 0.0


def whole_load(frequencies: Frequencies, load: Load) -> float:
    """The load of all keys.

    For a constant load, and a quadratic one, where rare keys hardly count, that of the listed keys.
    """
    if isinstance(load, Measured):
        return frequencies.column(load.source).total
    return frequencies.total if load is ResourceFunction.LINEAR else float(listed_loads(frequencies, load).sum())


def _at(values: Counts, rows: NDArray[np.int32]) -> Floats:
    """The value in each row, 0 in row -1; shape (rows,)."""
    return np.where(rows >= 0, values[rows], 0).astype(np.float64) if len(values) else np.zeros(len(rows))
