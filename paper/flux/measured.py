"""The experiment behind most figures: one stage, simulated once, and what is kept of what it did."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeAlias

from adapt.core.flux.policies.clairvoyant import ahead_of
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import controller_of
from adapt.core.stage.conditions.arrivals import Drawn
from adapt.core.stage.movement.controller import Controller
from adapt.core.stage.simulate import Simulated
from adapt.core.stage.simulate_tandem import simulate_tandem
from paper.experiments import Data
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
"""delta_min, by the likelier reading of its damaged digits."""

Argument: TypeAlias = int | float | str | bool
"""What a scenario is made from, beside its seed."""

SCENARIOS: Mapping[str, Callable[..., Scenario]] = {
    each.__name__: each
    for each in (unloaded, transient_skew, one_loaded, several_loaded, few_hot, pressed, mixed, crashed, drifting)
}


@dataclass(frozen=True, slots=True)
class StageRun:
    """A stage under a policy.

    Attributes:
        scenario: The name of the function that makes it.
        arguments: What that is given beside the seed, by name.
        policy: Moves partitions.
        collection_s: delta_min; 0 where nothing moves.
        seed: Of everything that is drawn.
        interval_s: How often to take down what the stage does.
    """

    alone: ClassVar[bool] = False
    scenario: str
    arguments: tuple[tuple[str, Argument], ...]
    policy: FluxPolicy
    collection_s: float
    seed: int
    interval_s: float

    @property
    def label(self) -> str:
        """What is measured."""
        given = ", ".join(f"{name} {value}" for name, value in self.arguments)
        return f"{self.scenario} ({given}), {self.policy} {1000 * self.collection_s:g} ms, seed {self.seed}"

    @property
    def needs(self) -> tuple["StageRun", ...]:
        """Nothing."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """What it did, as a `Ran`."""
        scenario = SCENARIOS[self.scenario](seed=self.seed, **dict(self.arguments))
        return Ran.of(scenario, scenario.run(self.controller(scenario), self.interval_s)).as_data()

    def controller(self, scenario: Scenario) -> Controller | None:
        """What moves partitions; the optimum knows the scenario."""
        if self.policy is FluxPolicy.NONE:
            return None
        knows = self.policy is FluxPolicy.OPTIMUM
        ahead = ahead_of(scenario.settings, scenario.source, scenario.memory) if knows else None
        return controller_of(self.policy, self.collection_s, ahead=ahead)


@dataclass(frozen=True, slots=True)
class TandemRun:
    """Two stages in a row.

    Attributes:
        workers: n, of both.
        selectivity: Tuples of the second for each of the first.
        control: What moves partitions: `none`, `each` (a controller for each stage) or `joint` (one for both).
        policy: Of the controllers.
        collection_s: Their least time to collect.
        seconds: How long they run.
        settled_s: From when on rate and moves count.
        seed: Of everything that is drawn.
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
        """What is measured."""
        return f"two stages, control {self.control} by {self.policy} {1000 * self.collection_s:g} ms, seed {self.seed}"

    @property
    def needs(self) -> tuple["TandemRun", ...]:
        """Nothing."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Tuples a second from end to end, the bound on these, moves a minute, and the rate in each second."""
        settings = two_in_a_row(self.workers, self.selectivity, self.seed)
        first, second, joint = (
            controller_of(self.policy, self.collection_s) if self.control == control else None
            for control in ("each", "each", "joint")
        )
        run = simulate_tandem(settings, Drawn(), self.seconds, first=first, second=second, joint=joint)
        return {
            "rate": run.rate(self.settled_s),
            "bound": settings.bound(self.seconds),
            "moves": len(run.first.moves) + len(run.second.moves),
            "late_moves_a_minute": run.moves_a_minute(self.settled_s),
            "rates": [one.throughput / self.selectivity for one in run.second.intervals],
        }


@dataclass(frozen=True, slots=True)
class Seen:
    """An interval of a run.

    Attributes:
        start_s: From.
        end_s: To.
        processed: Tuples.
        operator_s: Seconds from when a consumer takes a tuple until it is processed, added up over these tuples.
        on_disk: Partitions on disk at the end.
        held: Partitions of the workers that are disturbed, at the end.
    """

    start_s: float
    end_s: float
    processed: int
    operator_s: float
    on_disk: int
    held: int

    @property
    def throughput(self) -> float:
        """Tuples a second."""
        return self.processed / (self.end_s - self.start_s)

    @property
    def latency_us(self) -> float | None:
        """Microseconds that a tuple is in the operator, on average; None where there was none."""
        return 1e6 * self.operator_s / self.processed if self.processed else None


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What became of a crash.

    Attributes:
        lost_tuples: Tuples that died with the worker, or are not accounted for.
        lost_state_bytes: State of partitions that began anew.
        takeover_s: From the crash until its partitions had owners again.
        full_rate_s: From the crash until the stage had the full rate of the workers that live.
        protected_s: From the crash until every partition had a twin again.
    """

    lost_tuples: int
    lost_state_bytes: int
    takeover_s: float | None
    full_rate_s: float | None
    protected_s: float | None

    @classmethod
    def of(cls, run: Simulated) -> "Aftermath | None":
        """Of the first crash of a run; None, there was none."""
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
    """What a stage did, interval by interval, and its moves.

    Attributes:
        intervals: In order, without a gap.
        decided_s: When each move was decided.
        transfer_s: From when a state was taken out until it arrived, added up over moves from disturbed workers.
        returns: Moves that bring a partition back to a worker that it has left.
        standby_bytes: What was sent to twins.
        crash: What became of a crash, if there was one.
    """

    intervals: list[Seen]
    decided_s: list[float]
    transfer_s: float
    returns: int
    standby_bytes: int = 0
    crash: Aftermath | None = None

    @classmethod
    def of(cls, scenario: Scenario, run: Simulated) -> "Ran":
        """What is kept of a run."""
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
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Ran":
        """From that."""
        intervals = [Seen(**each) for each in data["intervals"]]
        crash = Aftermath(**data["crash"]) if data["crash"] else None
        return cls(**{**data, "intervals": intervals, "crash": crash})

    @property
    def moves(self) -> int:
        """How many were decided."""
        return len(self.decided_s)

    def latency_us(self, from_s: float) -> float:
        """Microseconds in the operator, on average over the tuples from a time on; infinite where there were none."""
        late = [one for one in self.intervals if one.start_s >= from_s - 1e-9]
        processed = sum(one.processed for one in late)
        return 1e6 * sum(one.operator_s for one in late) / processed if processed else math.inf

    @property
    def lasted_s(self) -> float:
        """How long it was simulated."""
        return self.intervals[-1].end_s

    def by_second(self) -> list[Seen]:
        """The intervals put together to whole seconds, which they must fit into."""
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
    """The workers that load comes to or that lose memory."""
    changes = scenario.memory.changes if scenario.memory else ()
    return {each.worker for each in (*scenario.settings.disturbances, *changes)}
