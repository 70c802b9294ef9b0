"""Scenarios: what is run on an engine, and predicted."""

from dataclasses import dataclass
from enum import StrEnum

from reality.workload import WORKERS


class Engine(StrEnum):
    """What runs a scenario."""

    STAGE = "stage"
    """Worker processes of this machine, `reality/processes`."""

    FLINK = "flink"
    """A standalone cluster of Flink with one TaskManager."""

    SPARK = "spark"
    """A batch job of Spark."""

    STREAMING = "streaming"
    """A stateful query of Structured Streaming."""


class Placement(StrEnum):
    """Where keys are processed."""

    NATURAL = "natural"
    """Where the engine puts them of its own accord."""

    PLAN = "plan"
    """Where a plan of adapt pins them."""


class Kind(StrEnum):
    """What is measured."""

    SATURATED = "saturated"
    """Throughput, with rows as fast as the workers accept them."""

    LOAD = "load"
    """Latency, with rows at a share of that throughput."""

    RESCALE = "rescale"
    """Downtime and latency, with more workers from the middle on."""

    BATCH = "batch"
    """Throughput of a job over all rows."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is run on an engine.

    Attributes:
        share: Of the saturated throughput; 0, as fast as possible.
        workers: At the start.
        after: Workers after a rescale; else as at the start.
        calibrates: Whether predictions of the engine's other scenarios use its measurements.
    """

    engine: Engine
    kind: Kind
    placement: Placement = Placement.NATURAL
    share: float = 0.0
    workers: int = WORKERS
    after: int = WORKERS
    calibrates: bool = False

    @property
    def name(self) -> str:
        """Short name, unique for the engine."""
        match self.kind:
            case Kind.LOAD:
                return f"{self.placement}, {self.share:.0%}"
            case Kind.RESCALE:
                return f"rescale, {self.workers} to {self.after} workers"
            case Kind.BATCH:
                return f"{self.placement}, {self.workers} workers"
            case _:
                return f"{self.placement}, saturated"

    @property
    def saturated(self) -> "Scenario":
        """The scenario whose throughput its load is a share of."""
        return Scenario(self.engine, Kind.SATURATED, self.placement)


SHARES = (0.5, 0.7, 0.9)
"""Loads, as shares of the throughput at saturation."""


def scenarios(engine: Engine, *, quick: bool = False) -> list[Scenario]:
    """All scenarios of an engine, those first that others need."""
    both = (Placement.NATURAL, Placement.PLAN)
    if engine is Engine.SPARK:
        sizes = (WORKERS,) if quick else (WORKERS, WORKERS // 2)
        return [
            Scenario(
                engine,
                Kind.BATCH,
                placement,
                workers=size,
                after=size,
                calibrates=(placement, size) == (both[0], WORKERS),
            )
            for size in sizes
            for placement in both
        ]
    found = [Scenario(engine, Kind.SATURATED, placement) for placement in both]
    for placement in both:
        for share in SHARES[:1] if quick else SHARES:
            calibrates = engine is not Engine.FLINK and (placement, share) == (both[0], SHARES[0])
            found.append(Scenario(engine, Kind.LOAD, placement, share, calibrates=calibrates))
    if engine is Engine.STREAMING:  # the number of its state partitions is fixed by the checkpoint
        return found
    sizes = (WORKERS,) if quick or engine is Engine.STAGE else (WORKERS, WORKERS - 1)
    return found + [
        Scenario(engine, Kind.RESCALE, workers=2, after=size, calibrates=engine is Engine.FLINK and size == WORKERS)
        for size in sizes
    ]
