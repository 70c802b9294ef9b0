"""Experiments on simulated stages, and their stored results."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeAlias

from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import controller_of
from adapt.core.stage.conditions.arrivals import Drawn, Made
from adapt.core.stage.dag.simulation import DagControl, simulate_dag
from adapt.core.stage.movement.controller import Controller
from adapt.core.stage.simulate import Simulated
from paper.experiments import Data
from paper.flux.beyond import Compared, controller_for
from paper.flux.scenarios import (
    Scenario,
    crashed,
    drifting,
    few_hot,
    mixed,
    one_loaded,
    ping_pongs,
    pressed,
    several_loaded,
    transient_skew,
    two_in_a_row,
    unloaded,
)

COLLECTION_S = 0.15
"""delta_min, by the more likely reading of its damaged digits."""

Argument: TypeAlias = int | float | str | bool
"""Arguments of a scenario, except its seed."""

SCENARIOS: Mapping[str, Callable[..., Scenario]] = {
    each.__name__: each
    for each in (unloaded, transient_skew, one_loaded, several_loaded, few_hot, pressed, mixed, crashed, drifting)
}


@dataclass(frozen=True, slots=True)
class StageRun:
    """A simulated stage with a policy.

    Attributes:
        scenario: Name of the function that builds it.
        arguments: Its arguments by name, except the seed.
        policy: Policy that moves partitions.
        collection_s: delta_min; 0 without moves.
        seed: Random seed.
        interval_s: Length of the recorded intervals.
    """

    alone: ClassVar[bool] = False
    scenario: str
    arguments: tuple[tuple[str, Argument], ...]
    policy: Compared
    collection_s: float
    seed: int
    interval_s: float

    @property
    def label(self) -> str:
        """Description of the run."""
        given = ", ".join(f"{name} {value}" for name, value in self.arguments)
        return f"{self.scenario} ({given}), {self.policy} {1000 * self.collection_s:g} ms, seed {self.seed}"

    @property
    def needs(self) -> tuple["StageRun", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Simulate; the result is the data of a `Ran`."""
        scenario = SCENARIOS[self.scenario](seed=self.seed, **dict(self.arguments))
        return Ran.of(scenario, scenario.run(self.controller(scenario), self.interval_s)).as_data()

    def controller(self, scenario: Scenario) -> Controller | None:
        """Controller that moves partitions."""
        return controller_for(self.policy, self.collection_s, scenario)


