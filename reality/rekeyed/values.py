"""Predictions of the three jobs, next to what was measured."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import adapt
from adapt.core.costs.profile_file import read_profile
from reality.rekeyed.run import Kept, Run
from reality.rekeyed.workload import WORKERS, Keys, Skewed
from reality.scenarios import Engine

ONE_BATCH = 2**20
"""More rows than any run has."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job on an engine: what adapt foretells, and what its runs showed.

    Attributes:
        imbalance: By `adapt partition evaluate`, weighed by cost.
        rows: Rows of each worker by the plan.
        merge_messages: Messages of split keys in one merge, by `adapt partition evaluate`.
        split_messages: Those of all windows.
        messages: All merge messages of the job: one from each replaced key and window.
        wall_s: By `adapt replay flux`, calibrated with the natural job, with the merge messages after the last row.
        calibrates: Whether the prediction is calibrated with these very runs.
    """

    engine: Engine
    keys: Keys
    pinned: int
    split: int
    imbalance: float
    rows: list[int]
    merge_messages: int
    split_messages: int
    messages: int
    wall_s: float
    calibrates: bool
    runs: list[Run]

    @property
    def measured_s(self) -> float:
        """Wall time in the median."""
        return median(run.wall_s for run in self.runs)

    @property
    def is_exact(self) -> bool:
        """Whether each run had the planned rows on each worker, the predicted messages and the exact results."""
        return all(
            run.rows == self.rows and run.messages == self.messages and run.results_are_right for run in self.runs
        )

    def as_data(self) -> dict[str, Any]:
        """The job as JSON data."""
        names = ("imbalance", "rows", "messages", "merge_messages", "split_messages", "wall_s")
        predicted = {name: getattr(self, name) for name in names}
        runs = [{name: each for name, each in asdict(run).items() if name != "profile"} for run in self.runs]
        keys = {"engine": self.engine.value, "keys": self.keys.value, "pinned": self.pinned, "split": self.split}
        return {**keys, "predicted": predicted, "calibrates": self.calibrates, "runs": runs}


def jobs_of(engine: Engine, workload: Skewed, kept: Kept) -> list[Job]:
    """The jobs of an engine that have been run."""
    calibrating = kept.runs(engine, Keys.NATURAL)
    if not calibrating:
        return []
    ranked = sorted((run.profile for run in calibrating), key=lambda text: read_profile(text).service.mean_s or 0.0)
    costs = {"profile": ranked[(len(ranked) - 1) // 2], "batch_s": median(run.batch_s for run in calibrating)}
    return [_job(engine, keys, workload, runs, costs) for keys in Keys if (runs := kept.runs(engine, keys))]


def _job(engine: Engine, keys: Keys, workload: Skewed, runs: list[Run], costs: Mapping[str, Any]) -> Job:
    plan = workload.keyed(engine, keys)
    (evaluated,) = adapt.evaluate(workload.trace, plan, weight="cost", baseline=False).as_data()["plans"]
    return Job(
        engine,
        keys,
        pinned=len(plan.explicit),
        split=len(plan.splits),
        imbalance=evaluated["measured"]["imbalance"],
        rows=workload.planned_rows(engine, keys),
        merge_messages=evaluated.get("merging", {}).get("merge_messages", 0),
        split_messages=workload.split_messages(engine) if keys is Keys.SPLIT else 0,
        messages=len(workload.messages(engine, keys)),
        wall_s=predicted_s(engine, keys, workload, costs),
        calibrates=keys is Keys.NATURAL,
        runs=runs,
    )


def predicted_s(engine: Engine, keys: Keys, workload: Skewed, costs: Mapping[str, Any]) -> float:
    """Wall time by the simulator: the rows by their replaced keys, then the last merge messages by their own keys.

    Both are batches of Spark, each with what a batch takes beyond its slowest task.
    """
    wall_s = _replayed_s(engine, workload, workload.rekeyed_trace(engine, keys), costs)
    if keys is not Keys.SPLIT:
        return wall_s
    return wall_s + _replayed_s(engine, workload, workload.merging_trace(engine, keys), costs)


def _replayed_s(engine: Engine, workload: Skewed, trace: Path, costs: Mapping[str, Any]) -> float:
    """Time until all rows of a trace are done, placed by the engine's own hash."""
    batches = f":batch-rows={ONE_BATCH},batch-overhead={costs['batch_s'] * 1e3:.3f}ms" if engine is Engine.SPARK else ""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "costs.toml"
        file.write_text(costs["profile"])
        plan = workload.keyed(engine, Keys.NATURAL)
        found: Any = adapt.replay.flux(
            trace, plan=plan, policy="none", costs=file, arrivals="saturate", engine=f"{engine}{batches}"
        )
        rows = len(adapt.read_trace(trace).to_arrow())
        assert plan.channels == WORKERS
        return rows / float(found.outcomes[0].throughput)
