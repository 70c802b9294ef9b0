"""The small real stage as an engine: worker processes on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import adapt
from adapt.core.costs.profile_file import write_profile
from reality.predictions import elastic_options, measured_case, rescale_metrics
from reality.processes.calibrate import calibrate_stage
from reality.processes.running import in_processes
from reality.scenarios import Engine, Kind, Placement, Scenario
from reality.workload import WORKERS, Workload


class Stage:
    """Replays of flux and elastic whose stage runs in worker processes."""

    def missing(self) -> str:
        """Nothing."""
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
        if scenario.kind is Kind.RESCALE:
            options = elastic_options(self.workload, scenario, rate)
            adapt.replay.elastic(self.workload.trace, **options)  # loads compiled kernels before rows are due
            with in_processes():
                rescaled = adapt.replay.elastic(self.workload.trace, **options)
            return {"metrics": rescale_metrics(rescaled), "costs": {}}
        pace: dict[str, Any] = {"speedup": self.workload.speedup(rate)} if rate else {"arrivals": "saturate"}
        plan = self.workload.plan("stage", scenario.placement)
        with in_processes():
            found = adapt.replay.flux(self.workload.trace, plan=plan, policy="none", **pace)
        return {"metrics": measured_case(found, scenario), "costs": self._costs() if scenario.calibrates else {}}

    def _costs(self) -> dict[str, str]:
        """A profile of the processes."""
        return {"profile": write_profile(calibrate_stage(self.workload.trace, WORKERS).profile)}
