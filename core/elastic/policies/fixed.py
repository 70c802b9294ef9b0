"""The baseline of all scaling policies: a fixed number of workers."""

from dataclasses import dataclass

from adapt.core.stage.control.workers import Seen


@dataclass(frozen=True, slots=True)
class FixedWorkers:
    """Never changes the number of workers."""

    def wanted(self, seen: Seen) -> int:
        """The current number of workers."""
        return seen.workers
