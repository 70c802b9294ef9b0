"""Distributions of costs and sizes, as a user writes them: constant(5), exponential(100), lognormal(100, 0.5)."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError, did_you_mean

_WRITTEN = re.compile(r"\s*([a-z]+)\s*\(([^()]*)\)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Family:
    names: tuple[str, ...]
    above_zero: tuple[bool, ...]
    draw: Callable[..., Floats]


FAMILIES: Mapping[str, _Family] = {
    "constant": _Family(("value",), (False,), lambda _, rows, value: np.full(rows, value)),
    "uniform": _Family(
        ("low", "high"), (False, False), lambda random, rows, low, high: low + (high - low) * random.random(rows)
    ),
    "exponential": _Family(("mean",), (True,), lambda random, rows, mean: mean * random.standard_exponential(rows)),
    "lognormal": _Family(
        ("median", "sigma"),
        (True, False),
        lambda random, rows, median, sigma: median * np.exp(sigma * random.standard_normal(rows)),
    ),
    "pareto": _Family(
        ("least", "exponent"),
        (True, True),
        lambda random, rows, least, exponent: least * np.exp(random.standard_exponential(rows) / exponent),
    ),
}
"""Names of the parameters, which of them are above 0 (the others 0 or more), and how so many values are drawn."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """One of a family, with its parameters.

    Attributes:
        parameters: Their values, in order.
    """

    family: str
    parameters: tuple[float, ...]

    @classmethod
    def parse(cls, option: str, text: str) -> "Distribution":
        """A family's name with its parameters in brackets.

        Raises:
            UsageError: there is no such family, or its parameters are others, or out of their ranges.
        """
        written = _WRITTEN.fullmatch(text)
        if written is None:
            raise UsageError(
                f"{option} {text!r} is no distribution; a generated trace has for example lognormal(100, 0.5)"
            )
        name = written[1].lower()
        if name not in FAMILIES:
            raise UsageError(f"{option} {text!r}: there is no distribution {name!r}{did_you_mean(name, FAMILIES)}")
        family = FAMILIES[name]
        form = f"{name}({', '.join(family.names)})"
        try:
            values = tuple(float(value) for value in written[2].split(","))
        except ValueError:
            raise UsageError(f"{option} {text!r}: write {form} with numbers") from None
        if len(values) != len(family.names):
            raise UsageError(f"{option} {text!r}: write {form}, not {len(values)} parameters")
        for what, value, above in zip(family.names, values, family.above_zero, strict=True):
            if not (math.isfinite(value) and value >= 0 and (value or not above)):
                raise UsageError(f"{option} {text!r}: {what} must be {'above 0' if above else '0 or more'}")
        if name == "uniform" and values[0] > values[1]:
            raise UsageError(f"{option} {text!r}: low is above high")
        return cls(name, values)

    @property
    def text(self) -> str:
        """As `parse` reads it."""
        return f"{self.family}({', '.join(f'{value:.17g}' for value in self.parameters)})"

    def draw(self, random: np.random.Generator, rows: int) -> Floats:
        """So many values, 0 or more; shape (rows,)."""
        return FAMILIES[self.family].draw(random, rows, *self.parameters)