@dataclass(frozen=True, slots=True)
class TandemRun:
    """Two stages in sequence.

    Attributes:
        workers: Number of workers of both, n.
        selectivity: Tuples of the second stage per tuple of the first.
        control: `none`, `each` (a controller per stage) or `joint` (one controller for both).
        policy: Policy of the controllers.
        collection_s: Their minimum collection time.
        seconds: Length of the run.
        settled_s: Start of the measurement of rate and moves.
        seed: Random seed.
    """

    alone: ClassVar[bool] = False
    workers: int
    selectivity: float
    control: str
    policy: FluxPolicy
    collection_s: float
    seconds: float
    settled_s: float
    seed: int

    @property
    def label(self) -> str:
        """Description of the run."""
        return f"two stages, control {self.control} by {self.policy} {1000 * self.collection_s:g} ms, seed {self.seed}"

    @property
    def needs(self) -> tuple["TandemRun", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Rate, its bound, moves per minute, and rates by second."""
        settings = two_in_a_row(self.workers, self.selectivity, self.seed)
        made = [controller_of(self.policy, self.collection_s) for _ in settings.stages]
        controls = {"each": DagControl(each=made), "joint": DagControl(made[0])}
        run = simulate_dag(settings, (Drawn(), Made()), self.seconds, controls.get(self.control))
        return {
            "rate": run.rate(self.settled_s),
            "bound": settings.bound(self.seconds),
            "moves": sum(len(one.moves) for one in run.stages),
            "late_moves_a_minute": run.moves_a_minute(self.settled_s),
            "rates": [one.throughput / self.selectivity for one in run.stages[1].intervals],
        }


@dataclass(frozen=True, slots=True)
class Seen:
    """An interval of a run.

    Attributes:
        start_s: Start.
        end_s: End.
        processed: Tuples processed.
        operator_s: Time from when a consumer takes a tuple until it is processed, summed over these tuples.
        on_disk: Partitions on disk at the end.
        held: Partitions of the disturbed workers at the end.
    """

    start_s: float
    end_s: float
    processed: int
    operator_s: float
    on_disk: int
    held: int

    @property
    def throughput(self) -> float:
        """Tuples per second."""
        return self.processed / (self.end_s - self.start_s)

    @property
    def latency_us(self) -> float | None:
        """Mean microseconds of a tuple in the operator; None without tuples."""
        return 1e6 * self.operator_s / self.processed if self.processed else None


@dataclass(frozen=True, slots=True)
class Aftermath:
    """Consequences of a crash.

    Attributes:
        lost_tuples: Tuples lost with the worker, or not accounted for.
        lost_state_bytes: State of partitions that restarted empty.
        takeover_s: From the crash until its partitions had owners again.
        full_rate_s: From the crash until the stage reached the full rate of the remaining workers.
        protected_s: From the crash until every partition had a twin again.
    """

    lost_tuples: int
    lost_state_bytes: int
    takeover_s: float | None
    full_rate_s: float | None
    protected_s: float | None

    @classmethod
    def of(cls, run: Simulated) -> "Aftermath | None":
        """Consequences of the first crash of a run; None without a crash."""
        if not run.crashes:
            return None
        report = run.crashes[0]
        protected = None if report.protected_s is None else report.protected_s - report.crash.at_s
        return cls(
            lost_tuples=report.lost_tuples + (not run.census.whole) + run.disagreed,
            lost_state_bytes=report.lost_state_bytes,
            takeover_s=report.takeover_s,
            full_rate_s=report.full_rate_s,
            protected_s=protected,
        )


@dataclass(frozen=True, slots=True)
class Ran:
    """Measurements of a stage by interval, and its moves.

    Attributes:
        intervals: Intervals in order, without gaps.
        decided_s: Times at which moves were decided.
        transfer_s: From when a state was extracted until it arrived, summed over moves from disturbed workers.
        returns: Moves that bring a partition back to a worker it has left.
        standby_bytes: Bytes sent to twins.
        crash: Consequences of a crash, if any.
    """

    intervals: list[Seen]
    decided_s: list[float]
    transfer_s: float
    returns: int
    standby_bytes: int = 0
    crash: Aftermath | None = None

    @classmethod
    def of(cls, scenario: Scenario, run: Simulated) -> "Ran":
        """Measurements of a run."""
        disturbed = sorted(_disturbed(scenario))
        return cls(
            intervals=[
                Seen(
                    start_s=one.start_s,
                    end_s=one.end_s,
                    processed=one.processed,
                    operator_s=one.operator.sum_s,
                    on_disk=one.on_disk,
                    held=int(one.partitions[disturbed].sum()),
                )
                for one in run.intervals
            ],
            decided_s=[moved.times_s["decided"] for moved in run.moves],
            transfer_s=sum(
                moved.times_s["received"] - moved.times_s["extracted"]
                for moved in run.moves
                if moved.move.donor in disturbed and "received" in moved.times_s
            ),
            returns=ping_pongs(run),
            standby_bytes=run.standby_bytes,
            crash=Aftermath.of(run),
        )

    def as_data(self) -> dict[str, Any]:
        """Measurements as JSON data."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Ran":
        """Measurements from JSON data."""
        intervals = [Seen(**each) for each in data["intervals"]]
        crash = Aftermath(**data["crash"]) if data["crash"] else None
        return cls(**{**data, "intervals": intervals, "crash": crash})

    @property
    def moves(self) -> int:
        """Number of moves decided."""
        return len(self.decided_s)

    def latency_us(self, from_s: float) -> float:
        """Mean microseconds in the operator from a time on.

        Infinite without tuples.
        """
        late = [one for one in self.intervals if one.start_s >= from_s - 1e-9]
        processed = sum(one.processed for one in late)
        return 1e6 * sum(one.operator_s for one in late) / processed if processed else math.inf

    @property
    def lasted_s(self) -> float:
        """Simulated seconds."""
        return self.intervals[-1].end_s

    def by_second(self) -> list[Seen]:
        """The intervals merged into seconds, which they must divide."""
        seconds: dict[int, list[Seen]] = {}
        for one in self.intervals:
            seconds.setdefault(int(one.start_s + 1e-9), []).append(one)
        return [
            Seen(
                start_s=parts[0].start_s,
                end_s=parts[-1].end_s,
                processed=sum(each.processed for each in parts),
                operator_s=sum(each.operator_s for each in parts),
                on_disk=parts[-1].on_disk,
                held=parts[-1].held,
            )
            for parts in seconds.values()
        ]


def _disturbed(scenario: Scenario) -> set[int]:
    """The workers that get load or lose memory."""
    changes = scenario.memory.changes if scenario.memory else ()
    return {each.worker for each in (*scenario.settings.disturbances, *changes)}
