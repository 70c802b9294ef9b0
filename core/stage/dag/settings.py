"""Settings of a DAG of stages over shared workers."""

from dataclasses import dataclass, field

import numpy as np

from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.capacity import Capacity
from adapt.core.stage.conditions.disturbances import ExternalLoad, SlowDown
from adapt.core.stage.conditions.faults import Crash
from adapt.core.stage.conditions.names import QueueingName, Router
from adapt.core.stage.conditions.settings import StageSettings


@dataclass(frozen=True, slots=True)
class Edge:
    """Tuples emitted to a later stage, partitioned by its key."""

    source: int  # the stage that emits
    target: int  # the stage that receives
    selectivity: float = 1.0  # mean tuples emitted per processed tuple, at least 0

    def __post_init__(self) -> None:
        if not 0 <= self.selectivity < np.inf:
            raise UsageError(f"selectivity must be finite and at least 0 (got {self.selectivity:g})")


@dataclass(frozen=True, slots=True)
class Life:
    """When the query of a stage arrives and leaves, in seconds."""

    from_s: float = 0.0
    until_s: float = np.inf

    def __post_init__(self) -> None:
        if not 0 <= self.from_s < np.inf:
            raise BadInput(f"a query must arrive at 0 s or later (got {self.from_s:g} s)")
        if not self.from_s < self.until_s:
            raise BadInput(f"a query must arrive before it leaves (got {self.from_s:g} and {self.until_s:g} s)")


@dataclass(frozen=True, slots=True, eq=False)
class DagSettings:
    """A DAG of stages over shared workers."""

    # the stages in topological order, with the same workers, network and disturbances. Those without an edge into
    # them have a source
    stages: tuple[StageSettings, ...]
    edges: tuple[Edge, ...] = ()
    # when the query of each stage arrives and leaves; empty, all are there from start to end
    lives: tuple[Life, ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.stages:
            raise BadInput("a DAG needs at least one stage")
        if not self.lives:
            object.__setattr__(self, "lives", (Life(),) * len(self.stages))
        if len(self.lives) != len(self.stages):
            raise BadInput(f"every stage needs a life (got {len(self.lives)} for {len(self.stages)} stages)")
        self._check_sites()
        for edge in self.edges:
            if not 0 <= edge.source < edge.target < len(self.stages):
                raise BadInput(f"an edge must go from a stage to a later one (got {edge.source} to {edge.target})")
            above, below = self.lives[edge.source], self.lives[edge.target]
            if not above.from_s <= below.from_s < below.until_s <= above.until_s:
                raise BadInput(
                    f"stage {edge.target} is there from {below.from_s:g} to {below.until_s:g} s, but its input, stage"
                    f" {edge.source}, from {above.from_s:g} to {above.until_s:g} s"
                )
        if len({(edge.source, edge.target) for edge in self.edges}) < len(self.edges):
            raise BadInput("two edges join the same stages; use one with the sum of both selectivities")
        for target in {edge.target for edge in self.edges}:
            growth = self.stages[target].growth
            if growth is not None and growth.is_ranked:
                raise UsageError("a window of state needs rows with event times; only stages that read a source do")

    @property
    def workers(self) -> int:
        """Number of workers."""
        return self.stages[0].workers

    @property
    def entries(self) -> tuple[int, ...]:
        """Stages without an edge into them."""
        targets = {edge.target for edge in self.edges}
        return tuple(stage for stage in range(len(self.stages)) if stage not in targets)

    def into(self, stage: int) -> tuple[int, ...]:
        """Numbers of the edges into a stage, in sorted order."""
        return tuple(number for number, edge in enumerate(self.sorted_edges()) if edge.target == stage)

    def sorted_edges(self) -> tuple[Edge, ...]:
        """The edges by source, then target."""
        return tuple(sorted(self.edges, key=lambda edge: (edge.source, edge.target)))

    def visits(self) -> tuple[float, ...]:
        """Mean tuples of each stage per tuple of each source."""
        found = [float(stage in self.entries) for stage in range(len(self.stages))]
        for edge in self.sorted_edges():
            found[edge.target] += edge.selectivity * found[edge.source]
        return tuple(found)

    def capacity(self, faults: tuple[ExternalLoad | SlowDown | Crash, ...] = ()) -> Capacity:
        """CPU seconds of all workers over time, with further faults."""
        return Capacity.from_disturbances(self.workers, (*self.stages[0].disturbances, *faults))

    def bound(self, at_s: float) -> float:
        """Upper bound of the throughput of every source, in tuples/s.

        The capacity of all CPUs: the total speed of the workers over the mean cost of a tuple of each source and all
        tuples made of it, by the costs of the settings.
        """
        costs = (of.costs.produce_s + of.costs.service_s for of in self.stages)
        each_s = sum(visits * cost_s for visits, cost_s in zip(self.visits(), costs, strict=True))
        capacity = self.capacity()
        at = int(np.searchsorted(capacity.times_s, at_s, "right")) - 1
        rates = np.append(np.diff(capacity.cpu_s) / np.diff(capacity.times_s), capacity.rate)
        return float(rates[at]) / each_s

    def _check_sites(self) -> None:
        first, *others = self.stages
        for other in others:
            if first.workers != other.workers:
                raise UsageError(
                    f"all stages need the same number of workers (got {first.workers} and {other.workers})"
                )
            if first.network != other.network or first.disturbances != other.disturbances:
                raise BadInput("all stages need the same network and disturbances")
        if any(of.router is Router.RIVER for of in self.stages):
            raise UsageError("a DAG of stages needs routing by content; use router flux or exchange")
        if any(of.overload is not None for of in self.stages):
            raise UsageError("a DAG of stages does not support load shedding; omit overload")
        if any(of.queueing.engine is not QueueingName.FLUX for of in self.stages):
            raise UsageError("a DAG of stages has the queues of flux; omit queueing")
        if any(of.join is not None for of in self.stages):
            raise UsageError("a DAG of stages does not support joins; omit join")
