"""Two stages in a row: what is made of the tuples of the first, the producers of the same workers send on in the second.

The two consumers of a worker share its CPU, so that tuples of both stages wait for each other. A consumer of the first
whose worker has no room in the pool of the second stands still: so the second holds back the first.

Not in the paper, which leaves several operators that adapt on the same machines as an open question.
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
        second: The one after it; its workers, network and disturbances are those of the first.
        between: What the second makes of the tuples of the first.
    """

    first: StageSettings
    second: StageSettings
    between: Made = field(default_factory=Made)

    def __post_init__(self) -> None:
        first, second = self.first, self.second
        if first.workers != second.workers:
            raise UsageError(
                f"stages of {first.workers} and {second.workers} workers share none; give both the same workers"
            )
        if first.network != second.network or first.disturbances != second.disturbances:
            raise BadInput("stages that share their workers share network and disturbances; give both the same")
        if Router.RIVER in (first.router, second.router):
            raise UsageError("River sends a tuple to any worker, so no stage after it can be told apart; use Flux")
        if first.overload is not None or second.overload is not None:
            raise UsageError("two stages in a row do not shed; leave the shed factor away")
        if first.join is not None or second.join is not None:
            raise UsageError("two stages in a row do not join; leave the join away")

    def bound(self, at_s: float) -> float:
        """Tuples of the source that all CPU together could process in a second: what no placement can exceed.

        The speeds of all workers at a time, over the mean cost of making and processing a tuple and all that is made of
        it. Costs are those of the settings, not of rows that bring their own.
        """
        speeds = np.ones(self.first.workers)
        for one in self.first.disturbances:
            if one.start_s <= at_s < one.end_s:
                speeds[one.worker] = one.kept if isinstance(one, ExternalLoad) else one.speed
        first, second = (costs.produce_s + costs.service_s for costs in (self.first.costs, self.second.costs))
        return float(speeds.sum() / (first + self.between.selectivity * second))


class Tandem:
    """Two stages that run on one agenda and the same CPUs."""

    def __init__(self, settings: TandemSettings, source: Source, journal: int = 0) -> None:
        """Both stages at time 0; the arguments are those of `simulate_tandem`.

        Raises:
            BadInput: a disturbance, the shares of groups or the first rows cannot be.
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
        """The first and the second."""
        return self.first, self.second

    @property
    def now_s(self) -> float:
        """The time."""
        return self.first.now_s

    def run(self, until_s: float) -> None:
        """Let everything happen until a time; what is on the agenda for that time is done."""
        while True:
            why, worker, stage = advance_two(self._worlds, min(self.agenda.next_s, until_s))
            if why != REACHED:
                self.stages[stage].answer(why, worker)
            elif self.agenda.next_s <= until_s:
                self.agenda.take()()
            else:
                return

    def cpu_idle_s(self) -> NDArray[np.float64]:
        """How long each CPU has had no work since the start, shape (workers,)."""
        cpus = self.first.arrays["cpu"]
        working = [np.isin(stage.arrays["worker"]["doing"], (SERVING, IN_JOB)) for stage in self.stages]
        return np.asarray(cpus["idle"] + np.where(working[0] | working[1], 0.0, self.now_s - cpus["since"]))

    def mean_costs_s(self) -> tuple[float, float]:
        """What a tuple of each stage has taken its consumer on average since the start; 0 if none was processed."""
        first, second = (
            float(stage.arrays["worker"]["busy"].sum()) / max(1, int(stage.arrays.world["processed"]))
            for stage in self.stages
        )
        return first, second

    def in_between(self) -> int:
        """Tuples that were made, and for which the second stage has had no room."""
        return int(self.first.arrays["cpu"]["left"].sum())

    @property
    def drained(self) -> bool:
        """Whether a stream has ended, and all its rows and all that was made of them are processed."""
        if not self.first.drained or self.in_between():
            return False
        made = int(self.second.arrays["producer"]["generated"].sum())
        return made == int(self.second.arrays.world["processed"])
