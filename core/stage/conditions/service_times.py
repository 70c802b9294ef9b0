"""Distributions of service times, and `--service-time`."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.units.amounts import seconds_of

_LEAST_TAIL = 1.0
"""A Pareto distribution has a mean only with an exponent above it."""

LEAST_MEANS = 2.0
"""Standard deviations from 0 to the mean of a normal distribution of times, at least.

Draws below 0 count as 0: at 2 standard deviations this raises the mean by 0.4 %, at 1 by 8.3 %.
"""


class SpreadKind(StrEnum):
    """Families of distributions."""

    CONSTANT = "constant"
    LOGNORMAL = "lognormal"
    EXPONENTIAL = "exponential"
    PARETO = "pareto"
    EMPIRICAL = "empirical"


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """A distribution of service times over their mean."""

    kind: SpreadKind  # the family
    shape: float = 0.0  # coefficient of variation of a lognormal, exponent of a Pareto distribution
    # measured service times in seconds, ascending; of an empirical distribution
    sample: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    assumed: bool = False  # whether nobody has stated it

    def __post_init__(self) -> None:
        if self.kind is SpreadKind.LOGNORMAL and not 0 <= self.shape < np.inf:
            raise UsageError(f"needs a coefficient of variation of at least 0 (got {self.shape:g})")
        if self.kind is SpreadKind.PARETO and not _LEAST_TAIL < self.shape < np.inf:
            raise UsageError(f"needs an exponent above 1, so that there is a mean (got {self.shape:g})")
        if self.kind is SpreadKind.EMPIRICAL and not (len(self.sample) and self.sample[-1] > 0):
            raise UsageError("needs a service time above 0 in its sample")

    def factors(self, count: int, chance: np.random.Generator) -> NDArray[np.float64]:
        """Draws over their mean, shape (count,); their own mean is 1.

        Draws are stratified, one from each `count`-th of the distribution, so that a table of them has its tail.
        """
        ranks = (chance.permutation(count) + chance.random(count)) / count
        if self.kind is SpreadKind.CONSTANT:
            return np.ones(count)
        if self.kind is SpreadKind.LOGNORMAL:
            drawn = np.exp(np.sqrt(np.log1p(self.shape**2)) * chance.standard_normal(count))
        elif self.kind is SpreadKind.EXPONENTIAL:
            drawn = -np.log1p(-ranks)
        elif self.kind is SpreadKind.PARETO:
            drawn = (1 - ranks) ** (-1 / self.shape)
        else:
            drawn = self.sample[(ranks * len(self.sample)).astype(np.int64)]
        return np.asarray(drawn / drawn.mean())

    def described(self) -> dict[str, Any]:
        """The distribution as JSON data."""
        of: dict[str, Any] = {"kind": self.kind.value, "assumed": self.assumed}
        if self.kind is SpreadKind.LOGNORMAL:
            of["coefficient_of_variation"] = self.shape
        elif self.kind is SpreadKind.PARETO:
            of["exponent"] = self.shape
        elif self.kind is SpreadKind.EMPIRICAL:
            of["measurements"] = len(self.sample)
            of["quantiles_s"] = np.quantile(self.sample, (0.0, 0.5, 0.9, 0.99, 0.999, 1.0)).tolist()
        return of


UNKNOWN = Spread(SpreadKind.LOGNORMAL, 1.0, assumed=True)
"""Where only a mean is known: service times of real operators have a tail."""

NORMAL = "normal"
KEYS = "keys:"
EMPIRICAL = "empirical:"
_CALL = re.compile(r"\s*([a-z]+)\s*\((.*)\)\s*", re.S)
_ARGUMENTS = {
    NORMAL: "the mean and the standard deviation, such as normal(45us, 3us)",
    "constant": "a time, a column or keys:FILE, such as constant(1ms)",
    "exponential": "a time, a column or keys:FILE, such as exponential(1ms)",
    "lognormal": "a mean and the coefficient of variation, such as lognormal(1ms, 1)",
    "pareto": "a mean and the exponent of the tail, such as pareto(1ms, 2.5)",
}


@dataclass(frozen=True, slots=True)
class Service:
    """Mean service time and spread, as one option states them."""

    mean_s: float | None = None  # mean in seconds; None, rows have their own
    sd_s: float | None = None  # standard deviation of a normal distribution in seconds; None, the spread is not normal
    spread: Spread | None = None  # spread around the mean; None, none or normal
    column: str | None = None  # the column of the trace with the mean of each row
    key_file: str | None = None  # the file with the mean of each key
    sample_file: str | None = None  # the file with measured service times

    @classmethod
    def parse(cls, text: str) -> "Service":
        """Read such as 45us, lognormal(1ms, 1), cost_us, lognormal(keys:FILE, 0.5) or empirical:FILE."""
        if text.startswith(EMPIRICAL):
            return cls(sample_file=text.removeprefix(EMPIRICAL))
        call = _CALL.fullmatch(text)
        if call is None:
            alone = _mean(text.strip())
            return cls(mean_s=alone.mean_s, spread=UNKNOWN) if alone.mean_s is not None else alone
        name, arguments = call[1], [part.strip() for part in call[2].split(",")]
        wanted = _ARGUMENTS.get(name)
        if wanted is None:
            raise UsageError(f"{name!r} is not a distribution; choose {', '.join(_ARGUMENTS)} or empirical:FILE")
        if len(arguments) != (1 if name in ("constant", "exponential") else 2) or not all(arguments):
            raise UsageError(f"{text!r} does not fit: {name} takes {wanted}")
        mean = _mean(arguments[0])
        if name == NORMAL:
            if mean.mean_s is None:
                raise UsageError(
                    f"{text!r} has no fixed mean: {name} takes {wanted}; for a mean of each row, choose lognormal"
                )
            sd_s = seconds_of(arguments[1])
            if mean.mean_s < LEAST_MEANS * sd_s:
                raise UsageError(
                    f"{text!r} would give times below 0: its standard deviation must be at most {1 / LEAST_MEANS:g} of "
                    f"its mean; for a wider spread, choose lognormal({arguments[0]}, {sd_s / mean.mean_s:.3g})"
                    if mean.mean_s
                    else f"{text!r} has no service time; choose a mean above 0"
                )
            return cls(mean_s=mean.mean_s, sd_s=sd_s)
        shape = 0.0 if len(arguments) == 1 else _number(name, wanted, arguments[1])
        spread = Spread(SpreadKind(name), shape)
        return cls(mean.mean_s, 0.0 if name == "constant" else None, spread, mean.column, mean.key_file)


def _mean(text: str) -> Service:
    """A duration, a column of the trace, or a file of keys."""
    if text.startswith(KEYS):
        return Service(key_file=text.removeprefix(KEYS))
    if not text[:1].isalpha() and text[:1] != "_":
        return Service(mean_s=seconds_of(text))
    return Service(column=text)


def _number(name: str, wanted: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{text!r} does not fit: {name} takes {wanted}") from None
