"""The small real stage as an engine: worker processes on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import adapt
from adapt.core.costs.profile_file import write_profile
from reality.predictions import elastic_options, measured_case, rescale_metrics
from reality.scenarios import Engine, Kind, Placement, Scenario
from reality.workload import WORKERS, Workload


class Stage:
    """`adapt replay flux --backend processes --work wait`."""

    def missing(self) -> str:
        """Nothing: it is part of the product."""
        return ""

    @contextmanager
    def started(self, workload: Workload, folder: Path) -> Iterator["Running"]:  # noqa: ARG002
        """Each run starts its processes; one before all loads the compiled kernels of the driver."""
        started = Running(workload)
        started.run(Scenario(Engine.STAGE, Kind.SATURATED, Placement.PLAN), 0)
        yield started


@dataclass(frozen=True, slots=True)
class Running:
    """The stage."""

    workload: Workload

    def run(self, scenario: Scenario, rate: float) -> dict[str, Any]:
        """Run a scenario in processes."""
        work: dict[str, Any] = {"backend": "processes", "work": "wait"}
        if scenario.kind is Kind.RESCALE:
            rescaled = adapt.replay.elastic(
                self.workload.trace, **elastic_options(self.workload, scenario, rate), **work
            )
            return {"metrics": rescale_metrics(rescaled), "costs": {}}
        pace: dict[str, Any] = {"speedup": self.workload.speedup(rate)} if rate else {"arrivals": "saturate"}
        plan = self.workload.plan("stage", scenario.placement)
        found = adapt.replay.flux(self.workload.trace, plan=plan, policy="none", **pace, **work)
        return {"metrics": measured_case(found, scenario), "costs": self._costs() if scenario.calibrates else {}}

    def _costs(self) -> dict[str, str]:
        """The profile of `adapt calibrate stage`."""
        found = adapt.calibrate.stage(self.workload.trace, work="wait", workers=WORKERS)
        return {"profile": write_profile(found.profile)}
