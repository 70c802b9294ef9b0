"""Load shedding by a FIT planner in front of a stage."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.control import Control
from adapt.core.fit.distributed.messages import Traffic
from adapt.core.fit.network.names import DropPlanner, OperatorKind
from adapt.core.fit.network.network import Input, Network, Node, Operator, Output
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.fit.planners.solver import Observed
from adapt.core.fit.registry import PlannerOptions
from adapt.core.random_bits import substream, uniforms
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.offered_load import Demand

_OF_DROPS = 1 << 40
"""Makes draws of drops differ from others of the same seed."""


@dataclass(frozen=True, slots=True, eq=False)
class PlannedDrops:
    """The share of rows that a planner keeps before each worker.

    The network has a node per worker, with an input and an operator that costs what rows of the worker cost on average.
    Every row is worth the same. At each tick, the planner decides by the rates of the tick before; tables cover the
    highest rates of the stream, and solver-w expects all of them.
    """

    keeps: Floats  # shape (ticks, workers)
    tick_s: float  # planning interval
    sent: Traffic  # messages exchanged to plan
    worker_of: NDArray[np.int32]  # the worker of each group of rows
    seed: int  # random seed of the drops

    @classmethod
    def planned(
        cls, planner: DropPlanner, rows: Rows, demand: Demand, settings: StageSettings, tick_s: float
    ) -> "PlannedDrops":
        """The plans for a stream.

        Args:
            demand: Of all rows.
            settings: The stage.
        """
        worker_of = settings.owners[settings.partition_of]
        tick_us = max(1, round(tick_s * 1e6))
        rates = _rates(rows, demand.last_s, worker_of, settings.workers, tick_us / 1e6)
        network = _network(demand, settings)
        shedding = SheddingSettings(tick_us=tick_us)
        highest = np.where(rates.any(axis=0), rates.max(axis=0), 1.0)
        options = PlannerOptions(shedding, highest, Observed(rates))
        control = Control(network, planner, options, lambda: 0.0)
        control.announce(rates)
        keeps = np.stack([control.decide(each).keeps for each in rates])
        return cls(keeps[:, : settings.workers], tick_us / 1e6, control.sent, worker_of, settings.seed)

    def kept(self, rows: Rows) -> Rows:
        """The rows that are kept, by the seed and their numbers."""
        stream = substream(self.seed, _OF_DROPS)

        def stays(chunk: Chunk, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
            assert chunk.due_s is not None
            ticks = np.minimum((chunk.due_s / self.tick_s).astype(np.int64), len(self.keeps) - 1)
            return np.asarray(uniforms(stream, numbers) < self.keeps[ticks, self.worker_of[chunk.groups]])

        return rows_that_stay(rows, stays)


Stays: TypeAlias = Callable[[Chunk, NDArray[np.int64]], NDArray[np.bool_]]
"""Which rows of a chunk are kept, given their places in the stream."""


def rows_that_stay(rows: Rows, stays: Stays) -> Rows:
    """The rows that are kept, with their places among all."""

    def chunks() -> Iterator[Chunk]:
        first = 0
        for chunk in rows.chunks():
            numbers = np.arange(first, first + len(chunk.groups))
            numbered = chunk if chunk.numbers is not None else replace(chunk, numbers=numbers)
            yield numbered.taken(np.flatnonzero(stays(chunk, numbers)))
            first += len(numbers)

    return Rows(chunks)


def _rates(rows: Rows, last_s: float, worker_of: NDArray[np.int32], workers: int, tick_s: float) -> Floats:
    """Rows/s for each worker, shape (ticks, workers)."""
    ticks = int(last_s / tick_s) + 1
    counts = np.zeros(ticks * workers)
    for chunk in rows.chunks():
        assert chunk.due_s is not None
        at = np.minimum((chunk.due_s / tick_s).astype(np.int64), ticks - 1)
        counts += np.bincount(at * workers + worker_of[chunk.groups], minlength=len(counts))
    return counts.reshape(ticks, workers) / tick_s


def _network(demand: Demand, settings: StageSettings) -> Network:
    """A chain of an input, an operator and an output for each worker."""
    work = demand.rows * settings.costs.service_s if demand.cost_s is None else demand.cost_s
    seconds, rows = (np.bincount(settings.owners, each, settings.workers) for each in (work, demand.rows))
    costs = np.divide(seconds, rows, out=np.full(len(rows), settings.costs.service_s), where=rows > 0)
    numbers = range(settings.workers)
    return Network(
        tuple(Node(f"worker {at}") for at in numbers),
        tuple(Input(f"rows {at}") for at in numbers),
        tuple(
            Operator(
                f"process {at}",
                f"worker {at}",
                OperatorKind.MAP,
                (f"rows {at}",),
                float(costs[at]) + settings.costs.produce_s,
            )
            for at in numbers
        ),
        tuple(Output(f"results {at}", f"process {at}") for at in numbers),
    )
