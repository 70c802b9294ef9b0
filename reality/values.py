"""Values of the page: predicted against measured, by engine, scenario and metric."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from adapt.core.costs.profile_file import read_profile
from reality.predictions import MEAN_AFTER, WITHOUT_QUEUES, predicted
from reality.runs import Kept
from reality.scenarios import Engine, Scenario, scenarios
from reality.workload import Workload

SCHEMA = "adapt.reality/1"

BY_REST = "service time"
"""Mean per row: by `adapt calibrate flink` as the prediction, and by the job's own log."""

IN_SECONDS = ("p50", "p95", "p99", "downtime", WITHOUT_QUEUES, "peak", MEAN_AFTER, BY_REST)
UNITS = {"throughput": "rows/s", **dict.fromkeys(IN_SECONDS, "s")}
"""Units of metrics; those of workers are rows."""


@dataclass(frozen=True, slots=True)
class Value:
    """A metric of a scenario.

    Attributes:
        predicted: By the simulator; None where it has no model.
        measured: In each run.
        calibrates: Whether the prediction of this scenario is calibrated with these very runs.
    """

    engine: Engine
    scenario: str
    metric: str
    predicted: float | None
    measured: tuple[float, ...]
    calibrates: bool

    @property
    def unit(self) -> str:
        """Unit of the metric."""
        return UNITS.get(self.metric, "rows")

    @property
    def error(self) -> float | None:
        """Predicted over the median measured, less 1."""
        found = median(self.measured)
        return None if self.predicted is None or not found else self.predicted / found - 1

    def as_data(self) -> dict[str, Any]:
        """The value as JSON data."""
        return {
            "engine": self.engine.value,
            "scenario": self.scenario,
            "metric": self.metric,
            "unit": self.unit,
            "predicted": self.predicted,
            "measured": list(self.measured),
            "calibrates": self.calibrates,
        }


def values_of(engine: Engine, workload: Workload, kept: Kept, *, quick: bool) -> list[Value]:
    """All values of an engine whose scenarios have been run."""
    wanted = [scenario for scenario in scenarios(engine, quick=quick) if kept.runs(scenario)]
    costs = calibrated(kept, wanted)
    return [] if costs is None else [value for one in wanted for value in _values(workload, one, kept, costs)]


def calibrated(kept: Kept, wanted: Iterable[Scenario]) -> dict[str, Any] | None:
    """Costs of the calibrating scenario; None without it.

    Of its runs, the profile is that with the median of the mean service times; other costs are medians.
    """
    for scenario in wanted:
        if scenario.calibrates:
            runs = [run["costs"] for run in kept.runs(scenario)]
            ranked = sorted((run["profile"] for run in runs), key=lambda text: read_profile(text).service.mean_s or 0.0)
            others = {name: median(run[name] for run in runs if name in run) for name in runs[0] if name != "profile"}
            return {"profile": ranked[(len(ranked) - 1) // 2], **others}
    return None


def _values(workload: Workload, scenario: Scenario, kept: Kept, costs: Mapping[str, Any]) -> list[Value]:
    runs = kept.runs(scenario)
    foretold = predicted(workload, scenario, runs[0]["rate"], costs)
    measured = {metric: tuple(run["metrics"][metric] for run in runs) for metric in runs[0]["metrics"]}
    if "by_rest_s" in costs and scenario.calibrates:
        foretold[BY_REST] = costs["by_rest_s"]
        measured[BY_REST] = tuple(run["costs"]["service_s"] for run in runs)
    return [
        Value(scenario.engine, scenario.name, metric, foretold.get(metric), each, scenario.calibrates)
        for metric, each in measured.items()
    ]


def effects(values: Iterable[Value]) -> list[Value]:
    """How much faster the plan is than the natural placement, at saturation."""
    by_name = {(one.engine, one.scenario): one for one in values if one.metric == "throughput"}
    found = []
    for (engine, name), natural in by_name.items():
        plan = by_name.get((engine, name.replace("natural", "plan", 1)))
        if "natural" in name and plan is not None and natural.predicted and plan.predicted:
            measured = tuple(b / a for a, b in zip(natural.measured, plan.measured, strict=False))
            about = name.partition(", ")[2]
            found.append(Value(engine, about, "plan over natural", plan.predicted / natural.predicted, measured, False))
    return found
