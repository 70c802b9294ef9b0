"""Whose utilization scaling thresholds watch: busiest worker, mean, or share."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class ScaleOn:
    """Whose utilization the thresholds are compared with.

    Source: ESJ defines tau for a worker, which is `above` = 0, the busiest one; the mean hides it under skew.
    """

    # share of the workers, in (0, 1], that must be at or above a threshold; 0 for one worker. None for the mean of
    # all
    above: float | None = 0.0

    def __post_init__(self) -> None:
        if self.above is not None and not 0 <= self.above <= 1:
            raise UsageError(f"scale-on takes busiest, mean, or a share of workers up to 100% (got {self})")

    @classmethod
    def parse(cls, text: str) -> "ScaleOn":
        """From busiest, mean, or a share such as 25%."""
        named = {"busiest": cls(0.0), "mean": cls(None)}
        if text in named:
            return named[text]
        try:
            if not text.endswith("%"):
                raise ValueError(text)
            return cls(float(text[:-1]) / 100)
        except ValueError:
            raise UsageError(
                f"scale-on takes busiest, mean, or a share of workers such as 25% (got {text!r})"
            ) from None

    def __str__(self) -> str:
        if self.above is None:
            return "mean"
        return f"{100 * self.above:g}%" if self.above else "busiest"

    def of(self, utilizations: NDArray[np.float64]) -> float:
        """The utilization to compare, from that of each worker; shape (workers,)."""
        if self.above is None:
            return float(utilizations.mean())
        rank = max(1, math.ceil(self.above * len(utilizations) * (1 - 1e-12)))
        return float(np.sort(utilizations)[-rank])


BUSIEST = ScaleOn()
"""The default: the busiest worker."""
