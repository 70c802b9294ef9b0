"""Distributions of costs and sizes: constant(5us), exponential(100us), uniform(100B, 2kB)."""

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
    amounts: int
    above_zero: tuple[bool, ...]
    draw: Callable[..., Floats]


FAMILIES: Mapping[str, _Family] = {
    "constant": _Family(("value",), 1, (False,), lambda _, rows, value: np.full(rows, value)),
    "uniform": _Family(
        ("low", "high"), 2, (False, False), lambda random, rows, low, high: low + (high - low) * random.random(rows)
    ),
    "exponential": _Family(("mean",), 1, (True,), lambda random, rows, mean: mean * random.standard_exponential(rows)),
    "lognormal": _Family(
        ("median", "sigma"),
        1,
        (True, False),
        lambda random, rows, median, sigma: median * np.exp(sigma * random.standard_normal(rows)),
    ),
    "pareto": _Family(
        ("least", "exponent"),
        1,
        (True, True),
        lambda random, rows, least, exponent: least * np.exp(random.standard_exponential(rows) / exponent),
    ),
}
"""Parameter names, how many of them (the first) are amounts with a unit, which must be above 0, and the sampler."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution family and its parameters."""

    family: str  # its name in `FAMILIES`
    parameters: tuple[float, ...]  # their values, in order; amounts in microseconds or bytes

    @classmethod
    def parse(cls, text: str, amount: Callable[[str], float]) -> "Distribution":
        """Read a family's name with its parameters in parentheses.

        Args:
            amount: Reads an amount with its unit: `micros_of` or `bytes_of`.
        """
        given = repr(text)
        written = _WRITTEN.fullmatch(text)
        name = written[1].lower() if written else text
        if written is None or name not in FAMILIES:
            raise UsageError(f"{given} is not a distribution{did_you_mean(name, FAMILIES)}")
        family = FAMILIES[name]
        texts = [each.strip() for each in written[2].split(",")]
        if len(texts) != len(family.names):
            raise UsageError(f"{given} must be {name}({', '.join(family.names)}) (got {len(texts)} parameters)")
        values = []
        for at, (what, each, above) in enumerate(zip(family.names, texts, family.above_zero, strict=True)):
            try:
                value = amount(each) if at < family.amounts else float(each)
            except UsageError as error:
                raise UsageError(f"{given}: {what} {error}") from None
            except ValueError:
                raise UsageError(f"{given}: {what} must be a number (got {each!r})") from None
            if not (math.isfinite(value) and value >= 0 and (value or not above)):
                raise UsageError(f"{given}: {what} must be {'above 0' if above else '0 or more'} (got {each})")
            values.append(value)
        if name == "uniform" and values[0] > values[1]:
            raise UsageError(f"{given}: low must not be above high")
        return cls(name, tuple(values))

    def text(self, unit: str) -> str:
        """The text that `parse` reads, in this unit (us or B)."""
        amounts = FAMILIES[self.family].amounts
        written = (f"{value:.17g}{unit if at < amounts else ''}" for at, value in enumerate(self.parameters))
        return f"{self.family}({', '.join(written)})"

    def draw(self, random: np.random.Generator, rows: int) -> Floats:
        """Draw values, 0 or more; shape (rows,)."""
        return FAMILIES[self.family].draw(random, rows, *self.parameters)
