"""Resource functions C, L, Q and the three resources that they weigh."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adapt.core.errors import UsageError

Floats: TypeAlias = NDArray[np.float64]


class ResourceFunction(StrEnum):
    """Beta: what a key of a given count costs a channel, up to a factor that cancels in every ratio.

    Source: partitioning functions, sections 3.1 and 4.4.
    """

    CONSTANT = "C"
    LINEAR = "L"
    QUADRATIC = "Q"

    def of(self, counts: ArrayLike) -> Floats:
        """The cost of each count, same shape.

        A constant function costs 1 even for a count of 0: a window of the last so many tuples is still held for a
        key that has stopped coming.
        """
        values = np.asarray(counts, dtype=np.float64)
        if self is ResourceFunction.CONSTANT:
            return np.ones_like(values)
        return values * values if self is ResourceFunction.QUADRATIC else values


@dataclass(frozen=True, slots=True)
class Resources:
    """How state, computation and network grow with a key's count, and how unevenly they may lie.

    Attributes:
        functions: beta_s, beta_c, beta_n: state, computation, network.
        tolerance: alpha of each, the tolerated load of the fullest channel over the emptiest; finite, >= 1.
        sigma: Part of the tolerated imbalance left to the untracked keys, in (0, 1] (section 4.1.4).
    """

    functions: tuple[ResourceFunction, ResourceFunction, ResourceFunction] = (ResourceFunction.LINEAR,) * 3
    tolerance: tuple[float, float, float] = (1.2, 1.2, 1.2)
    sigma: float = 0.1

    def __post_init__(self) -> None:
        for alpha in self.tolerance:
            if not (math.isfinite(alpha) and alpha >= 1):
                raise UsageError(
                    f"tolerance {alpha:g} is not a number from 1 up: the load of the fullest channel over the"
                    " emptiest; e.g. 1.2"
                )
        if not 0 < self.sigma <= 1:
            raise UsageError(
                f"sigma {self.sigma:g} is not in (0, 1]: the part of the tolerated imbalance left to untracked"
                " keys; e.g. 0.1"
            )

    @classmethod
    def parse(
        cls, letters: str = "LLL", tolerance: float | Sequence[float] | str = 1.2, sigma: float = 0.1
    ) -> "Resources":
        """Resources as a user writes them: "LCL", 1.2 or "1.2,1.5,1.2".

        Raises:
            UsageError: not three letters of C, L, Q; not one or three tolerances from 1 up; sigma not in (0, 1].
        """
        return cls(_functions(letters), _tolerances(tolerance), sigma)

    @property
    def letters(self) -> str:
        """The three letters, e.g. "LCL"."""
        return "".join(self.functions)

    @property
    def state(self) -> ResourceFunction:
        """beta_s, which also prices migration."""
        return self.functions[0]

    @property
    def network(self) -> ResourceFunction:
        """beta_n, by which `imbalance` and the floors are measured."""
        return self.functions[2]


def _functions(letters: str) -> tuple[ResourceFunction, ResourceFunction, ResourceFunction]:
    known = {function.value: function for function in ResourceFunction}
    found = [known[letter] for letter in letters.upper() if letter in known]
    if len(found) != 3 or len(letters) != 3:
        raise UsageError(
            f"resources {letters!r} are not three letters of C, L, Q: state, computation, network; e.g. LLL"
        )
    return found[0], found[1], found[2]


def _tolerances(given: float | Sequence[float] | str) -> tuple[float, float, float]:
    try:
        if isinstance(given, str):
            values = [float(part) for part in given.split(",")]
        else:
            values = [float(part) for part in given] if isinstance(given, Sequence) else [float(given)]
    except ValueError:
        values = []
    if len(values) not in (1, 3):
        raise UsageError(
            f"tolerance {given!r} is not one number or three (state, computation, network); e.g. 1.2 or 1.2,1.5,1.2"
        )
    first, second, third = values * 3 if len(values) == 1 else values
    return first, second, third
