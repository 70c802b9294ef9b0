"""Stage simulator against SimPy and plain Python events.

Claims: on 4 workers at least 100 times as fast as SimPy and 20 times as fast as the simplest event loop, with tuple
counts within 0.5 %; on 32 workers at least 4 million tuples per second of CPU time, and 1.5 million with a controller
while a worker is loaded; with state that grows, at least 0.7 of the rate without; with an empirical distribution of
service times and with pauses, at least 0.8 of the rate with the default.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from time import perf_counter, process_time
from types import ModuleType
from typing import Any

import numpy as np
from ratio import cpu_measured, holds, measured
from rich.console import Console
from rich.table import Table

from adapt.core.costs.profile import Pause
from adapt.core.flux.policies.load_policy import LoadBalancing, PacedController
from adapt.core.stage.conditions.arrivals import Chunk, Drawn, Rows
from adapt.core.stage.conditions.faults import ExternalLoad
from adapt.core.stage.conditions.growth import Growth
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.service_times import Spread, SpreadKind
from adapt.core.stage.conditions.settings import Costs, StageSettings, even_groups, even_owners
from adapt.core.stage.simulate import Actors, simulate

WORKERS = 4
SECONDS = 2.0
GROUPS = 16384
PARTITIONS = 64 * WORKERS
WITHIN = 0.005
LATENCY_S = 70e-6
CREDITS = 24
GROWING = 0.7
PROFILED = 0.8


def main() -> int:
    """Run and print all comparisons; 1 if a claim does not hold."""
    met = against("plain events", plain(), at_least=20)
    met &= against("SimPy", simpy_stage(), at_least=100)
    met &= growth()
    met &= growing_state()
    met &= profiled()
    return 0 if met else 1


def stage(workers: int, **changes: Any) -> StageSettings:
    """The paper's stage on some workers."""
    return StageSettings(workers, even_owners(workers, 64), even_groups(GROUPS, workers * 64), **changes)


def against(name: str, theirs: Callable[[], int], at_least: float) -> bool:
    """Run the stage both ways with Exchange's queues.

    Returns how much faster, and whether the tuple counts agree.
    """
    settings = stage(WORKERS, router=Router.EXCHANGE)

    def ours() -> int:
        return simulate(settings, Drawn(), SECONDS).census.processed

    counts = ours(), theirs()
    apart = abs(counts[0] - counts[1]) / counts[1]
    print(f"tuples in {SECONDS:g} s on {WORKERS} workers: {counts[0]:,} and by {name} {counts[1]:,}, {apart:.2%} apart")
    return (
        holds(f"the stage of {WORKERS} workers against {name}", measured(ours, theirs, 3), at_least) and apart <= WITHIN
    )


def draws(seed: int) -> Iterator[tuple[int, float]]:
    """Endless groups and service times."""
    chance = np.random.default_rng(seed)
    while True:
        groups = chance.integers(0, GROUPS, 10_000).tolist()
        yield from zip(groups, chance.normal(45e-6, 3e-6, 10_000).tolist(), strict=True)


