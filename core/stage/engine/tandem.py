"""Two stages in a row on the same workers.

Tuples emitted by the first stage are sent on by producers of the second on the same workers. The two consumers of a
worker share its CPU, so tuples of both stages wait for each other. A consumer of the first stage blocks while the
second has no room in its buffer: backpressure.

Not in the paper, which leaves several adaptive operators on the same machines as an open question.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.arrivals import Made, Source
from adapt.core.stage.conditions.disturbances import ExternalLoad
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.engine.event_queue import Agenda
from adapt.core.stage.engine.kernel.advance_two import advance_two
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.records.codes import IN_JOB, REACHED, SERVING
from adapt.core.stage.records.workers import CPU


@dataclass(frozen=True, slots=True, eq=False)
class TandemSettings:
    """Two stages over the same workers.

    Attributes:
        first: The stage with the source.
        second: The stage after it, with the same workers, network and disturbances.
        between: Tuples that the first stage emits.
    """

    first: StageSettings
    second: StageSettings
    between: Made = field(default_factory=Made)

    def __post_init__(self) -> None:
        first, second = self.first, self.second
        if first.workers != second.workers:
            raise UsageError(f"both stages need the same number of workers (got {first.workers} and {second.workers})")
        if first.network != second.network or first.disturbances != second.disturbances:
            raise BadInput("both stages need the same network and disturbances")
        if Router.RIVER in (first.router, second.router):
            raise UsageError("two stages in a row need routing by content; use router flux or exchange")
        if first.overload is not None or second.overload is not None:
            raise UsageError("two stages in a row do not support load shedding; omit overload")
        if first.join is not None or second.join is not None:
            raise UsageError("two stages in a row do not support joins; omit join")

    def bound(self, at_s: float) -> float:
        """Upper bound of the throughput, in source tuples per second.

        The capacity of all CPUs: the total speed of the workers over the mean cost of a source tuple and all tuples
        made of it, by the costs of the settings.
        """
        speeds = np.ones(self.first.workers)
        for one in self.first.disturbances:
            if one.start_s <= at_s < one.end_s:
                speeds[one.worker] = one.kept if isinstance(one, ExternalLoad) else one.speed
        first, second = (costs.produce_s + costs.service_s for costs in (self.first.costs, self.second.costs))
        return float(speeds.sum() / (first + self.between.selectivity * second))


class Tandem:
    """Two running stages with one event queue and the same CPUs."""

    def __init__(self, settings: TandemSettings, source: Source, journal: int = 0) -> None:
        """Both stages at time 0; arguments as in `simulate_tandem`.

        Raises:
            BadInput: A disturbance, the group weights or the first rows are invalid.
        """
        self.agenda = Agenda()
        self.first = Stage(settings.first, source, journal, agenda=self.agenda)
        self.second = Stage(settings.second, settings.between, journal, agenda=self.agenda)
        self.first.arrays.put("cpu", np.zeros(settings.first.workers, CPU))
        self._worlds = np.concatenate([stage.arrays.worlds for stage in self.stages])
        for number, stage in enumerate(self.stages):
            stage.arrays.share(self._worlds[number : number + 1])

    @property
    def stages(self) -> tuple[Stage, Stage]:
        """The first and the second stage."""
        return self.first, self.second

    @property
    def now_s(self) -> float:
        """Current simulated time."""
        return self.first.now_s

    def run(self, until_s: float) -> None:
        """Simulate until a time, including the actions scheduled for it."""
        while True:
            why, worker, stage = advance_two(self._worlds, min(self.agenda.next_s, until_s))
            if why != REACHED:
                self.stages[stage].answer(why, worker)
            elif self.agenda.next_s <= until_s:
                self.agenda.take()()
            else:
                return

    def cpu_idle_s(self) -> NDArray[np.float64]:
        """Idle seconds of each CPU since the start, shape (workers,)."""
        cpus = self.first.arrays["cpu"]
        working = [np.isin(stage.arrays["worker"]["doing"], (SERVING, IN_JOB)) for stage in self.stages]
        return np.asarray(cpus["idle"] + np.where(working[0] | working[1], 0.0, self.now_s - cpus["since"]))

    def mean_costs_s(self) -> tuple[float, float]:
        """Mean service time of each stage; 0 before the first tuple."""
        first, second = (
            float(stage.arrays["worker"]["busy"].sum()) / max(1, int(stage.arrays.world["processed"]))
            for stage in self.stages
        )
        return first, second

    def in_between(self) -> int:
        """Tuples emitted by the first stage that wait for the second."""
        return int(self.first.arrays["cpu"]["left"].sum())

    @property
    def drained(self) -> bool:
        """Whether a finite stream and its derived tuples are processed."""
        if not self.first.drained or self.in_between():
            return False
        made = int(self.second.arrays["producer"]["generated"].sum())
        return made == int(self.second.arrays.world["processed"])
