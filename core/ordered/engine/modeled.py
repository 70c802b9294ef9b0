"""Inputs of a run of the model, for its memory."""

from dataclasses import dataclass

from adapt.core.ordered.engine.contention import Contention
from adapt.core.ordered.engine.costs import EngineCosts


@dataclass(frozen=True, slots=True)
class Modeled:
    """Inputs of a model, in addition to the chain and the settings.

    Attributes:
        costs_us: Cost of a tuple by operator; None where each tuple has its own.
        selectivities: Outputs per tuple, by operator.
        contention: Time that workers cost each other.
        seed: Random seed; below 2^62.
        engine: Measured costs of the engine; None for the assumed contention.
    """

    costs_us: tuple[float | None, ...]
    selectivities: tuple[float, ...]
    contention: Contention
    seed: int
    engine: EngineCosts | None = None