def plain() -> Callable[[], int]:
    """The literal stage of the tests, with a buffer of one."""
    literal = _literal()

    class Owners:
        partition = staticmethod(lambda group: group % PARTITIONS)
        worker = staticmethod(lambda partition: partition // 64)

    def run() -> int:
        drawn = draws(0)

        def pull(producer: int, now: float) -> Any:
            group, cost = next(drawn)
            return literal.Item(producer, 0, group, now, cost)

        return len(literal.LiteralStage(WORKERS, Owners, pull, 1, CREDITS, LATENCY_S).run(SECONDS).processed)

    return run


def simpy_stage() -> Callable[[], int]:
    """SimPy program in the style of its examples.

    A process per producer, consumer, and delivery with latency.
    """
    import simpy

    def run() -> int:
        world = simpy.Environment()
        inputs = [simpy.Store(world) for _ in range(WORKERS)]
        credits = [[simpy.Container(world, CREDITS, CREDITS) for _ in range(WORKERS)] for _ in range(WORKERS)]
        processed = 0

        def deliver(worker: int, item: tuple[int, float]) -> Any:
            yield world.timeout(LATENCY_S)
            inputs[worker].put(item)

        def produce(producer: int) -> Any:
            for group, cost in draws(producer):
                worker = group % PARTITIONS // 64
                yield credits[worker][producer].get(1)
                world.process(deliver(worker, (producer, cost)))

        def consume(worker: int) -> Any:
            nonlocal processed
            while True:
                producer, cost = yield inputs[worker].get()
                credits[worker][producer].put(1)
                yield world.timeout(cost + 0.5e-6)
                processed += 1

        for worker in range(WORKERS):
            world.process(produce(worker))
            world.process(consume(worker))
        world.run(until=SECONDS)
        return processed

    return run


@dataclass(frozen=True, slots=True)
class Case:
    """A run of the stage with Flux's queues.

    Attributes:
        workers: Number of workers, n.
        seconds: Simulated seconds.
        controlled: Whether the paper's load policy runs and a worker is loaded from 5 s on (Figure 6).
        at_least: Claimed tuples per second of CPU time; None for no claim.
    """

    workers: int
    seconds: float
    controlled: bool = False
    at_least: float | None = None

    def run(self) -> int:
        """Simulate; returns the tuples processed."""
        settings = stage(self.workers, disturbances=(ExternalLoad(3, 5.0, np.inf),) if self.controlled else ())
        controller = PacedController(LoadBalancing()) if self.controlled else None
        return simulate(settings, Drawn(), self.seconds, Actors(controller)).census.processed


CASES = (
    Case(4, 5),
    Case(32, 1),
    Case(32, 4, at_least=4e6),
    Case(32, 16, at_least=4e6),
    Case(32, 25, controlled=True, at_least=1.5e6),
)


def growth() -> bool:
    """Print tuples per second by size; whether the claims hold."""
    titles = "workers", "controller", "simulated s", "tuples", "M tuples/s of CPU", "of wall", "claimed"
    table = Table(*titles)
    met = True
    for case in CASES:
        tuples, processor_s, wall_s = best_times(case)
        speed = tuples / processor_s
        met &= case.at_least is None or speed >= case.at_least
        table.add_row(
            str(case.workers),
            "load" if case.controlled else "none",
            f"{case.seconds:g}",
            f"{tuples:,}",
            f"{speed / 1e6:.2f}",
            f"{tuples / wall_s / 1e6:.2f}",
            ""
            if case.at_least is None
            else f"{case.at_least / 1e6:g}: {'met' if speed >= case.at_least else 'NOT MET'}",
        )
    Console(width=110).print(table)
    return met


def growing_state() -> bool:
    """The last 300,000 rows as state against a fixed state, both on 32 workers."""
    rows, settings = 2_000_000, stage(32)
    chance = np.random.default_rng(0)
    groups, producers, times = chance.integers(0, GROUPS, rows), chance.integers(0, 32, rows), np.arange(rows)

    def chunks() -> Iterator[Chunk]:
        for first in range(0, rows, 2**18):
            part = slice(first, first + 2**18)
            yield Chunk(groups[part], producers[part], times=times[part])

    def run(settings: StageSettings) -> Callable[[], object]:
        return lambda: simulate(settings, Rows(chunks))

    grown = replace(settings, state=Growth(10, 80, window=300_000))
    return holds("rows of a window as state against a fixed state", cpu_measured(run(grown), run(settings)), GROWING)


def profiled() -> bool:
    """Measured service times, without and with pauses, against the default on 32 workers."""
    sample = np.sort(np.random.default_rng(0).lognormal(np.log(45e-6), 0.3, 1000))
    empirical = Costs(float(sample.mean()), spread=Spread(SpreadKind.EMPIRICAL, sample=sample))
    paused = replace(empirical, pauses=(Pause("gc", 0.05, (1e-3, 5e-3)), Pause("checkpoint", 1.0, (0.02,), True)))

    def run(costs: Costs) -> Callable[[], object]:
        return lambda: simulate(stage(32, costs=costs), Drawn(), 4.0)

    usual = run(Costs(float(sample.mean())))
    met = holds("an empirical distribution against a normal one", cpu_measured(run(empirical), usual), PROFILED)
    return met & holds("the same with pauses", cpu_measured(run(paused), usual), PROFILED)


def best_times(case: Case) -> tuple[int, float, float]:
    """Tuples, and the lowest CPU and wall time of three runs."""
    tuples, times = 0, []
    for _ in range(3):
        wall, processor = perf_counter(), process_time()
        tuples = case.run()
        times.append((process_time() - processor, perf_counter() - wall))
    processor_s, wall_s = (min(each) for each in zip(*times, strict=True))
    return tuples, processor_s, wall_s


def _literal() -> ModuleType:
    path = Path(__file__).parent.parent / "tests" / "core" / "stage" / "literal.py"
    spec = spec_from_file_location("literal", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["literal"] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())
