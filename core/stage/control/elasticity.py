"""Workers of a stage come and go: observe, decide, place, migrate, and again.

All workers of the stage are the pool; its workers are the first m of them. Those beyond own no partition and read no
input: producers are read by the workers in turn. A scale step takes on the workers that it needs, builds a plan from
what was counted up to then, moves the partitions that the plan places elsewhere by the movement protocol, portion by
portion, and lets go of the workers that it does not need. While a step is under way nothing else is decided.

The partition is the unit: it is what is counted, what the plan places and what moves, so that routing changes for all
its keys at once when it is restarted. A key that is to be routed by itself is a partition of its own.

Source: partitioning functions, section 4.6 (measure, analyse, plan, activate); ESJ, adaptive workload.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.control.shed_log import Sheddings, Watched
from adapt.core.stage.control.shed_window import HeldTuples
from adapt.core.stage.control.workers import Decision, Scaling, Seen, Waiting
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.input.row_tap import Intake
from adapt.core.stage.movement.controller import Move
from adapt.core.stage.movement.course import Moved
from adapt.core.stage.movement.protocol import Movement


@dataclass(slots=True, eq=False)
class Step:
    """A scale step, or a plan that was built anew.

    Attributes:
        decided_s: When it was decided.
        before: Workers until then.
        after: Workers that it leads to.
        waited: Rows that waited then.
        moves: What it moved.
        done_s: When all had moved; None, they have not.
        caught_up_s: When, after that, no more rows waited than come in a period; None, they still do.
    """

    decided_s: float
    before: int
    after: int
    waited: int
    moves: list[Moved] = field(default_factory=list)
    done_s: float | None = None
    caught_up_s: float | None = None


class Elasticity:
    """Scales a stage from the moment it is made."""

    def __init__(self, stage: Stage, movement: Movement, scaling: Scaling) -> None:
        """The first period begins now.

        Args:
            stage: To which rows come; its partitions are where the placement has them for `scaler.least` workers.
        """
        self._stage = stage
        self._movement = movement
        self._scaling = scaling
        self._intake = Intake(stage)
        self._held = HeldTuples(stage)
        movement.on_moved = self._held.move
        self.workers = scaling.scaler.least
        self.sizes: list[tuple[float, int]] = [(stage.now_s, self.workers)]
        """From when on there were how many workers."""
        self.steps: list[Step] = []
        self._sheddings = Sheddings(stage, self._held.held_s, scaling.period_s)
        self._waiting = Waiting(stage.now_s)
        self._moving = False
        self._idle_s = stage.idle_s()
        self._processed = stage.arrays["worker"]["processed"].copy()
        self._arrivals: list[tuple[float, int]] = [(stage.now_s, 0)]
        self._share_input()
        stage.after(scaling.period_s, self._observe)

    def _observe(self) -> None:
        seen = self._seen()
        for step in self.steps:
            if step.done_s is not None and step.caught_up_s is None and seen.waiting <= seen.arrived:
                step.caught_up_s = seen.at_s
        if not self._moving:
            decision, self._waiting = self._scaling.scaler.decide(seen, self._waiting)
            if decision.workers != self.workers or decision.rebuild:
                self._begin(decision, seen.waiting)
        self._stage.after(self._scaling.period_s, self._observe)

    def _seen(self) -> Seen:
        stage, m = self._stage, self.workers
        taken = self._intake.take()
        self._scaling.placement.count(taken.partitions, taken.cost_s, taken.times_s)
        cost_s = np.where(taken.cost_s < 0, stage.settings.costs.service_s, taken.cost_s)
        loads: NDArray[np.float64] = np.zeros(stage.settings.workers)
        np.add.at(loads, self._owners()[taken.partitions], cost_s)
        idle_s, processed = stage.idle_s(), stage.arrays["worker"]["processed"].copy()
        arrived, (before_s, arrived_before) = stage.arrived(), self._arrivals[-1]
        collected_s = stage.now_s - before_s
        self._arrivals.append((stage.now_s, arrived))
        seen = Seen(
            at_s=stage.now_s,
            collected_s=collected_s,
            workers=m,
            busy_s=np.maximum(0.0, collected_s - (idle_s - self._idle_s)[:m]),
            processed=(processed - self._processed)[:m],
            loads=loads[:m],
            arrived=arrived - arrived_before,
            waiting=arrived - int(processed.sum()) - stage.shed,
            held=self._held.count(),
            offered=self._offered(),
        )
        self._idle_s, self._processed = idle_s, processed
        self._sheddings.note(taken.times_s, m)
        return seen

    def watched(self) -> Watched:
        """What was shed when, up to now."""
        self._sheddings.note(self._intake.take().times_s, self.workers)
        return self._sheddings.watched()

    def _offered(self) -> int:
        """Rows that came to be due while what is held now was taken in, or would have been."""
        since_s = self._stage.now_s - self._held.held_s
        while len(self._arrivals) > 2 and self._arrivals[1][0] <= since_s:
            self._arrivals.pop(0)
        times_s, arrived = np.array(self._arrivals).T
        return round(float(arrived[-1] - np.interp(since_s, times_s, arrived)))

    def _begin(self, decision: Decision, waited: int) -> None:
        """Take on workers, and start to move what the new plan places elsewhere."""
        step = Step(self._stage.now_s, self.workers, decision.workers, waited)
        self.steps.append(step)
        self._moving = True
        if decision.workers > self.workers:
            self._become(decision.workers)
        starts_s = self._scaling.start_s if decision.workers > step.before else 0.0
        self._stage.after(starts_s, lambda: self._place(step))

    def _place(self, step: Step) -> None:
        placed = self._scaling.placement.place(step.after)
        owners = self._owners()
        moving = np.flatnonzero(placed.owners != owners)
        portions = [
            [Move(partition, int(owners[partition]), int(placed.owners[partition])) for partition in portion.tolist()]
            for portion in self._scaling.migration.portions(moving, placed.weights)
        ]
        self._migrate(step, portions)

    def _migrate(self, step: Step, portions: list[list[Move]]) -> None:
        """Move the portions, one after the other."""
        if not portions:
            self._end(step)
            return
        first = len(self._movement.log)
        self._movement.start(portions[0], lambda: self._migrate(step, portions[1:]))
        step.moves += self._movement.log[first:]

    def _end(self, step: Step) -> None:
        if step.after < self.workers:
            self._become(step.after)
        self._share_input()
        step.done_s = self._stage.now_s
        self._moving = False
        self._waiting = Waiting(self._stage.now_s)

    def _become(self, workers: int) -> None:
        self.workers = workers
        self.sizes.append((self._stage.now_s, workers))

    def _share_input(self) -> None:
        """Workers read the input of producers in turn."""
        for producer in range(self._stage.settings.workers):
            self._stage.read_at(producer, producer % self.workers)

    def _owners(self) -> NDArray[np.int32]:
        return np.asarray(self._stage.arrays["partition"]["owner"]).copy()
