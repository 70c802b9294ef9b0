"""Protocol of an engine that runs scenarios."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from reality.scenarios import Scenario
from reality.workload import Workload


class Runner(Protocol):
    """A started engine."""

    def run(self, scenario: Scenario, rate: float) -> dict[str, Any]:
        """Run a scenario.

        Args:
            rate: Rows per second; 0, as fast as possible.

        Returns:
            `metrics` by name, and `costs`, what predictions are calibrated with.
        """


class Engine(Protocol):
    """An engine that may be here."""

    def missing(self) -> str:
        """A sentence on what is missing; empty if it can run."""

    def started(self, workload: Workload, folder: Path) -> AbstractContextManager[Runner]:
        """Start the engine, and end it with the block."""
