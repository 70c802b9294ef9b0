"""The small real stage as an engine: worker processes on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import adapt
from reality.predictions import elastic_options, measured_case, rescale_metrics
from reality.scenarios import Kind, Scenario
from reality.workload import Workload


class Stage:
    """`adapt replay flux --backend processes --work wait`."""

    def missing(self) -> str:
        """Nothing: it is part of the product."""
        return ""

    @contextmanager
    def started(self, workload: Workload, folder: Path) -> Iterator["Running"]:  # noqa: ARG002
        """Nothing is started: each run starts its processes."""
        yield Running(workload)


@dataclass(frozen=True, slots=True)
class Running:
    """The stage."""

    workload: Workload

    def run(self, scenario: Scenario, rate: float) -> dict[str, Any]:
        """Run a scenario in processes."""
        work = {"backend": "processes", "work": "wait"}
        if scenario.kind is Kind.RESCALE:
            run = adapt.replay.elastic(self.workload.trace, **elastic_options(self.workload, scenario, rate), **work)
            return {"metrics": rescale_metrics(run), "costs": {}}
        pace = {"speedup": self.workload.speedup(rate)} if rate else {"arrivals": "saturate"}
        plan = self.workload.plan("stage", scenario.placement)
        run = adapt.replay.flux(self.workload.trace, plan=plan, policy="none", **pace, **work)
        operator = run.outcomes[0].operator
        extra_s = operator.mean_s - float(self.workload.costs_s.mean())
        return {"metrics": measured_case(run, scenario), "costs": {"fixed_s": extra_s, "way_s": 0.0, "source_s": 0.0}}
