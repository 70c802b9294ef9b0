"""Runs of scenarios: kept one by one, so that an interrupted set goes on."""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import adapt
from adapt.traces.store.atomic import replace_whole
from reality.engines.running import Engine as Started
from reality.engines.running import Runner
from reality.noise import beside
from reality.predictions import SCHEME_OF
from reality.scenarios import Engine, Kind, Scenario
from reality.workload import Workload


@dataclass(frozen=True, slots=True)
class Kept:
    """Runs in a folder, a JSON file each."""

    folder: Path

    def runs(self, scenario: Scenario) -> list[dict[str, Any]]:
        """Finished runs of a scenario, in their order."""
        return [json.loads(path.read_bytes()) for path in sorted(self._folder(scenario).glob("*.json"))]

    def keep(self, scenario: Scenario, number: int, run: Mapping[str, Any]) -> None:
        """Write a run atomically."""
        folder = self._folder(scenario)
        folder.mkdir(parents=True, exist_ok=True)
        replace_whole(folder / f"{number}.json", json.dumps(run, indent=1, allow_nan=False).encode())

    def rate(self, workload: Workload, scenario: Scenario) -> float:
        """Rows per second of a scenario; 0, as fast as possible.

        A load is a share of the median throughput measured at saturation; a rescale has 85 % of what the workers at its
        start could do by stated costs.
        """
        if scenario.kind is Kind.LOAD:
            found = [run["metrics"]["throughput"] for run in self.runs(scenario.saturated)]
            return round(float(scenario.share * median(found)), 1)
        if scenario.kind is Kind.RESCALE:
            return round(0.85 * capacity(workload, scenario), 1)
        return 0.0

    def _folder(self, scenario: Scenario) -> Path:
        return self.folder / scenario.engine / scenario.name.replace(", ", "-").replace(" ", "-").replace("%", "")


def capacity(workload: Workload, scenario: Scenario) -> float:
    """Rows per second of the workers at the start, by stated costs.

    That of the busiest worker by the engine's placement; the stage begins with a plan that balances them.
    """
    if scenario.engine is Engine.STAGE:
        return scenario.workers / float(workload.costs_s.mean())
    plan = adapt.read_plan(workload.plan(SCHEME_OF[scenario.engine], scenario.placement, scenario.workers))
    return float(len(workload.keys) / np.bincount(adapt.route(plan, workload.keys), workload.costs_s).max())


def measure(
    engine: Started, wanted: Iterable[Scenario], runs: int, workload: Workload, kept: Kept, tell: Callable[[str], None]
) -> None:
    """Run what is missing; the engine starts only if something is.

    The runs of a scenario are spread over the whole time, so that a busy minute of the machine spoils one of each.
    """
    ordered = list(wanted)
    with ExitStack() as stack:
        runner: Runner | None = None
        for number in range(runs):
            for scenario in ordered:
                if number < len(kept.runs(scenario)):
                    continue
                if runner is None:
                    folder = kept.folder.parent / "work" / scenario.engine
                    runner = stack.enter_context(engine.started(workload, folder))
                rate = _settled_rate(kept, workload, scenario)
                noise: dict[str, float] = {}
                with beside(noise):
                    run = runner.run(scenario, rate)
                kept.keep(scenario, number, {"rate": rate, "noise": noise, **run})
                told = ", ".join(
                    f"{name} {value:.4g}" for name, value in run["metrics"].items() if "worker" not in name
                )
                tell(f"{scenario.engine}, {scenario.name}, run {number + 1} of {runs}: {told}")


def _settled_rate(kept: Kept, workload: Workload, scenario: Scenario) -> float:
    """The rate of the first run, so that all runs are alike."""
    earlier = kept.runs(scenario)
    return float(earlier[0]["rate"]) if earlier else kept.rate(workload, scenario)


def of_engine(engine: Engine) -> Started:
    """An engine by name."""
    from reality.engines.flink import Flink
    from reality.engines.spark import SparkBatch, SparkStreaming
    from reality.engines.stage import Stage

    engines: dict[Engine, type[Started]] = {
        Engine.STAGE: Stage,
        Engine.FLINK: Flink,
        Engine.SPARK: SparkBatch,
        Engine.STREAMING: SparkStreaming,
    }
    return engines[engine]()
